"""Operators that only move elements: views, concatenations, slices, padding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import (
    Array,
    Call,
    Meaning,
    Operator,
    OperatorError,
    by_view,
    positive_axis,
    same,
)


def _transpose(call: Call, x: Array) -> Array:
    return x.transpose(call.integers("perm", tuple(reversed(range(x.ndim)))))


def _reshape(call: Call, x: Array, shape: Array) -> Array:
    sizes = [int(size) for size in shape]
    if not call.integer("allowzero", 0):
        sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    return x.reshape(sizes)


def _flatten(call: Call, x: Array) -> Array:
    axis = positive_axis(call.integer("axis", 1), x.ndim)
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.reshape(rows, int(np.prod(x.shape[axis:], dtype=np.int64)))


def _squeeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    return x.squeeze() if axes is None else x.squeeze(tuple(int(axis) for axis in axes.reshape(-1)))


def _unsqueeze(call: Call, x: Array, axes: Array) -> Array:
    return np.expand_dims(x, tuple(int(axis) for axis in axes.reshape(-1)))


def _expand(call: Call, x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(size) for size in shape)))


def _slice(
    call: Call, x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Array:
    cuts = [slice(None)] * x.ndim
    chosen = range(starts.size) if axes is None else [int(axis) for axis in axes]
    for index, axis in enumerate(chosen):
        step = 1 if steps is None else int(steps[index])
        cuts[axis] = _cut(call, x.shape[axis], int(starts[index]), int(ends[index]), step)
    return x[tuple(cuts)]


def _cut(call: Call, size: int, start: int, end: int, step: int) -> slice:
    """Return a slice; bounds beyond the ends of the axis are clamped."""
    if step < 0 and end >= np.iinfo(np.int32).max:
        # ONNX Runtime reads the greatest integer as the end in the direction of the step; ONNX does not.
        raise call.refusal("a negative step to the greatest integer")
    start, end = (place + size if place < 0 else place for place in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


def _split(call: Call, x: Array, sizes: Array | None = None) -> list[Array]:
    axis = positive_axis(call.integer("axis", 0), x.ndim)
    if sizes is None:
        parts = call.integer("num_outputs", call.outputs)
        size = -(-x.shape[axis] // parts)
        ends = [min(size * part, x.shape[axis]) for part in range(1, parts)]
    else:
        ends = [int(end) for end in np.cumsum(sizes)[:-1]]
        if sizes.sum() != x.shape[axis]:
            raise OperatorError(f"Split's sizes {sizes.tolist()} must add up to {x.shape[axis]}")
    return np.split(x, ends, axis)


def _concat(call: Call, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=call.integer("axis"))


def _concat_type(call: Call, *inputs: TensorType) -> TensorType:
    shape = list(inputs[0].shape)
    axis = positive_axis(call.integer("axis"), len(shape))
    shape[axis] = sum(kind.shape[axis] for kind in inputs)
    for kind in inputs:
        if [*kind.shape[:axis], *kind.shape[axis + 1 :]] != [*shape[:axis], *shape[axis + 1 :]]:
            raise OperatorError(
                f"Concat cannot join shapes {inputs[0].shape} and {kind.shape} along axis {axis}"
            )
    return TensorType(inputs[0].dtype, tuple(shape))


def _tile(call: Call, x: Array, repeats: Array) -> Array:
    return np.tile(x, tuple(int(count) for count in repeats))


def _tile_type(call: Call, x: TensorType, repeats: TensorType) -> TensorType:
    sizes = (size * int(count) for size, count in zip(x.shape, call.known(1), strict=True))
    return TensorType(x.dtype, tuple(sizes))


def _pads(rank: int, pads: Array, axes: Array | None) -> list[tuple[int, int]]:
    """Return the padding before and after each axis; negative padding crops."""
    result = [(0, 0)] * rank
    chosen = list(range(rank)) if axes is None else [int(axis) for axis in axes]
    for index, axis in enumerate(chosen):
        result[axis] = (int(pads[index]), int(pads[len(chosen) + index]))
    return result


def _pad(call: Call, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Array:
    widths = _pads(x.ndim, pads, axes)
    cut = tuple(slice(max(-a, 0), x.shape[d] - max(-b, 0)) for d, (a, b) in enumerate(widths))
    added = [(max(a, 0), max(b, 0)) for a, b in widths]
    mode = call.text("mode", "constant")
    if mode == "constant":
        fill: Any = np.zeros((), x.dtype) if value is None else value.reshape(())
        return np.pad(x[cut], added, constant_values=fill)
    if mode not in ("reflect", "edge", "wrap"):
        raise call.refusal(f"mode={mode!r}")
    return np.pad(x[cut], added, mode=mode)


def _pad_type(call: Call, x: TensorType, pads: TensorType, *others: TensorType | None) -> TensorType:
    axes = call.known(3) if len(others) > 1 and others[1] is not None else None
    widths = _pads(len(x.shape), call.known(1), axes)
    return TensorType(x.dtype, tuple(size + sum(width) for size, width in zip(x.shape, widths, strict=True)))


def _depth_to_space(call: Call, x: Array) -> Array:
    batch, channels, height, width = x.shape
    size = call.integer("blocksize")
    if call.text("mode", "DCR") == "DCR":
        parts = x.reshape(batch, size, size, channels // size**2, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(batch, channels // size**2, size, size, height, width).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(batch, channels // size**2, height * size, width * size)


def _depth_to_space_type(call: Call, x: TensorType) -> TensorType:
    batch, channels, height, width = x.shape
    size = call.integer("blocksize")
    return TensorType(x.dtype, (batch, channels // size**2, height * size, width * size))


def _space_to_depth(call: Call, x: Array) -> Array:
    batch, channels, height, width = x.shape
    size = call.integer("blocksize")
    parts = x.reshape(batch, channels, height // size, size, width // size, size).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(batch, channels * size**2, height // size, width // size)


def _space_to_depth_type(call: Call, x: TensorType) -> TensorType:
    batch, channels, height, width = x.shape
    size = call.integer("blocksize")
    return TensorType(x.dtype, (batch, channels * size**2, height // size, width // size))


def _triangle(call: Call, x: Array, diagonal: Array | None = None) -> Array:
    offset = 0 if diagonal is None else int(diagonal.reshape(()))
    return np.triu(x, offset) if call.integer("upper", 1) else np.tril(x, offset)


def _identity(call: Call, x: Array) -> Array:
    return x


def _dropout(call: Call, x: Array, *others: Array | None) -> Sequence[Array]:
    if len(others) > 1 and others[1] is not None and others[1]:
        raise call.refusal("training_mode")
    return x, np.ones(x.shape, bool)


def _dropout_type(call: Call, x: TensorType, *others: TensorType | None) -> list[TensorType]:
    return [x, TensorType("bool", x.shape)]


def _view(meaning: Meaning) -> Operator:
    return Operator(meaning, by_view(meaning))


OPERATORS: Mapping[str, Operator] = {
    "Concat": Operator(_concat, _concat_type),
    "DepthToSpace": Operator(_depth_to_space, _depth_to_space_type),
    "Dropout": Operator(_dropout, _dropout_type),
    "Expand": _view(_expand),
    "Flatten": _view(_flatten),
    "Identity": Operator(_identity, same),
    "Pad": Operator(_pad, _pad_type),
    "Reshape": _view(_reshape),
    "Slice": _view(_slice),
    "SpaceToDepth": Operator(_space_to_depth, _space_to_depth_type),
    "Split": _view(_split),
    "Squeeze": _view(_squeeze),
    "Tile": Operator(_tile, _tile_type),
    "Transpose": _view(_transpose),
    "Trilu": Operator(_triangle, same),
    "Unsqueeze": _view(_unsqueeze),
}
