"""Open sizes: arithmetic agrees with numbers, and comparisons hold for all values or are undecided."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from irgym.envs.graph.ir.sizes import Open, Undecided, at, broadcast_shapes, symbol

H, W, N = symbol("h"), symbol("w"), symbol("n")
LEAVES = (("h", H), ("w", W), ("n", N), ("1", 1), ("2", 2), ("3", 3), ("5", 5))


def drawn(random: np.random.Generator, depth: int) -> tuple[str, int]:
    """Return a random expression as text for `eval`, and as a size."""
    if depth == 0:
        return LEAVES[int(random.integers(len(LEAVES)))]
    (left, a), (right, b) = drawn(random, depth - 1), drawn(random, depth - 1)
    match int(random.integers(6)):
        case 0:
            return f"({left} + {right})", a + b
        case 1:
            return f"({left} * {right})", a * b
        case 2:
            return f"({left} - {right})", a - b
        case 3:
            divisor = int(random.integers(2, 9))
            return f"({left} // {divisor})", a // divisor
        case 4:
            divisor = int(random.integers(2, 9))
            return f"({left} % {divisor})", a % divisor
        case _:
            return f"(({left} * {right}) // {right})" if isinstance(b, Open) else left, _undone(a, b)


def _undone(a: int, b: int) -> int:
    try:
        return (a * b) // b if isinstance(b, Open) else a
    except Undecided:  # b may be 0
        return a


def values_of(random: np.random.Generator) -> dict[str, int]:
    return {name: int(random.choice([1, 2, 3, 5, 8, 40, 1000])) for name in "hwn"}


def decided(question: Callable[[], bool]) -> bool | None:
    try:
        return question()
    except Undecided:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_expressions_have_the_values_of_numbers(seed: int):
    random = np.random.default_rng(seed)
    for _ in range(150):
        text, size = drawn(random, int(random.integers(1, 5)))
        for _ in range(5):
            values = values_of(random)
            try:
                wanted = eval(text, {}, values)
            except ZeroDivisionError:
                continue
            assert at(size, values) == wanted == eval(str(size), {}, values), text


@pytest.mark.parametrize("seed", range(4))
def test_comparisons_are_decided_for_all_values_or_not_at_all(seed: int):
    random, answered = np.random.default_rng(seed), 0
    for _ in range(150):
        (_, a), (_, b) = drawn(random, 2), drawn(random, int(random.integers(3)))
        below, equal = decided(lambda a=a, b=b: a < b), decided(lambda a=a, b=b: a == b)
        answered += (below is not None) + (equal is not None)
        for _ in range(20):
            values = values_of(random)
            assert below in (None, at(a, values) < at(b, values))
            assert equal in (None, at(a, values) == at(b, values))
    assert answered > 100


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((H + 1) // 2, (H - 1) // 2 + 1),
        (-(-H // 2), (H + 1) // 2),
        ((H // 2) // 3, H // 6),
        (H * W, W * H),
        (4 * H // 2, 2 * H),
        ((H + 1) * (W + 2) // (W + 2), H + 1),
        ((6 * H + 4) // 4, (3 * H + 2) // 2),
    ],
)
def test_equal_numbers_have_one_form(first: int, second: int):
    assert first == second and hash(first) == hash(second) and str(first) == str(second)


@pytest.mark.parametrize(
    "question",
    [
        lambda: H > 1,
        lambda: H == W,
        lambda: H % 2 == 0,
        lambda: (H, 3) == (W, 3),
        lambda: H / 2,
        lambda: H * 0.5,
        lambda: float(H),
        lambda: np.array([H, 2]),
        lambda: [1] * H,
        lambda: H // W,
        lambda: broadcast_shapes((H, 3), (W, 3)),
        lambda: broadcast_shapes((H, 3), (2, 3)),
    ],
)
def test_what_depends_on_values_is_undecided(question: Callable[[], object]):
    with pytest.raises(Undecided):
        question()


def test_a_least_size_decides_more():
    large = symbol("h", 3)
    assert large > 2 and large - 2 > 0 and (large - 3) // 2 + 1 > 0 and large != 2


def test_sizes_broadcast_with_ones_and_equal_ones():
    assert broadcast_shapes((H, 1, 4), (W, 4)) == (H, W, 4)
    assert broadcast_shapes((H, 3), (2, 3), trusted=True) == (2, 3)
    with pytest.raises(ValueError, match="do not fit"):
        broadcast_shapes((H + W + 1, 3), (1, 2))


def test_sizes_are_numbers_of_python_where_nothing_is_open():
    assert isinstance(H - H + 2, int) and not isinstance(H - H + 2, Open)
    assert type(np.int64(3) * H) is Open and pickle.loads(pickle.dumps(H * W)) == H * W


def test_native_code_refuses_open_sizes():
    with pytest.raises(ValueError, match="negative dimensions"):
        np.zeros((H, 2))
