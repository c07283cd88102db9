"""Operators along axes: reductions, softmax, cumulative sums, indices of extremes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator, positive_axis, same
from irgym.envs.graph.reference.elementwise import quotient

_Axes = tuple[int, ...]


def softmax(x: Array, axis: int = -1) -> Array:
    """Return the softmax along an axis; 0 where all elements are negative infinity."""
    greatest = x.max(axis=axis, keepdims=True, initial=np.finfo(x.dtype).min)
    powers = np.exp(x - greatest)
    total = powers.sum(axis=axis, keepdims=True)
    return np.where(total == 0, 0, powers / np.where(total == 0, 1, total)).astype(x.dtype, copy=False)


def _log_softmax(call: Call, x: Array) -> Array:
    axis = call.integer("axis", -1)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def _sum(x: Array, axes: _Axes) -> Array:
    return x.sum(axis=axes, keepdims=True, dtype=x.dtype)


def _mean(x: Array, axes: _Axes) -> Array:
    count = np.prod([x.shape[axis] for axis in axes], dtype=np.int64)
    return quotient(_sum(x, axes), count.astype(x.dtype))


def _log_sum_exp(x: Array, axes: _Axes) -> Array:
    greatest = x.max(axis=axes, keepdims=True)
    greatest = np.where(np.isfinite(greatest), greatest, 0).astype(x.dtype)
    return np.log(_sum(np.exp(x - greatest), axes)) + greatest


def _reduction(
    function: Callable[[Array, _Axes], Any], each: Callable[[Array], Array] = lambda x: x
) -> Operator:
    """Return a reduction; `each` is its effect on elements if no axes are reduced."""

    def meaning(call: Call, x: Array, axes: Array | None = None) -> Array:
        chosen = _axes(call, x.ndim, axes)
        if chosen is None:
            return each(x)
        kept = np.asarray(function(x, chosen)).astype(x.dtype, copy=False)
        return kept if call.integer("keepdims", 1) else kept.reshape(_reduced(kept.shape, chosen, False))

    return Operator(meaning, _reduction_type)


def _axes(call: Call, rank: int, axes: Array | None) -> _Axes | None:
    """Return the axes to reduce; None for no axes, where an empty list means that."""
    if axes is not None and axes.size:
        return tuple(positive_axis(int(axis), rank) for axis in axes)
    return None if call.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def _reduced(shape: tuple[int, ...], axes: _Axes, keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _reduction_type(call: Call, x: TensorType, axes: TensorType | None = None) -> TensorType:
    chosen = _axes(call, len(x.shape), None if axes is None else call.known(1))
    if chosen is None:
        return x
    return TensorType(x.dtype, _reduced(x.shape, chosen, bool(call.integer("keepdims", 1))))


def _extreme(function: Callable[..., Any]) -> Operator:
    """Return ArgMax or ArgMin."""

    def meaning(call: Call, x: Array) -> Array:
        axis = positive_axis(call.integer("axis", 0), x.ndim)
        if call.integer("select_last_index", 0):
            places = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=True)
        else:
            places = function(x, axis=axis, keepdims=True)
        return (places if call.integer("keepdims", 1) else places.squeeze(axis)).astype(np.int64)

    return Operator(meaning, _extreme_type)


def _extreme_type(call: Call, x: TensorType) -> TensorType:
    axis = positive_axis(call.integer("axis", 0), len(x.shape))
    return TensorType("int64", _reduced(x.shape, (axis,), bool(call.integer("keepdims", 1))))


def _cumulative_sum(call: Call, x: Array, axis: Array) -> Array:
    place = int(axis.reshape(()))
    x = np.flip(x, place) if call.integer("reverse", 0) else x
    total = np.cumsum(x, axis=place, dtype=x.dtype)
    if call.integer("exclusive", 0):
        total = total - x
    return np.flip(total, place) if call.integer("reverse", 0) else total


def _softmax(call: Call, x: Array) -> Array:
    return softmax(x, call.integer("axis", -1))


OPERATORS: Mapping[str, Operator] = {
    "ArgMax": _extreme(np.argmax),
    "ArgMin": _extreme(np.argmin),
    "CumSum": Operator(_cumulative_sum, same),
    "LogSoftmax": Operator(_log_softmax, same),
    "ReduceL1": _reduction(lambda x, axes: _sum(np.abs(x), axes), np.abs),
    "ReduceL2": _reduction(lambda x, axes: np.sqrt(_sum(x * x, axes)), np.abs),
    "ReduceLogSum": _reduction(lambda x, axes: np.log(_sum(x, axes)), np.log),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceMax": _reduction(lambda x, axes: x.max(axis=axes, keepdims=True)),
    "ReduceMean": _reduction(_mean),
    "ReduceMin": _reduction(lambda x, axes: x.min(axis=axes, keepdims=True)),
    "ReduceProd": _reduction(lambda x, axes: x.prod(axis=axes, keepdims=True, dtype=x.dtype)),
    "ReduceSum": _reduction(_sum),
    "ReduceSumSquare": _reduction(lambda x, axes: _sum(x * x, axes), np.square),
    "Softmax": Operator(_softmax, same),
}
