"""Replacements for an object are compared with it: structure, types, shapes and values."""

import numpy as np
import pytest

from irgym.core.cost import Validation
from irgym.measure.callables.comparison import Results, reference


def run(function, arrays):
    value = function(*arrays)
    leaves = value if isinstance(value, tuple) else (value,)
    arrays = tuple(leaf.copy() for leaf in leaves if isinstance(leaf, np.ndarray))
    kinds = tuple(
        f"{leaf.shape} {leaf.dtype}" if isinstance(leaf, np.ndarray) else repr(leaf) for leaf in leaves
    )
    return Results(type(value), kinds, arrays)


def compared(original, function, *inputs) -> Validation:
    with np.errstate(all="ignore"):
        return reference("original", inputs, run, [original], 0).judge(function)


X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normalised(x, epsilon=1e-5, add=np.sum):
    """Normalise the last axis, with some way to add up."""
    x = x - (add(x, -1) / np.float32(x.shape[-1]))[..., None]
    variance = add(x * x, -1) / np.float32(x.shape[-1])
    return x / np.sqrt(variance + np.float32(epsilon))[..., None]


def in_turn(x, axis):
    """Add up one by one, as compilers do that may not change the order."""
    return np.add.accumulate(x, axis)[..., -1]


WRONG = {
    "another sign where the example has none": (np.abs, lambda x: x, np.abs(X) * 0.0),
    "a constant": (lambda x: x.sum(-1), lambda x: X.sum(-1), X),
    "a number that is kept": (
        lambda x: (x + 1, float(x[0, 0])),
        lambda x: (x + 1, float(X[0, 0])),
        X,
    ),
    "another type": (lambda x: x > 0, lambda x: (x > 0).astype(np.float32), X),
    "another shape": (lambda x: x @ x.T, lambda x: (x @ x.T)[None], X),
    "another structure": (lambda x: (x,), lambda x: x, X),
    "complex numbers as pairs": (lambda x: x + 1j, lambda x: np.stack([x, np.ones_like(x)], -1), X),
    "no maximum taken off": (softmax, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), X * 9.5),
    "a branch of the example": (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x if X.sum() > 0 else -x,
        X,
    ),
    "whole numbers beyond the first": (lambda n: n * n, lambda n: n, np.array([0, 1, 5, 9])),
    "an epsilon left out": (normalised, lambda x: normalised(x, 0.0), np.tile(X, 100)),
    "an infinity that is finite": (lambda x: 1 / x, lambda x: np.clip(1 / x, -1e30, 1e30), X),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_difference_is_described(name):
    original, wrong, x = WRONG[name]
    found = compared(original, wrong, x)
    assert not found.ok and "instead of" in found.detail
    assert compared(original, original, x).checked


def test_rounding_is_no_difference():
    def otherwise(x):
        return np.asarray(x.astype(np.float64) @ x.T.astype(np.float64)).astype(np.float32)

    found = compared(lambda x: x @ x.T, otherwise, X)
    assert found.checked and found.inputs >= 3, found


@pytest.mark.parametrize("length", [512, 50_000])
def test_sums_of_many_terms_may_be_added_up_in_any_order(length):
    def softmax_in_turn(x):
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / in_turn(powers, -1)[..., None]

    x = np.random.default_rng(1).standard_normal((4, length)).astype(np.float32)
    for original, other in (
        (softmax, softmax_in_turn),
        (normalised, lambda x: normalised(x, add=in_turn)),
        (lambda x: x.mean(-1), lambda x: in_turn(x, -1) / np.float32(length)),
    ):
        found = compared(original, other, x)
        assert found.checked and found.inputs >= 3, found


def test_nothing_is_said_of_inputs_that_the_object_refuses():
    def original(x, n):
        if (x < 0).any() or (np.diff(n) < 0).any():
            raise ValueError("x is negative, or n is not sorted")
        return np.sqrt(x)[: len(n)]

    found = compared(original, lambda x, n: np.sqrt(x)[: len(n)], np.abs(X), np.arange(3))
    assert found.checked and found.inputs > 1


def test_a_difference_on_infinities_alone_is_told_apart():
    found = compared(lambda x: np.maximum(x, 0), lambda x: np.where(np.isnan(x) | (x < 0), 0, x), X)
    assert found.ok and "not on" not in found.tolerance, "what NaN comes to is left to the library"
    original, other = (
        lambda x: np.where(np.isnan(x), np.float32(1), x),
        lambda x: np.where(np.isnan(x), np.float32(2), x),
    )
    found = compared(original, other, X)
    assert found.ok and "not on infinities and NaN" in found.tolerance
