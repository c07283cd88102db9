"""Weights that are joined and cut in turn: correct arrays, short descriptions."""

import numpy as np
import pytest

from irgym.envs.graph.ir.computing import computed
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Stored, Weight, Weights

ARRAYS = {name: np.random.default_rng(len(name)).normal(size=(4, 6)) for name in ("a", "bb", "ccc")}


def stored(name: str) -> Stored:
    return Stored(name, f"digest of {name}", TensorType("float64", ARRAYS[name].shape))


def depth(weight: Weight) -> int:
    if not isinstance(weight, Computed):
        return 0
    return 1 + max(depth(part) for part in weight.arguments if isinstance(part, Stored | Computed))


@pytest.mark.parametrize("seed", range(20))
def test_joining_and_cutting_in_turn_stays_short(seed: int):
    rng = np.random.default_rng(seed)
    weights = Weights(ARRAYS)
    known: list[tuple[Weight, np.ndarray]] = [(stored(name), array) for name, array in ARRAYS.items()]
    for _ in range(60):
        (weight, first), (other, second) = (known[int(rng.integers(len(known)))] for _ in range(2))
        if rng.random() < 0.5 and first.shape[1] + second.shape[1] <= 40:
            made = computed("concat", 1, weight, other), np.concatenate([first, second], 1)
        else:
            start = int(rng.integers(first.shape[1]))
            stop = int(rng.integers(start, first.shape[1])) + 1
            made = computed("part", weight, 1, start, stop), first[:, start:stop]
        known.append(made)
        assert made[0].type.shape == made[1].shape and depth(made[0]) <= 2
        np.testing.assert_array_equal(weights.array(made[0]), made[1])


@pytest.mark.parametrize("seed", range(5))
def test_turning_and_reshaping_in_turn_stays_short(seed: int):
    rng = np.random.default_rng(seed)
    weights = Weights(ARRAYS)
    for name, array in ARRAYS.items():
        made, expected = stored(name), array
        for _ in range(20):
            order = tuple(int(axis) for axis in rng.permutation(expected.ndim))
            made, expected = computed("transpose", made, order), expected.transpose(order)
            assert depth(made) <= 1 and np.array_equal(weights.array(made), expected)
        back = computed("transpose", computed("transpose", made, (1, 0)), (1, 0))
        assert back.digest == made.digest
        for shape in ((expected.size,), (1, expected.size), expected.shape):
            again = computed("reshape", computed("reshape", made, (expected.size, 1)), shape)
            assert depth(again) <= 2 and np.array_equal(weights.array(again), expected.reshape(shape))
        assert again is made, "the shape is that of the beginning"


def test_parts_joined_again_are_the_whole():
    whole, other = stored("a"), stored("bb")
    pair = computed("concat", 0, whole, other)
    assert computed("part", pair, 0, 0, 4) is whole and computed("part", pair, 0, 4, 8) is other
    halves = computed("part", whole, 1, 0, 2), computed("part", whole, 1, 2, 6)
    assert computed("concat", 1, *halves) is whole
    turned = computed("part", pair, 1, 0, 3)  # along another axis than that of the concatenation
    assert isinstance(turned, Computed) and turned.function == "part" and turned.arguments[0] == pair
