import numpy as np
import pytest

UNARY = {
    "Abs": (-9, 9),
    "Ceil": (-9, 9),
    "Cos": (-3, 3),
    "Erf": (-3, 3),
    "Exp": (-5, 5),
    "Floor": (-9, 9),
    "Log": (0.01, 9),
    "Neg": (-9, 9),
    "Reciprocal": (0.1, 9),
    "Round": (-9, 9),
    "Sign": (-9, 9),
    "Sin": (-3, 3),
    "Sqrt": (0, 9),
}


def shape(rng, most=4):
    return tuple(int(size) for size in rng.integers(1, 5, rng.integers(0, most)))


def floats(rng, sizes, low=-3.0, high=3.0):
    return np.asarray(rng.uniform(low, high, sizes), np.float32)


def broadcast_shapes(rng, count=2):
    """Return shapes that broadcast together."""
    whole = shape(rng, 5)
    shapes = []
    for _ in range(count):
        kept = whole[rng.integers(0, len(whole) + 1) :]
        shapes.append(tuple(size if rng.random() < 0.7 else 1 for size in kept))
    return shapes


@pytest.mark.parametrize("operator", UNARY)
def test_unary(oracle, rng, operator):
    for _ in range(20):
        oracle.agrees(operator, [floats(rng, shape(rng), *UNARY[operator])])


def test_rounding_of_halves_is_to_even(oracle):
    for half in np.arange(-10, 10, dtype=np.float32) + np.float32(0.5):
        oracle.agrees("Round", [half.reshape(1)])


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Pow", "PRelu"])
def test_arithmetic(oracle, rng, operator):
    for _ in range(20):
        left, right = broadcast_shapes(rng)
        if operator == "PRelu":
            left = np.broadcast_shapes(left, right)
        low = 0.1 if operator == "Pow" else -3
        b = floats(rng, right)
        b = np.where(abs(b) < 0.1, np.float32(1), b)
        oracle.agrees(operator, [floats(rng, left, low), b])


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Mod"])
def test_arithmetic_of_integers(oracle, rng, operator):
    for _ in range(20):
        left, right = broadcast_shapes(rng)
        a, b = (np.asarray(rng.integers(-9, 9, shape), np.int64) for shape in (left, right))
        oracle.agrees(operator, [a, np.where(b == 0, 1, b)])


def test_powers_with_other_types(oracle, rng):
    for _ in range(20):
        left, right = broadcast_shapes(rng)
        oracle.agrees("Pow", [floats(rng, left), np.asarray(rng.integers(0, 4, right), np.int64)])
        oracle.agrees("Pow", [np.asarray(rng.integers(1, 5, left), np.int64), floats(rng, right, 0, 3)])


def test_remainders_as_in_c(oracle, rng):
    for _ in range(20):
        left, right = broadcast_shapes(rng)
        oracle.agrees("Mod", [floats(rng, left), floats(rng, right, 0.5)], {"fmod": 1})


@pytest.mark.parametrize("operator", ["Max", "Min", "Sum", "Mean"])
def test_any_number_of_inputs(oracle, rng, operator):
    for _ in range(20):
        shapes = broadcast_shapes(rng, int(rng.integers(1, 4)))
        oracle.agrees(operator, [floats(rng, shape) for shape in shapes])


def test_clip(oracle, rng):
    for index in range(24):
        bounds = [np.array(rng.uniform(-2, 2), np.float32) for _ in range(2)]
        low, high = (bound if index >> bit & 1 else None for bit, bound in enumerate(bounds))
        oracle.agrees("Clip", [floats(rng, shape(rng)), low, high])


@pytest.mark.parametrize("operator", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons(oracle, rng, operator):
    for _ in range(20):
        left, right = broadcast_shapes(rng)
        a, b = (np.asarray(rng.integers(-2, 3, shape)) for shape in (left, right))
        oracle.agrees(operator, [a, b])
        oracle.agrees(operator, [a.astype(np.float32), b.astype(np.float32)])


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_logic(oracle, rng, operator):
    for _ in range(20):
        left, right = broadcast_shapes(rng)
        oracle.agrees(operator, [np.asarray(rng.random(shape) < 0.5) for shape in (left, right)])


def test_not(oracle, rng):
    for _ in range(20):
        oracle.agrees("Not", [np.asarray(rng.random(shape(rng)) < 0.5)])


def test_numbers_that_are_none(oracle, rng):
    for index in range(20):
        x = rng.choice(np.array([0, 1, np.nan, np.inf, -np.inf], np.float32), (3, 4))
        oracle.agrees("IsNaN", [x])
        signs = {"detect_negative": index & 1, "detect_positive": index >> 1 & 1}
        oracle.agrees("IsInf", [x], signs)


def test_errors_are_numbers(oracle):
    """Divisions by zero and logarithms of zero agree with ONNX Runtime, without warnings."""
    x = np.array([0, 1, -1, np.inf], np.float32)
    for _ in range(20):
        oracle.agrees("Div", [x, np.array([0, 0, 0, 3], np.float32)])
        oracle.agrees("Div", [x + 1, np.array([3, 3, 0, 0], np.float32)])
        oracle.agrees("Log", [x])
        oracle.agrees("Exp", [np.append(x * 1000, np.float32(1))])
