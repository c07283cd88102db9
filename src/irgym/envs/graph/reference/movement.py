"""Operators that only move elements: views, concatenations, slices, padding."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from irgym.envs.graph.ir.sizes import broadcast_shapes, numbers
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import (
    Array,
    Call,
    Operator,
    OperatorError,
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


def _transpose_type(call: Call, x: TensorType) -> TensorType:
    order = call.integers("perm", tuple(reversed(range(len(x.shape)))))
    return TensorType(x.dtype, tuple(x.shape[axis] for axis in order))


def _reshape_type(call: Call, x: TensorType, shape: TensorType) -> TensorType:
    sizes = list(call.sizes(1))
    if not call.integer("allowzero", 0):
        sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    if -1 in sizes:
        place = sizes.index(-1)
        rest = prod(sizes[:place] + sizes[place + 1 :])
        sizes[place] = x.size // rest if rest else 0
    if not call.agree(prod(sizes), x.size):
        raise OperatorError(f"Reshape cannot turn the shape {x.shape} into {call.sizes(1)}")
    return TensorType(x.dtype, tuple(sizes))


def _flatten_type(call: Call, x: TensorType) -> TensorType:
    axis = positive_axis(call.integer("axis", 1), len(x.shape))
    return TensorType(x.dtype, (prod(x.shape[:axis]), prod(x.shape[axis:])))


def _squeeze_type(call: Call, x: TensorType, axes: TensorType | None = None) -> TensorType:
    rank = len(x.shape)
    if axes is None:
        return TensorType(x.dtype, tuple(size for size in x.shape if size != 1))
    gone = {positive_axis(axis, rank) for axis in call.sizes(1)}
    if not all(call.agree(x.shape[axis], 1) for axis in gone):
        raise OperatorError(f"Squeeze cannot remove the axes {sorted(gone)} of the shape {x.shape}")
    return TensorType(x.dtype, tuple(size for axis, size in enumerate(x.shape) if axis not in gone))


def _unsqueeze_type(call: Call, x: TensorType, axes: TensorType) -> TensorType:
    added = call.sizes(1)
    rank = len(x.shape) + len(added)
    new, sizes = {positive_axis(axis, rank) for axis in added}, iter(x.shape)
    if len(new) < len(added) or not new <= set(range(rank)):
        raise OperatorError(f"Unsqueeze cannot add the axes {list(added)} to the shape {x.shape}")
    return TensorType(x.dtype, tuple(1 if axis in new else next(sizes) for axis in range(rank)))


def _expand_type(call: Call, x: TensorType, shape: TensorType) -> TensorType:
    return TensorType(x.dtype, broadcast_shapes(x.shape, call.sizes(1), trusted=call.trusted))


def _slice_type(call: Call, x: TensorType, *given: TensorType | None) -> TensorType:
    starts, ends, axes, steps = (
        call.sizes(place + 1) if place < len(given) and given[place] is not None else None
        for place in range(4)
    )
    sizes = list(x.shape)
    for index, (start, end) in enumerate(zip(starts or (), ends or (), strict=True)):
        axis = positive_axis(index if axes is None else axes[index], len(sizes))
        sizes[axis] = _cut_size(call, x.shape[axis], start, end, 1 if steps is None else steps[index])
    return TensorType(x.dtype, tuple(sizes))


FAR = 10**9
"""No open size reaches this: exporters write such ends of slices for the end of a dimension."""


def _cut_size(call: Call, size: int, start: int, end: int, step: int) -> int:
    """Return the number of elements of a slice."""
    if end >= FAR and step > 0:
        end = size
    if end <= -FAR and step < 0:
        end = -size - 1
    cut = _cut(call, size, start, end, step)
    last = -1 if cut.stop is None else cut.stop
    return max(-((cut.start - last) // step) if step > 0 else -((last - cut.start) // -step), 0)


def _split_type(call: Call, x: TensorType, sizes: TensorType | None = None) -> list[TensorType]:
    axis = positive_axis(call.integer("axis", 0), len(x.shape))
    whole = x.shape[axis]
    if sizes is None:
        parts = call.integer("num_outputs", call.outputs)
        ends = [min(-(-whole // parts) * part, whole) for part in range(parts + 1)]
        found = tuple(end - start for start, end in pairwise(ends))
    else:
        found = call.sizes(1)
        if sum(found) != whole:
            raise OperatorError(f"Split's sizes {found} must add up to {whole}")
    return [TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in found]


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
        rest = [*kind.shape[:axis], *kind.shape[axis + 1 :]]
        if not all(map(call.agree, rest, [*shape[:axis], *shape[axis + 1 :]])) or len(kind.shape) != len(
            shape
        ):
            raise OperatorError(
                f"Concat cannot join shapes {inputs[0].shape} and {kind.shape} along axis {axis}"
            )
    return TensorType(inputs[0].dtype, tuple(shape))


def _tile(call: Call, x: Array, repeats: Array) -> Array:
    return np.tile(x, tuple(int(count) for count in repeats))


def _tile_type(call: Call, x: TensorType, repeats: TensorType) -> TensorType:
    sizes = (size * count for size, count in zip(x.shape, call.sizes(1), strict=True))
    return TensorType(x.dtype, tuple(sizes))


def _pads(rank: int, pads: Array, axes: Array | None) -> list[tuple[int, int]]:
    """Return the padding before and after each axis; negative padding crops."""
    result = [(0, 0)] * rank
    chosen, widths = list(range(rank)) if axes is None else [int(axis) for axis in axes], numbers(pads)
    for index, axis in enumerate(chosen):
        result[axis] = (widths[index], widths[len(chosen) + index])
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
    if not call.agree(height % size, 0) or not call.agree(width % size, 0):
        raise OperatorError(f"SpaceToDepth cannot cut {height} by {width} into blocks of {size}")
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


OPERATORS: Mapping[str, Operator] = {
    "Concat": Operator(_concat, _concat_type),
    "DepthToSpace": Operator(_depth_to_space, _depth_to_space_type),
    "Dropout": Operator(_dropout, _dropout_type),
    "Expand": Operator(_expand, _expand_type),
    "Flatten": Operator(_flatten, _flatten_type),
    "Identity": Operator(_identity, same),
    "Pad": Operator(_pad, _pad_type),
    "Reshape": Operator(_reshape, _reshape_type),
    "Slice": Operator(_slice, _slice_type),
    "SpaceToDepth": Operator(_space_to_depth, _space_to_depth_type),
    "Split": Operator(_split, _split_type),
    "Squeeze": Operator(_squeeze, _squeeze_type),
    "Tile": Operator(_tile, _tile_type),
    "Transpose": Operator(_transpose, _transpose_type),
    "Trilu": Operator(_triangle, same),
    "Unsqueeze": Operator(_unsqueeze, _unsqueeze_type),
}
