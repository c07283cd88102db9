"""Pools."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator
from irgym.envs.graph.reference.windows import Windows, windows_of


def _maximum_pool(call: Call, x: Array) -> list[Array]:
    """Return the greatest element of each window and, if requested, its index in the input, row by row."""
    windows = _windows(call, x.shape)
    least = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min
    every = _flat(windows, windows.of(x, least))
    if call.outputs == 1:
        return [every.max(axis=-1)]
    if call.integer("storage_order", 0):
        raise call.refusal("places column by column (storage_order)")
    places = _flat(windows, windows.of(np.arange(x.size).reshape(x.shape), -1))
    # Padding is never the place, even where all elements are the least number.
    chosen = np.where(places < 0, False, every == every.max(axis=-1, keepdims=True)).argmax(axis=-1)[
        ..., None
    ]
    return [np.take_along_axis(array, chosen, -1)[..., 0] for array in (every, places)]


def average_pool(call: Call, x: Array, *, whole: bool = False) -> Array:
    """Return the mean of each window.

    Args:
        call: With `count_include_pad`: whether padding counts, as zeros.
        x: Shape (batch, channels, *spatial).
        whole: Whether to count elements of windows beyond the padding too (`ceil_mode`).
    """
    windows = _windows(call, x.shape)
    every = _flat(windows, windows.of(x, 0))
    if whole and call.integer("count_include_pad", 0):
        return every.mean(axis=-1)
    total = every.sum(axis=-1)
    counted = np.ones((1, 1, *x.shape[2:]), x.dtype)
    if call.integer("count_include_pad", 0):
        pads = zip(windows.before, windows.after, strict=True)
        counted = np.pad(counted, [(0, 0), (0, 0), *pads], constant_values=1)
        nothing = (0,) * (x.ndim - 2)
        windows = Windows(windows.kernel, windows.strides, windows.dilations, nothing, nothing, windows.sizes)
    return total / _flat(windows, windows.of(counted, 0)).sum(axis=-1)


def _global_pool(function: Callable[..., Array]) -> Operator:
    def meaning(call: Call, x: Array) -> Array:
        return function(x, axis=tuple(range(2, x.ndim)), keepdims=True)

    return Operator(meaning, _global_type)


def pool_type(call: Call, x: TensorType) -> TensorType:
    """Return the type of a pool."""
    return TensorType(x.dtype, (*x.shape[:2], *_windows(call, x.shape).sizes))


def _types_with_places(call: Call, x: TensorType) -> list[TensorType]:
    result = pool_type(call, x)
    return [result, TensorType("int64", result.shape)]


def _windows(call: Call, shape: Sequence[int]) -> Windows:
    return windows_of(call, shape[2:], call.integers("kernel_shape"), pool=True)


def _flat(windows: Windows, every: Array) -> Array:
    return every.reshape(*every.shape[: every.ndim - len(windows.kernel)], prod(windows.kernel))


def _global_type(call: Call, x: TensorType) -> TensorType:
    return TensorType(x.dtype, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


OPERATORS: Mapping[str, Operator] = {
    "AveragePool": Operator(average_pool, pool_type),
    "GlobalAveragePool": _global_pool(np.mean),
    "GlobalMaxPool": _global_pool(np.max),
    "MaxPool": Operator(_maximum_pool, _types_with_places),
}
