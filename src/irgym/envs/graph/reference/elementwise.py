"""Element-wise operators: arithmetic, comparisons and logic. Inputs broadcast as in numpy."""

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator, broadcast, same

_ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """Return the error function of each element, computed in float64."""
    return np.asarray(_ERF(x)).astype(x.dtype)


def quotient(a: Array, b: Array) -> Array:
    """Return a / b; of integers, rounded towards zero as in C."""
    if not np.issubdtype(np.asarray(a).dtype, np.integer):
        return a / b
    floor = np.floor_divide(a, b)
    return np.where((floor < 0) & (floor * b != a), floor + 1, floor)


def _power(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.integer) and np.any(np.asarray(b) < 0):
        return np.power(a.astype(np.float64), b).astype(a.dtype)
    return np.power(a, b).astype(a.dtype)


def _remainder(call: Call, a: Array, b: Array) -> Array:
    return np.fmod(a, b) if call.integer("fmod", 0) else np.mod(a, b)


def _clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _is_infinite(call: Call, x: Array) -> Array:
    positive = np.isposinf(x) & bool(call.integer("detect_positive", 1))
    return positive | (np.isneginf(x) & bool(call.integer("detect_negative", 1)))


def _mean(call: Call, *inputs: Array) -> Array:
    return reduce(np.add, inputs) / np.asarray(len(inputs), inputs[0].dtype)


def _each(function: Callable[[Any], Array]) -> Operator:
    def meaning(call: Call, x: Array) -> Array:
        return np.asarray(function(x)).astype(x.dtype, copy=False)

    return Operator(meaning, same)


def _fold(function: Callable[[Array, Array], Array]) -> Operator:
    def meaning(call: Call, *inputs: Array) -> Array:
        return reduce(function, inputs)

    return Operator(meaning, broadcast)


def _both(function: Callable[[Array, Array], Array]) -> Operator:
    def meaning(call: Call, a: Array, b: Array) -> Array:
        return function(a, b)

    return Operator(meaning, broadcast)


def _truth(call: Call, *inputs: TensorType) -> TensorType:
    return TensorType("bool", broadcast(call, *inputs).shape)


def _test(function: Callable[..., Array]) -> Operator:
    def meaning(call: Call, *inputs: Array) -> Array:
        return function(*inputs)

    return Operator(meaning, _truth)


OPERATORS: Mapping[str, Operator] = {
    "Abs": _each(np.abs),
    "Ceil": _each(np.ceil),
    "Cos": _each(np.cos),
    "Erf": _each(erf),
    "Exp": _each(np.exp),
    "Floor": _each(np.floor),
    "Log": _each(np.log),
    "Neg": _each(np.negative),
    "Reciprocal": _each(np.reciprocal),
    "Round": _each(np.rint),
    "Sign": _each(np.sign),
    "Sin": _each(np.sin),
    "Sqrt": _each(np.sqrt),
    "Add": _both(np.add),
    "Div": _both(quotient),
    "Mul": _both(np.multiply),
    "Pow": _both(_power),
    "Sub": _both(np.subtract),
    "Mod": Operator(_remainder, broadcast),
    "Max": _fold(np.maximum),
    "Min": _fold(np.minimum),
    "Sum": _fold(np.add),
    "Mean": Operator(_mean, broadcast),
    "Clip": Operator(_clip, same),
    "And": _test(np.logical_and),
    "Equal": _test(np.equal),
    "Greater": _test(np.greater),
    "GreaterOrEqual": _test(np.greater_equal),
    "IsInf": Operator(_is_infinite, _truth),
    "IsNaN": _test(np.isnan),
    "Less": _test(np.less),
    "LessOrEqual": _test(np.less_equal),
    "Not": _test(np.logical_not),
    "Or": _test(np.logical_or),
    "Xor": _test(np.logical_xor),
}
