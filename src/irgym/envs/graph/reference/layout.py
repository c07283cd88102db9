"""ONNX Runtime's operators on blocks of channels (NCHWc, domain `com.microsoft.nchwc`).

A blocked array keeps the shape (batch, channels, height, width), with channels rounded up to whole blocks,
but its elements are in the order (batch, channels / block, height, width, block).
"""

from collections.abc import Mapping

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference import convolution, pooling
from irgym.envs.graph.reference.calls import Array, Call, Meaning, Operator, OperatorError, TypeRule


def block_channels(x: Array, block: int) -> Array:
    """Return an array in blocks; padding channels in the last block are zeros.

    Args:
        x: Shape (batch, channels, height, width).
        block: Channels of a block.
    """
    x = _filled_up(x, 1, block)
    n, c, h, w = x.shape
    return x.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2).reshape(n, c, h, w)


def unblock_channels(x: Array, block: int) -> Array:
    """Undo `block_channels`, but keep the padding channels."""
    n, c, h, w = x.shape
    return x.reshape(n, c // block, h, w, block).transpose(0, 1, 4, 2, 3).reshape(n, c, h, w)


def block_weights(weights: Array, block: int, *, inputs: bool) -> Array:
    """Return the weights of a convolution in the order in which nchwc's Conv reads them.

    Args:
        weights: Shape (filters, channels / group, height, width).
        block: Channels of a block.
        inputs: Whether input channels are in blocks, too. The order of elements is then OIHWBiBo: (filters /
            block, channels / block, height, width, channels of a block, filters of a block). Otherwise it is
            OIHWBo: (filters / block, channels, height, width, filters of a block), for inputs with fewer
            channels than a block, which stay in NCHW, and for depthwise convolutions.

    Returns:
        Shape (filters, channels / group, height, width); filters, and channels if they are in blocks, are
        rounded up to whole blocks. The padding is zero.
    """
    weights = _filled_up(weights, 0, block)
    weights = _filled_up(weights, 1, block) if inputs else weights
    o, i, h, w = weights.shape
    inner = block if inputs else 1
    parts = weights.reshape(o // block, block, i // inner, inner, h, w)
    return parts.transpose(0, 2, 4, 5, 3, 1).reshape(o, i, h, w)


def unblock_weights(weights: Array, block: int, *, inputs: bool) -> Array:
    """Undo `block_weights`, but keep the padding."""
    o, i, h, w = weights.shape
    inner = block if inputs else 1
    parts = weights.reshape(o // block, i // inner, h, w, inner, block)
    return parts.transpose(0, 5, 1, 4, 2, 3).reshape(o, i, h, w)


def _filled_up(x: Array, axis: int, block: int) -> Array:
    """Return an array padded with zeros at the end of an axis, to whole blocks."""
    missing = -x.shape[axis] % block
    return np.pad(x, [(0, missing if d == axis else 0) for d in range(x.ndim)]) if missing else x


def _reorder_input(call: Call, x: Array) -> Array:
    first = np.moveaxis(x, -1, 1) if call.integer("channels_last", 0) else x
    return block_channels(first, call.block)


def _reorder_input_type(call: Call, x: TensorType) -> TensorType:
    n, c, h, w = x.shape
    if call.integer("channels_last", 0):
        n, h, w, c = x.shape
    return TensorType(x.dtype, (n, -(-c // call.block) * call.block, h, w))


def _reorder_output(call: Call, x: Array) -> Array:
    result = unblock_channels(x, call.block)[:, : call.integer("channels")]
    return np.moveaxis(result, 1, -1) if call.integer("channels_last", 0) else result


def _reorder_output_type(call: Call, x: TensorType) -> TensorType:
    n, _, h, w = x.shape
    c = call.integer("channels")
    return TensorType(x.dtype, (n, h, w, c) if call.integer("channels_last", 0) else (n, c, h, w))


def _convolution(
    call: Call, x: Array, weights: Array, bias: Array | None = None, added: Array | None = None
) -> Array:
    block, (filters, channels, *_) = call.block, weights.shape
    group = call.integer("group", 1)
    if filters % block or (x.shape[1] >= block and x.shape[1] % block):
        raise OperatorError(f"{call.operator} needs whole blocks of {block} channels; fill up the last one")
    if channels % block and (channels > block or (group > 1 and channels > 1)):
        raise call.refusal(f"groups of {channels} channels and blocks of {block}")
    plain = unblock_channels(x, block) if x.shape[1] >= block else x
    result = convolution.convolution(
        call, plain, unblock_weights(weights, block, inputs=channels >= block), bias
    )
    result = block_channels(result, block)
    return convolution.with_activation(call, result if added is None else result + added)


def _upsample(call: Call, x: Array) -> Array:
    if call.text("mode", "nearest") != "nearest":
        raise call.refusal("another mode than nearest")
    _, _, height, width = call.integers("scales")
    larger = unblock_channels(x, call.block).repeat(height, 2).repeat(width, 3)
    return block_channels(larger, call.block)


def _upsample_type(call: Call, x: TensorType) -> TensorType:
    sizes = zip(x.shape, call.integers("scales"), strict=True)
    return TensorType(x.dtype, tuple(size * scale for size, scale in sizes))


def _average_pool(call: Call, x: Array) -> Array:
    # Unlike the plain AveragePool, it counts elements of windows beyond the padding (ceil_mode).
    return pooling.average_pool(call, x, whole=True)


def _pool(meaning: Meaning, types: TypeRule) -> Operator:
    """Return the pool on blocks, given the pool on plain arrays."""

    def blocked(call: Call, x: Array) -> Array:
        result = meaning(call, unblock_channels(x, call.block))
        return block_channels(result if isinstance(result, np.ndarray) else result[0], call.block)

    return Operator(blocked, types)


def _pool_of(name: str) -> Operator:
    return _pool(pooling.OPERATORS[name].meaning, pooling.OPERATORS[name].types)


OPERATORS: Mapping[str, Operator] = {
    "com.microsoft.nchwc.AveragePool": _pool(_average_pool, pooling.pool_type),
    "com.microsoft.nchwc.Conv": Operator(_convolution, convolution.convolution_type),
    "com.microsoft.nchwc.GlobalAveragePool": _pool_of("GlobalAveragePool"),
    "com.microsoft.nchwc.GlobalMaxPool": _pool_of("GlobalMaxPool"),
    "com.microsoft.nchwc.MaxPool": _pool_of("MaxPool"),
    "com.microsoft.nchwc.ReorderInput": Operator(_reorder_input, _reorder_input_type),
    "com.microsoft.nchwc.ReorderOutput": Operator(_reorder_output, _reorder_output_type),
    "com.microsoft.nchwc.Upsample": Operator(_upsample, _upsample_type),
}
