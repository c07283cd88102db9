"""Functions that compute weights from weights: on arrays, and on shapes alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir import winograd
from irgym.envs.graph.ir.sizes import broadcast_shapes

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Function:
    """A function that computes weights.

    Attributes:
        shape: Maps shapes and plain values to the result's shape.
        array: Maps arrays and plain values to the result.
    """

    shape: Callable[..., Shape]
    array: Callable[..., Array]


def _broadcast(*shapes: Shape | float) -> Shape:
    return broadcast_shapes(*[shape for shape in shapes if isinstance(shape, tuple)])


def _same(shape: Shape, *_: Any) -> Shape:
    return shape


def _given(_: Any, shape: Shape) -> Shape:
    return shape


def _deviation(variance: Array, epsilon: float) -> Array:
    """Return the standard deviation that a batch normalisation divides by."""
    return np.sqrt(variance + epsilon)


def _joined(axis: int, *shapes: Shape) -> Shape:
    first = shapes[0]
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _join(axis: int, *arrays: Array) -> Array:
    return np.concatenate(arrays, axis)


def _turned(shape: Shape, order: Sequence[int]) -> Shape:
    return tuple(shape[axis] for axis in order)


def _turn(array: Array, order: Sequence[int]) -> Array:
    return array.transpose(order).copy()  # keeps 0 dimensions


def _reshape(array: Array, shape: Shape) -> Array:
    return array.reshape(shape)


def _product(left: Shape, right: Shape) -> Shape:
    return (*left[:-1], right[-1])


def _padded(shape: Shape, before: Shape, after: Shape) -> Shape:
    return tuple(size + low + high for size, low, high in zip(shape, before, after, strict=True))


def _pad(array: Array, before: Shape, after: Shape) -> Array:
    return np.pad(array, list(zip(before, after, strict=True)))


def _mask(like: Array, seen: Array) -> Array:
    """Return the additive form of a Boolean mask, with elements of the type of `like`."""
    return np.where(seen, np.zeros((), like.dtype), -np.inf)


def _zeros(like: Array, shape: Shape) -> Array:
    return np.zeros(shape, like.dtype)


def _part_shape(shape: Shape, axis: int, start: int, stop: int) -> Shape:
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


def _part(array: Array, axis: int, start: int, stop: int) -> Array:
    return array[(slice(None),) * axis + (slice(start, stop),)]


def _blocked(weights: Array, block: int, inputs_too: bool) -> Array:
    """Return a convolution's weights in the order of ONNX Runtime's nchwc kernels, in their former shape.

    Output channels are blocked, and input channels too if `inputs_too` (OIHWBiBo, else OIHWBo).
    """
    out, into, *window = weights.shape
    inner = block if inputs_too else 1
    cut = weights.reshape(out // block, block, into // inner, inner, *window)
    rank = len(window)
    order = (0, 2, *range(4, 4 + rank), 3, 1)
    return np.ascontiguousarray(cut.transpose(order)).reshape(weights.shape)


def _without_padding(weights: Array, block: int, channels: int, inputs_too: bool) -> Array:
    """Return blocked weights with zeros for the channels that pad the last block.

    The first `channels` input channels (if `inputs_too`, else output channels) keep their weights.
    """
    out, into, *window = weights.shape
    inner = block if inputs_too else 1
    cut = weights.reshape(out // block, into // inner, *window, inner, block)
    places: Array = np.arange(int(into if inputs_too else out))
    ones = (1,) * len(window)
    shape = (1, into // inner, *ones, inner, 1) if inputs_too else (out // block, 1, *ones, 1, block)
    kept = places.reshape(shape) < channels
    return np.where(kept, cut, 0).reshape(weights.shape)


def _joined_groups(weights: Array, groups: int) -> Array:
    """Return the weights of a convolution with each pair of neighbouring groups joined, padded with zeros.

    Args:
        weights: Shape (filters, channels of a group, *window).
        groups: Number of groups; even.

    Returns:
        Shape (filters, 2 * channels of a group, *window).
    """
    filters, channels, *window = weights.shape
    pairs = weights.reshape(groups // 2, 2, filters // groups, channels, *window)
    joined = np.zeros((groups // 2, 2, filters // groups, 2, channels, *window), weights.dtype)
    joined[:, 0, :, 0], joined[:, 1, :, 1] = pairs[:, 0], pairs[:, 1]
    return joined.reshape(filters, 2 * channels, *window)


def _joined_groups_shape(shape: Shape, _: int) -> Shape:
    return (shape[0], 2 * shape[1], *shape[2:])


def _gates(weights: Array, order: Sequence[int]) -> Array:
    """Return the weights or biases of a recurrent cell with its gates in another order.

    Args:
        weights: Shape (gates * hidden, *rest), gate after gate.
        order: The old place of each gate.
    """
    return weights.reshape(len(order), len(weights) // len(order), *weights.shape[1:])[list(order)].reshape(
        weights.shape
    )


def _row_shape(shape: Shape) -> Shape:
    return shape[-1:]


def _row(array: Array) -> Array:
    """Return the first of an array's rows, which are all equal."""
    return array.reshape(-1, array.shape[-1])[0]


