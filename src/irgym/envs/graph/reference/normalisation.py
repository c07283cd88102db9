"""Normalisations.

Statistics are computed in the precision of the inputs, but at least in float32; `stash_type` is ignored.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator, positive_axis, same


def _wide(dtype: str | np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Return the type in which statistics are computed."""
    return np.promote_types(dtype, np.float32)


def _normalised(x: Array, axes: Sequence[int], epsilon: float, *, centred: bool = True) -> list[Array]:
    """Return x normalised over axes, its mean, and the inverse of its deviation, in the wide type."""
    wide, over = x.astype(_wide(x.dtype), copy=False), tuple(axes)
    mean = np.asarray(wide.mean(axis=over, keepdims=True))
    shifted: Array = wide - mean if centred else wide
    deviation: Array = np.sqrt((shifted * shifted).mean(axis=over, keepdims=True) + epsilon)
    return [shifted / deviation, mean, 1 / deviation]


def _scaled(x: Array, normalised: Array, scale: Array, bias: Array | None = None) -> Array:
    result = normalised.astype(x.dtype, copy=False) * scale
    return (result if bias is None else result + bias).astype(x.dtype, copy=False)


def _axes(call: Call, rank: int) -> range:
    return range(positive_axis(call.integer("axis", -1), rank), rank)


def _layer(call: Call, x: Array, scale: Array, bias: Array | None = None) -> list[Array]:
    normalised, *statistics = _normalised(x, _axes(call, x.ndim), call.number("epsilon", 1e-5))
    return [_scaled(x, normalised, scale, bias), *statistics]


def _simplified(call: Call, x: Array, scale: Array) -> list[Array]:
    epsilon = call.number("epsilon", 1e-5)
    normalised, _, inverse = _normalised(x, _axes(call, x.ndim), epsilon, centred=False)
    return [_scaled(x, normalised, scale), inverse]


def _root_mean_square(call: Call, x: Array, scale: Array) -> Array:
    return _simplified(call, x, scale)[0]


def _statistics(call: Call, x: TensorType) -> TensorType:
    axes = _axes(call, len(x.shape))
    return TensorType(_wide(x.dtype).name, (*x.shape[: axes.start], *(1 for _ in axes)))


def _layer_type(call: Call, x: TensorType, *others: TensorType | None) -> list[TensorType]:
    return [x, _statistics(call, x), _statistics(call, x)]


def _simplified_type(call: Call, x: TensorType, *others: TensorType | None) -> list[TensorType]:
    return [x, _statistics(call, x)]


def _skip(
    call: Call, x: Array, skip: Array, scale: Array, bias: Array | None = None, before: Array | None = None
) -> list[Array]:
    """Return SkipLayerNormalization; `before` is the bias that is added before normalising."""
    total = x + skip if before is None else x + skip + before
    normalised, *statistics = _normalised(total, (-1,), call.number("epsilon", 1e-12))
    return [_scaled(x, normalised, scale, bias), *statistics, total]


def _skip_simplified(
    call: Call, x: Array, skip: Array, scale: Array, before: Array | None = None
) -> list[Array]:
    total = x + skip if before is None else x + skip + before
    normalised, *statistics = _normalised(total, (-1,), call.number("epsilon", 1e-12), centred=False)
    return [_scaled(x, normalised, scale), *statistics, total]


def _skip_type(call: Call, x: TensorType, *others: TensorType | None) -> list[TensorType]:
    return [*_layer_type(call, x), x]


def _embedded(
    call: Call,
    words: Array,
    segments: Array | None,
    by_word: Array,
    by_place: Array,
    by_segment: Array | None,
    scale: Array,
    bias: Array,
    mask: Array | None = None,
    places: Array | None = None,
) -> list[Array]:
    """Return EmbedLayerNormalization: the normalised sum of three embeddings."""
    total = by_word[words] + by_place[np.arange(words.shape[1]) if places is None else places]
    if segments is not None and by_segment is not None:
        total = total + by_segment[segments]
    normalised, *_ = _normalised(total, (-1,), call.number("epsilon", 1e-12))
    lengths = np.zeros(len(words)) if mask is None else (mask == 1).sum(axis=1)
    return [_scaled(total, normalised, scale, bias), lengths.astype(np.int32), total]


def _embedded_type(
    call: Call,
    words: TensorType,
    segments: TensorType | None,
    by_word: TensorType,
    *others: TensorType | None,
) -> list[TensorType]:
    result = TensorType(by_word.dtype, (*words.shape, by_word.shape[1]))
    return [result, TensorType("int32", words.shape[:1]), result]


def _by_channel(values: Array, rank: int) -> Array:
    return values.reshape(values.size, *(1,) * (rank - 2))


def _batch(call: Call, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    if call.integer("training_mode", 0):
        raise call.refusal("training_mode")
    scale, bias, mean, variance = (_by_channel(values, x.ndim) for values in (scale, bias, mean, variance))
    result = (x - mean) / np.sqrt(variance + call.number("epsilon", 1e-5)) * scale + bias
    return result.astype(x.dtype, copy=False)


def _instance(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    normalised, *_ = _normalised(x, range(2, x.ndim), call.number("epsilon", 1e-5))
    return _scaled(x, normalised, _by_channel(scale, x.ndim), _by_channel(bias, x.ndim))


def _group(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    groups, channels = call.integer("num_groups"), x.shape[1]
    grouped = x.reshape(x.shape[0], groups, prod(x.shape[1:]) // groups)
    normalised = _normalised(grouped, (-1,), call.number("epsilon", 1e-5))[0].reshape(x.shape)
    # Before operator set 21, there is a scale and a bias for each group.
    scale, bias = (np.repeat(values, channels // values.size) for values in (scale, bias))
    return _scaled(x, normalised, _by_channel(scale, x.ndim), _by_channel(bias, x.ndim))


OPERATORS: Mapping[str, Operator] = {
    "BatchNormalization": Operator(_batch, same),
    "GroupNormalization": Operator(_group, same),
    "InstanceNormalization": Operator(_instance, same),
    "LayerNormalization": Operator(_layer, _layer_type),
    "RMSNormalization": Operator(_root_mean_square, same),
    "SimplifiedLayerNormalization": Operator(_simplified, _simplified_type),
    "com.microsoft.EmbedLayerNormalization": Operator(_embedded, _embedded_type),
    "com.microsoft.SkipLayerNormalization": Operator(_skip, _skip_type),
    "com.microsoft.SkipSimplifiedLayerNormalization": Operator(_skip_simplified, _skip_type),
}
