"""Attention: ONNX's operator, and ONNX Runtime's operators with one or three inputs."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator
from irgym.envs.graph.reference.reductions import softmax


def _split_heads(x: Array, heads: int) -> Array:
    """Reshape (batch, length, heads * size) to (batch, heads, length, size)."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def _join_heads(x: Array) -> Array:
    """Reshape (batch, heads, length, size) to (batch, length, heads * size)."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


def _causal(length: int, total: int, before: int, dtype: np.dtype[np.generic]) -> Array:
    """Return a mask to add to scores, shape (length, total), where row i sees columns up to i + before."""
    return _unseen(np.tri(length, total, before, dtype=bool), dtype)


def _unseen(seen: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return a mask to add to scores from a boolean one, which is false for hidden places."""
    added: Array = np.where(seen, 0, -np.inf)
    return added.astype(dtype)


# ONNX Runtime's operators.

_SPLIT = "packed or split inputs (query, key and value of other than 3 dimensions)"


def _masked(call: Call, mask: Array, batch: int, total: int, dtype: np.dtype[np.generic]) -> Array:
    """Return the mask that ONNX Runtime adds to scores, broadcastable to (batch, heads, length, total).

    The operand `mask` holds 1 for visible places, shape (batch, total) or (batch, length, total). Or it holds
    the end of the visible places for each element of the batch, and optionally, after all ends, the
    beginnings.
    """
    places = np.arange(total)
    if mask.ndim == 2:
        seen = (mask > 0)[:, None, None, :]
    elif mask.ndim == 3:
        seen = (mask > 0)[:, None, :, :]
    elif mask.shape == (batch,):
        seen = (places < mask[:, None])[:, None, None, :]
    elif mask.shape == (2 * batch,):
        ends, starts = mask.reshape(2, batch, 1)
        seen = ((places < ends) & (places >= starts))[:, None, None, :]
    else:
        raise call.refusal(f"a mask of shape {mask.shape}")
    return np.where(seen, 0, call.number("mask_filter_value", -10000.0)).astype(dtype)


def _attend(
    call: Call, query: Array, key: Array, value: Array, mask: Array | None, added: Array | None
) -> Array:
    """Return ONNX Runtime's attention.

    Args:
        call: With `num_heads`, `scale`, `unidirectional` and `mask_filter_value`.
        query: Shape (batch, length, hidden).
        key: Shape (batch, total, hidden).
        value: Shape (batch, total, value hidden).
        mask: See `_masked`.
        added: Mask to add to the scores, broadcastable to (batch, heads, length, total).

    Returns:
        Shape (batch, length, value hidden).
    """
    heads = call.integer("num_heads")
    q, k, v = (_split_heads(array, heads) for array in (query, key, value))
    scale = call.number("scale", 0.0) or 1 / math.sqrt(q.shape[-1])
    scores = scale * (q @ k.swapaxes(-1, -2))
    if added is not None:
        scores = scores + added
    if mask is not None:
        scores = scores + _masked(call, mask, len(query), key.shape[1], query.dtype)
    if call.integer("unidirectional", 0):
        scores = scores + _causal(query.shape[1], key.shape[1], 0, query.dtype)
    return _join_heads(softmax(scores.astype(query.dtype, copy=False)) @ v)


def _multi_head(
    call: Call,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    added: Array | None = None,
    *past: Array | None,
) -> Array:
    _refuse_past(call, past)
    if query.ndim != 3 or key is None or key.ndim != 3 or value is None or value.ndim != 3:
        raise call.refusal(_SPLIT)
    if bias is not None:
        hidden = query.shape[-1]
        query, key, value = (
            projected + part
            for projected, part in zip((query, key, value), np.split(bias, [hidden, 2 * hidden]), strict=True)
        )
    return _attend(call, query, key, value, mask, added)


def _multi_head_type(
    call: Call, query: TensorType, key: TensorType, value: TensorType, *others: TensorType | None
) -> TensorType:
    _refuse_past(call, others[3:])
    if any(len(kind.shape) != 3 for kind in (query, key, value)):
        raise call.refusal(_SPLIT)
    return TensorType(query.dtype, (*query.shape[:2], value.shape[-1]))