def _spread(array: Array, shape: Shape) -> Array:
    """Return an array of one element repeated in a shape, or one that has the shape already."""
    return np.broadcast_to(array.reshape(shape if array.size == prod(shape) else ()), shape)


def _raised(like: Array, integers: Array) -> Array:
    """Return signed integers of 8 bits as unsigned ones, 128 higher, of the type of `like`."""
    return (integers.astype(np.int16) + 128).astype(like.dtype)


def _dequantised(scale: Array, integers: Array, axis: int, *zero: Array) -> Array:
    """Return the numbers of a DequantizeLinear, of the type of the scale.

    Args:
        scale: One number, or one for each place along an axis.
        integers: The integers.
        axis: The axis, counted from the front.
        zero: The zero point, if there is one, of the shape of the scale.
    """

    def along(parameter: Array) -> Array:
        shape = [-1 if place == axis else 1 for place in range(integers.ndim)]
        return parameter.reshape(() if parameter.size == 1 else shape)

    steps = integers.astype(np.int64) - sum(along(known).astype(np.int64) for known in zero)
    return steps.astype(scale.dtype) * along(scale)


def _dequantised_shape(scale: Shape, integers: Shape, *_: Any) -> Shape:
    return integers


FUNCTIONS: Mapping[str, Function] = {
    "add": Function(_broadcast, np.add),
    "subtract": Function(_broadcast, np.subtract),
    "multiply": Function(_broadcast, np.multiply),
    "divide": Function(_broadcast, np.divide),
    "deviation": Function(_same, _deviation),
    "concat": Function(_joined, _join),
    "transpose": Function(_turned, _turn),
    "reshape": Function(_given, _reshape),
    "matmul": Function(_product, np.matmul),
    "pad": Function(_padded, _pad),
    "mask": Function(_given, _mask),
    "zeros": Function(_given, _zeros),
    "part": Function(_part_shape, _part),
    "blocked": Function(_same, _blocked),
    "without_padding": Function(_same, _without_padding),
    "joined_groups": Function(_joined_groups_shape, _joined_groups),
    "gates": Function(_same, _gates),
    "row": Function(_row_shape, _row),
    "spread": Function(_given, _spread),
    "dequantised": Function(_dequantised_shape, _dequantised),
    "raised": Function(_dequantised_shape, _raised),
    "winograd_weights": Function(winograd.weights_shape, winograd.weights),
    "winograd_inputs": Function(winograd.inputs_shape, winograd.inputs),
    "winograd_outputs": Function(winograd.outputs_shape, winograd.outputs),
    "winograd_tiles": Function(winograd.tiles_shape, winograd.tiles),
}
"""Functions of weights, by name."""
