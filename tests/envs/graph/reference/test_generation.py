import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate

TYPES = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
}


@pytest.mark.parametrize("source", TYPES.values())
def test_cast(oracle, rng, source):
    for _ in range(2):
        for number in TYPES:
            x = (rng.uniform(0, 100, (2, 3)) * (rng.random((2, 3)) < 0.5)).astype(source)
            oracle.agrees("Cast", [x], {"to": number}, doubles=False)
            oracle.agrees("CastLike", [x, np.zeros(1, TYPES[number])], doubles=False)


def test_cast_refuses_texts():
    with pytest.raises(OperatorError, match=r"Cast .* element type 8"):
        evaluate("Cast", [np.zeros(1)], {"to": 8})


def test_shape_and_size(oracle, rng):
    for index in range(24):
        x = np.zeros(rng.integers(0, 5, rng.integers(0, 5)), np.float32)
        bounds = rng.integers(-4, 5, 2).tolist()
        given = {
            key: value
            for bit, (key, value) in enumerate(zip(("start", "end"), bounds, strict=True))
            if index >> bit & 1
        }
        oracle.agrees("Shape", [x], given)
        oracle.agrees("Size", [x])


def test_constant_of_shape(oracle, rng):
    for index in range(24):
        sizes = rng.integers(0, 4, rng.integers(0, 4))
        value = np.array([rng.integers(-5, 5)]).astype(
            [np.float32, np.int64, np.float64, np.bool_][index % 4]
        )
        oracle.agrees("ConstantOfShape", [sizes], {"value": value} if index % 5 else {})


def test_constants(oracle, rng):
    for _ in range(20):
        for given in (
            {"value": rng.uniform(-1, 1, (2, 3))},
            {"value_float": rng.uniform()},
            {"value_floats": tuple(rng.uniform(size=3).tolist())},
            {"value_int": int(rng.integers(9))},
            {"value_ints": tuple(rng.integers(9, size=4).tolist())},
        ):
            oracle.agrees("Constant", [], given)


def test_constants_of_plain_numbers_have_no_type():
    with pytest.raises(OperatorError, match="not an array"):
        evaluate("ConstantOfShape", [np.array([2])], {"value": 1.0})


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.float64])
def test_range(oracle, rng, kind):
    for index in range(24):
        start, limit, step = (np.array(value, kind) for value in (*rng.uniform(-9, 9, 2), rng.integers(1, 4)))
        oracle.agrees("Range", [start, limit, np.asarray(-step if index & 1 else step)])
