import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate


def shape(rng, least=1, most=5):
    return tuple(int(size) for size in rng.integers(1, 5, rng.integers(least, most)))


def floats(rng, sizes):
    return np.asarray(rng.uniform(-3, 3, sizes), np.float32)


def integers(*values):
    return np.array(values, np.int64)


def axes(rng, rank, count):
    chosen = rng.permutation(rank)[:count]
    return [int(axis - rank if rng.random() < 0.5 else axis) for axis in chosen]


def test_transpose(oracle, rng):
    for index in range(24):
        x = floats(rng, shape(rng))
        given = {"perm": tuple(int(axis) for axis in rng.permutation(x.ndim))} if index % 4 else {}
        oracle.agrees("Transpose", [x], given)


def test_reshape(oracle, rng):
    for index in range(30):
        x = floats(rng, shape(rng, 2))
        target = [list(x.shape[::-1]), [0, -1], [-1], [*x.shape, 1], [1, -1, x.shape[-1]]][index % 5]
        oracle.agrees("Reshape", [x, integers(*target)])
    for _ in range(5):
        oracle.agrees("Reshape", [np.zeros((0, 3), np.float32), integers(3, 0)], {"allowzero": 1})


def test_flatten(oracle, rng):
    for index in range(24):
        x = floats(rng, shape(rng))
        given = {"axis": int(rng.integers(-x.ndim, x.ndim + 1))} if index % 4 else {}
        oracle.agrees("Flatten", [x], given)


def test_squeeze_and_unsqueeze(oracle, rng):
    for index in range(24):
        x = floats(rng, shape(rng, 0, 4))
        rank = x.ndim + int(rng.integers(1, 3))
        places = axes(rng, rank, rank - x.ndim)
        oracle.agrees("Unsqueeze", [x, integers(*places)])
        larger = np.expand_dims(x, tuple(places))
        oracle.agrees("Squeeze", [larger, integers(*places) if index % 3 else None])


def test_expand(oracle, rng):
    for _ in range(24):
        whole = shape(rng)
        kept = tuple(size if rng.random() < 0.6 else 1 for size in whole[rng.integers(0, len(whole) + 1) :])
        target = [size if rng.random() < 0.6 or len(kept) < len(whole) else 1 for size in whole]
        oracle.agrees("Expand", [floats(rng, kept), integers(*target)])


def test_concat(oracle, rng):
    for index in range(24):
        sizes = shape(rng)
        axis = int(rng.integers(-len(sizes), len(sizes)))
        parts = []
        for _ in range(rng.integers(1, 5)):
            own = list(sizes)
            own[axis] = int(rng.integers(0 if index % 5 == 0 else 1, 4))
            parts.append(floats(rng, own))
        # What is empty cannot move.
        parts.append(floats(rng, sizes))
        oracle.agrees("Concat", parts, {"axis": axis})


def test_split(oracle, rng):
    for index in range(30):
        sizes = rng.integers(1 if index % 3 else 0, 4, rng.integers(1, 4))
        x = floats(rng, (2, int(sizes.sum()) + (index % 3 == 0), 3))
        if index % 2:
            sizes[-1] += x.shape[1] - sizes.sum()
            axis = int(rng.choice([1, -2]))
            oracle.agrees("Split", [x, integers(*sizes)], {"axis": axis}, len(sizes))
        else:
            parts = int(rng.integers(1, 4))
            x = floats(rng, (2, parts * 3 - int(rng.integers(0, 2)), 2))
            oracle.agrees("Split", [x], {"axis": 1, "num_outputs": parts}, parts)


def test_slice(oracle, rng):
    for index in range(60):
        x = floats(rng, tuple(int(size) for size in rng.integers(2, 7, 3)))
        chosen = axes(rng, 3, int(rng.integers(1, 4)))
        starts, ends = rng.integers(-9, 9, (2, len(chosen)))
        ends = np.where(rng.random(len(chosen)) < 0.3, np.iinfo(np.int64).max, ends)
        ends = np.where(rng.random(len(chosen)) < 0.2, np.iinfo(np.int64).min, ends)
        steps = np.where(ends > 9, 2, rng.choice([-3, -2, -1, 1, 2, 3], len(chosen)))
        if index % 4 == 0:
            chosen, steps = None, None
        elif index % 4 == 1:
            steps = None
        inputs = [x, starts, ends, None if chosen is None else integers(*chosen), steps]
        oracle.agrees("Slice", inputs)


def test_slice_refuses_what_onnx_and_onnx_runtime_read_in_two_ways():
    start, end, axis, step = (integers(value) for value in (2, np.iinfo(np.int64).max, 0, -1))
    with pytest.raises(OperatorError, match="negative step"):
        evaluate("Slice", [np.arange(3.0), start, end, axis, step], {})


def test_tile(oracle, rng):
    for _ in range(20):
        x = floats(rng, shape(rng))
        oracle.agrees("Tile", [x, rng.integers(1, 4, x.ndim)])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(oracle, rng, mode):
    for index in range(30):
        x = floats(rng, tuple(int(size) for size in rng.integers(3, 6, rng.integers(1, 4))))
        chosen = axes(rng, x.ndim, int(rng.integers(1, x.ndim + 1))) if index % 2 else None
        count = x.ndim if chosen is None else len(chosen)
        pads = rng.integers(-1 if mode == "constant" else 0, 3, 2 * count)
        value = np.array(rng.uniform(-1, 1), np.float32) if mode == "constant" and index % 3 else None
        inputs = [x, pads, value, None if chosen is None else integers(*chosen)]
        oracle.agrees("Pad", inputs, {"mode": mode})


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_places(oracle, rng, mode):
    for _ in range(20):
        size, batch, channels, height, width = (int(number) for number in rng.integers(1, 4, 5))
        x = floats(rng, (batch, channels * size**2, height, width))
        oracle.agrees("DepthToSpace", [x], {"blocksize": size, "mode": mode})
        x = floats(rng, (batch, channels, height * size, width * size))
        oracle.agrees("SpaceToDepth", [x], {"blocksize": size})


def test_triangle(oracle, rng):
    for index in range(24):
        x = floats(rng, (*shape(rng, 0, 3), 4, int(rng.integers(4, 6))))
        diagonal = np.array(rng.integers(-2, 3), np.int64) if index % 3 else None
        oracle.agrees("Trilu", [x, diagonal], {"upper": index & 1})


def test_identity_and_dropout(oracle, rng):
    for _ in range(20):
        x = floats(rng, shape(rng))
        oracle.agrees("Identity", [x])
        oracle.agrees("Dropout", [x], outputs=2)