def _packed(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    past: Array | None = None,
    added: Array | None = None,
    *others: Array | None,
) -> Array:
    _refuse_past(call, (past, *others))
    projected = x @ weights
    if bias is not None:
        projected = projected + bias
    sizes = _hidden_sizes(call, weights.shape)
    query, key, value = np.split(projected, [sizes[0], sizes[0] + sizes[1]], axis=-1)
    return _attend(call, query, key, value, mask, added)


def _packed_type(call: Call, x: TensorType, weights: TensorType, *others: TensorType | None) -> TensorType:
    _refuse_past(call, (*others[2:3], *others[4:]))
    return TensorType(x.dtype, (*x.shape[:2], _hidden_sizes(call, weights.shape)[2]))


def _hidden_sizes(call: Call, weights: Sequence[int]) -> tuple[int, ...]:
    if call.integer("do_rotary", 0):
        raise call.refusal("do_rotary")
    return call.integers("qkv_hidden_sizes", (weights[1] // 3,) * 3)


def _refuse_past(call: Call, past: Sequence[object]) -> None:
    if any(state is not None for state in past):
        raise call.refusal("a past state")


# ONNX's operator, since operator set 23.


def _attention(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
) -> list[Array]:
    joined = query.ndim == 3
    if joined:
        query = _split_heads(query, call.integer("q_num_heads"))
        key, value = (_split_heads(array, call.integer("kv_num_heads")) for array in (key, value))
    before = 0
    if past_key is not None and past_value is not None:
        before = past_key.shape[2]
        if call.integer("is_causal", 0) and query.shape[2] == 1 < key.shape[2]:
            # ONNX Runtime 1.32 lets the query see all keys in this case.
            raise call.refusal("is_causal, a past state, and one query for many keys")
        key, value = np.concatenate([past_key, key], 2), np.concatenate([past_value, value], 2)
    shared = query.shape[1] // key.shape[1]
    k, v = np.repeat(key, shared, 1), np.repeat(value, shared, 1)
    scale = call.number("scale", 1 / math.sqrt(query.shape[-1]))
    scores = scale * (query @ k.swapaxes(-1, -2))
    stages = [scores]
    if cap := call.number("softcap", 0.0):
        scores = cap * np.tanh(scores / cap)
    stages.append(scores)
    if mask is not None:
        scores = scores + (_unseen(mask, query.dtype) if mask.dtype == np.bool_ else mask)
    if call.integer("is_causal", 0):
        scores = scores + _causal(query.shape[2], key.shape[2], before, query.dtype)
    stages += [scores, softmax(scores)]
    result = stages[3] @ v
    return [
        _join_heads(result) if joined else result,
        key,
        value,
        stages[call.integer("qk_matmul_output_mode", 0)],
    ]


def _attention_type(
    call: Call, query: TensorType, key: TensorType, value: TensorType, *others: TensorType | None
) -> list[TensorType]:
    if len(query.shape) == 3:
        batch, length, _ = query.shape
        heads, kv_heads = call.integer("q_num_heads"), call.integer("kv_num_heads")
        sizes = key.shape[2] // kv_heads, value.shape[2] // kv_heads
        total = key.shape[1]
    else:
        batch, heads, length, _ = query.shape
        kv_heads, total = key.shape[1:3]
        sizes = key.shape[3], value.shape[3]
    if len(others) > 1 and others[1] is not None:
        total += others[1].shape[2]
    shape = (batch, length, heads * sizes[1]) if len(query.shape) == 3 else (batch, heads, length, sizes[1])
    shapes = [shape, *((batch, kv_heads, total, size) for size in sizes), (batch, heads, length, total)]
    return [TensorType(query.dtype, shape) for shape in shapes]


OPERATORS: Mapping[str, Operator] = {
    "Attention": Operator(_attention, _attention_type),
    "com.microsoft.Attention": Operator(_packed, _packed_type),
    "com.microsoft.MultiHeadAttention": Operator(_multi_head, _multi_head_type),
}
