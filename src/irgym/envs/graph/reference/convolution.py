"""Convolutions."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.activations import OF_CONVOLUTIONS, activated
from irgym.envs.graph.reference.calls import Array, Call, Operator, OperatorError
from irgym.envs.graph.reference.windows import windows_of


def convolution(call: Call, x: Array, weights: Array, bias: Array | None = None) -> Array:
    """Return a convolution, with the attributes of ONNX's Conv.

    Args:
        call: With the attributes.
        x: Shape (batch, channels, *spatial).
        weights: Shape (filters, channels / group, *kernel).
        bias: Shape (filters,).

    Returns:
        Shape (batch, filters, *sizes).

    Raises:
        OperatorError: The channels do not fit, or no window does.
    """
    group, filters = call.integer("group", 1), weights.shape[0]
    _check_channels(call, x.shape, weights.shape)
    windows = windows_of(call, x.shape[2:], weights.shape[2:])
    rank = x.ndim - 2
    every = windows.of(x, 0).reshape(x.shape[0], group, weights.shape[1], *windows.sizes, *windows.kernel)
    # One matrix product for each group: its filters by (channels, kernel), and that by the windows.
    last = every.transpose(0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank))
    columns = last.reshape(x.shape[0], group, prod(weights.shape[1:]), prod(windows.sizes))
    result = weights.reshape(group, filters // group, prod(weights.shape[1:])) @ columns
    result = result.reshape(x.shape[0], filters, *windows.sizes)
    return result if bias is None else result + bias.reshape(bias.size, *(1,) * rank)


def convolution_type(
    call: Call, x: TensorType, weights: TensorType, *others: TensorType | None
) -> TensorType:
    """Return the type of a convolution."""
    _check_channels(call, x.shape, weights.shape)
    windows = windows_of(call, x.shape[2:], weights.shape[2:])
    return TensorType(x.dtype, (x.shape[0], weights.shape[0], *windows.sizes))


def with_activation(call: Call, x: Array) -> Array:
    """Return the activation of FusedConv and of nchwc's Conv."""
    return activated(x, call.text("activation", ""), call.numbers("activation_params", ()), OF_CONVOLUTIONS)


def _check_channels(call: Call, x: Sequence[int], weights: Sequence[int]) -> None:
    group = call.integer("group", 1)
    if not call.agree(x[1], weights[1] * group) or weights[0] % group:
        raise OperatorError(
            f"{call.operator} cannot use weights of shape {tuple(weights)} for {x[1]} channels "
            f"in {group} groups; make them fit"
        )


def _fused(
    call: Call, x: Array, weights: Array, bias: Array | None = None, added: Array | None = None
) -> Array:
    result = convolution(call, x, weights, bias)
    return with_activation(call, result if added is None else result + added)


def _transposed(call: Call, x: Array, weights: Array, bias: Array | None = None) -> Array:
    group, channels, kernel = call.integer("group", 1), weights.shape[1], weights.shape[2:]
    batch, spatial, rank = x.shape[0], x.shape[2:], x.ndim - 2
    strides, dilations = call.integers("strides", (1,) * rank), call.integers("dilations", (1,) * rank)
    sizes, pads = _transposed_sizes(call, spatial, kernel)
    whole = [sizes[axis] + pads[axis] + pads[rank + axis] for axis in range(rank)]
    result = np.zeros((batch, group * channels, *whole), x.dtype)
    grouped = x.reshape(batch, group, x.shape[1] // group, prod(spatial))
    by_group = weights.reshape(group, weights.shape[0] // group, channels, *kernel)
    for place in product(*map(range, kernel)):
        # Each element of the kernel adds the whole input at one offset.
        part = by_group[(..., *place)].swapaxes(1, 2) @ grouped
        starts = [place[axis] * dilations[axis] for axis in range(rank)]
        target = tuple(
            slice(start, start + (spatial[axis] - 1) * strides[axis] + 1, strides[axis])
            for axis, start in enumerate(starts)
        )
        result[(slice(None), slice(None), *target)] += part.reshape(batch, group * channels, *spatial)
    kept = tuple(slice(pads[axis], pads[axis] + sizes[axis]) for axis in range(rank))
    result = result[(slice(None), slice(None), *kept)]
    return result if bias is None else result + bias.reshape(bias.size, *(1,) * rank)


def _transposed_sizes(
    call: Call, spatial: Sequence[int], kernel: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of a transposed convolution, and the padding that is cut off."""
    for name in ("output_shape", "auto_pad"):
        if call.attributes.get(name, "NOTSET") != "NOTSET":
            raise call.refusal(f"the attribute {name!r}")
    rank = len(spatial)
    strides, dilations = call.integers("strides", (1,) * rank), call.integers("dilations", (1,) * rank)
    pads, more = call.integers("pads", (0,) * 2 * rank), call.integers("output_padding", (0,) * rank)
    whole = [
        (spatial[axis] - 1) * strides[axis] + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        for axis in range(rank)
    ]
    sizes = tuple(size - pads[axis] - pads[rank + axis] for axis, size in enumerate(whole))
    if min(sizes) <= 0:
        raise OperatorError(f"{call.operator} cuts off all that it computes; make its padding smaller")
    return sizes, pads


def _transposed_type(
    call: Call, x: TensorType, weights: TensorType, bias: TensorType | None = None
) -> TensorType:
    sizes, _ = _transposed_sizes(call, x.shape[2:], weights.shape[2:])
    return TensorType(x.dtype, (x.shape[0], weights.shape[1] * call.integer("group", 1), *sizes))


OPERATORS: Mapping[str, Operator] = {
    "Conv": Operator(convolution, convolution_type),
    "ConvTranspose": Operator(_transposed, _transposed_type),
    "com.microsoft.FusedConv": Operator(_fused, convolution_type),
}
