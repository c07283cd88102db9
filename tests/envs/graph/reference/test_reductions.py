import numpy as np
import pytest

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def shape(rng):
    return tuple(int(size) for size in rng.integers(1, 6, rng.integers(1, 5)))


def some_axes(rng, rank):
    axes = rng.permutation(rank)[: rng.integers(1, rank + 1)]
    return np.where(rng.random(axes.size) < 0.5, axes, axes - rank).astype(np.int64)


@pytest.mark.parametrize("operator", [f"Reduce{name}" for name in REDUCTIONS])
def test_reductions(oracle, rng, operator):
    for index in range(30):
        x = rng.uniform(0.1, 3, shape(rng)).astype(np.float32)
        kind = index % 5
        axes = None if kind == 0 else np.zeros(0, np.int64) if kind == 1 else some_axes(rng, x.ndim)
        given = {"keepdims": int(rng.integers(2))}
        if kind < 2 and not operator.endswith(("LogSumExp",)):
            given["noop_with_empty_axes"] = int(rng.integers(2))
        oracle.agrees(operator, [x, axes], given)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"])
def test_reductions_of_integers(oracle, rng, operator):
    for _ in range(20):
        x = rng.integers(-2, 3, shape(rng)).astype(np.int32)
        oracle.agrees(operator, [x, some_axes(rng, x.ndim)], {"keepdims": int(rng.integers(2))})


def test_sum_of_large_exponents(oracle, rng):
    for _ in range(20):
        oracle.agrees("ReduceLogSumExp", [rng.uniform(80, 200, (3, 4)).astype(np.float32), np.array([1])])


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_softmax(oracle, rng, operator):
    for index in range(24):
        x = rng.uniform(-5, 5, shape(rng)).astype(np.float32) * (20 if index % 3 == 0 else 1)
        given = {"axis": int(rng.integers(-x.ndim, x.ndim))} if index % 4 else {}
        oracle.agrees(operator, [x], given)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_places_of_extremes(oracle, rng, operator):
    for index in range(24):
        x = rng.integers(-3, 3, shape(rng)).astype(np.float32)
        given = {"axis": int(rng.integers(-x.ndim, x.ndim)), "keepdims": index & 1}
        oracle.agrees(operator, [x], {**given, "select_last_index": index >> 1 & 1})


def test_cumulative_sum(oracle, rng):
    for index in range(24):
        x = rng.uniform(-3, 3, shape(rng)).astype(np.float32)
        axis = np.array(rng.integers(-x.ndim, x.ndim), np.int64)
        oracle.agrees("CumSum", [x, axis], {"exclusive": index & 1, "reverse": index >> 1 & 1})
