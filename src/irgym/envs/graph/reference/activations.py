"""Activations, as operators and inside ONNX Runtime's fused operators."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from irgym.envs.graph.reference.calls import Array, Call, Operator, OperatorError, broadcast, same
from irgym.envs.graph.reference.elementwise import erf


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))  # cannot overflow
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _leaky_relu(x: Array, alpha: float = 0.01) -> Array:
    return np.where(x < 0, alpha * x, x)


def _elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _selu(x: Array, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Array:
    return gamma * _elu(x, alpha)


def _hard_sigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


def _hard_swish(x: Array) -> Array:
    return x * _hard_sigmoid(x, 1 / 6, 0.5)


def _thresholded_relu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > alpha, x, 0)


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


def _mish(x: Array) -> Array:
    return x * np.tanh(_softplus(x))


def _softsign(x: Array) -> Array:
    return x / (1 + np.abs(x))


def _clip(x: Array, low: float, high: float) -> Array:
    return np.clip(x, low, high)


def _quick_gelu(x: Array, alpha: float = 1.702) -> Array:
    return x * _sigmoid(alpha * x)


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def _tanh_gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _either_gelu(call: Call, x: Array) -> Array:
    approximate = call.text("approximate", "none")
    return _in_precision(_tanh_gelu if approximate == "tanh" else _gelu, x)


def _in_precision(function: Callable[..., Any], x: Array, *parameters: float) -> Array:
    return np.asarray(function(x, *parameters)).astype(x.dtype, copy=False)


_FUSED: Mapping[str, tuple[Callable[..., Any], int]] = {
    "Clip": (_clip, 2),
    "Elu": (_elu, 1),
    "HardSigmoid": (_hard_sigmoid, 2),
    "HardSwish": (_hard_swish, 0),
    "LeakyRelu": (_leaky_relu, 1),
    "Relu": (_relu, 0),
    "Sigmoid": (_sigmoid, 0),
    "Softplus": (_softplus, 0),
    "Softsign": (_softsign, 0),
    "Tanh": (np.tanh, 0),
    "ThresholdedRelu": (_thresholded_relu, 1),
}
"""Activations in fused operators, with their numbers of parameters."""

OF_CONVOLUTIONS = frozenset({"Clip", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh"})
"""Activations that ONNX Runtime fuses into convolutions."""

OF_PRODUCTS = frozenset(_FUSED) - {"Clip", "HardSwish"}
"""Activations that ONNX Runtime fuses into FusedGemm."""


def activated(x: Array, activation: str, parameters: Sequence[float], known: Collection[str]) -> Array:
    """Return the activation of each element, or the array itself if there is no activation.

    Args:
        x: Array of floating-point numbers.
        activation: Name of ONNX's operator; empty for none.
        parameters: Its attributes, in the order of ONNX's documentation; for Clip, the bounds.
        known: Names of the activations that the fused operator supports.

    Raises:
        OperatorError: ONNX Runtime does not support the activation there, or the parameters do not fit.
    """
    if not activation:
        return x
    if activation not in known:
        raise OperatorError(f"{activation} cannot be fused here; known are {', '.join(sorted(known))}")
    function, count = _FUSED[activation]
    if len(parameters) != count:
        raise OperatorError(
            f"the fused activation {activation} needs {count} parameters, not {len(parameters)}"
        )
    return _in_precision(function, x, *parameters)


def _each(function: Callable[..., Any], *parameters: str) -> Operator:
    """Return the element-wise operator of a function, whose `parameters` are attributes with its defaults."""

    def meaning(call: Call, x: Array) -> Array:
        given = {name: call.number(name) for name in parameters if name in call.attributes}
        return np.asarray(function(x, **given)).astype(x.dtype, copy=False)

    return Operator(meaning, same)


def _biased(function: Callable[[Array], Array]) -> Operator:
    def meaning(call: Call, x: Array, bias: Array | None = None) -> Array:
        return _in_precision(function, x if bias is None else x + bias)

    return Operator(meaning, same)


def _sloped(call: Call, x: Array, slope: Array) -> Array:
    return np.where(x < 0, slope * x, x)


OPERATORS: Mapping[str, Operator] = {
    "Elu": _each(_elu, "alpha"),
    "Gelu": Operator(_either_gelu, same),
    "HardSigmoid": _each(_hard_sigmoid, "alpha", "beta"),
    "HardSwish": _each(_hard_swish),
    "LeakyRelu": _each(_leaky_relu, "alpha"),
    "Mish": _each(_mish),
    "PRelu": Operator(_sloped, broadcast),
    "Relu": _each(_relu),
    "Selu": _each(_selu, "alpha", "gamma"),
    "Sigmoid": _each(_sigmoid),
    "Softplus": _each(_softplus),
    "Softsign": _each(_softsign),
    "Tanh": _each(np.tanh),
    "ThresholdedRelu": _each(_thresholded_relu, "alpha"),
    "com.microsoft.BiasGelu": _biased(_gelu),
    "com.microsoft.FastGelu": _biased(_tanh_gelu),
    "com.microsoft.Gelu": _each(_gelu),
    "com.microsoft.QuickGelu": _each(_quick_gelu, "alpha"),
}
