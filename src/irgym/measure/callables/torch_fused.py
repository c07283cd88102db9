"""Fused operators of `torch.nn` in graphs of `torch.compile`, as plain ones. Imported on use only.

In evaluation mode `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call one operator for the whole
layer, which ONNX lacks. There a mask hides keys where it is not 0, whatever the number.
"""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

KEYS = 1
"""Type of a mask of shape (batch, keys); those of other types are (batch, heads, queries, keys)."""


def unfused(graph: Any) -> Any:
    """Return a `torch.fx.GraphModule` with plain operators in place of fused ones; itself if it has none."""
    if not any(_is_fused(node) for node in graph.graph.nodes):
        return graph
    plain = torch.fx.Graph()
    plain.output(plain.graph_copy(graph.graph, {}))
    for node in plain.nodes:
        if _is_fused(node):
            node.target = _PLAIN[node.target]
    return torch.fx.GraphModule(graph, plain)


def _is_fused(node: Any) -> bool:
    return node.op == "call_function" and node.target in _PLAIN


def _multi_head_attention(
    query: Tensor, _key: Tensor, _value: Tensor, _width: int, heads: int, *given: Any
) -> tuple[Tensor, Tensor | None]:
    """Return what `torch._native_multi_head_attention` does; `nn.MultiheadAttention` gives one tensor."""
    weights, (mask, need_weights, average, kind) = given[:4], given[4:8]
    found, shares = _self_attention(query, heads, weights, mask, kind)
    if not need_weights:
        return found, None
    return found, shares.mean(1) if average else shares


def _encoder_layer(source: Tensor, width: int, heads: int, *given: Any) -> Tensor:
    """Return what `torch._transformer_encoder_layer_fwd` does."""
    attention, (gelu, norm_first, epsilon), norms, feed = given[:4], given[4:7], given[7:11], given[11:15]
    mask, kind = given[15:17]

    def first_norm(tensor: Tensor) -> Tensor:
        return functional.layer_norm(tensor, (width,), norms[0], norms[1], epsilon)

    def second_norm(tensor: Tensor) -> Tensor:
        return functional.layer_norm(tensor, (width,), norms[2], norms[3], epsilon)

    def fed(tensor: Tensor) -> Tensor:
        inner = functional.linear(tensor, feed[0], feed[1])
        return functional.linear(functional.gelu(inner) if gelu else inner.relu(), feed[2], feed[3])

    if norm_first:
        found = source + _self_attention(first_norm(source), heads, attention, mask, kind)[0]
        return found + fed(second_norm(found))
    found = first_norm(source + _self_attention(source, heads, attention, mask, kind)[0])
    return second_norm(found + fed(found))


def _self_attention(
    source: Tensor, heads: int, weights: tuple[Tensor, ...], mask: Tensor | None, kind: int | None
) -> tuple[Tensor, Tensor]:
    """Return the results of shape (batch, length, width) and the shares of all keys.

    Args:
        source: Queries, keys and values before their projections; of shape (batch, length, width).
        heads: Number of heads.
        weights: Weight and bias of these projections, one after the other, and of the last one.
        mask: Hides keys where it is not 0.
        kind: `KEYS`, or another number for masks of other shapes.
    """
    projected = functional.linear(source, weights[0], weights[1]).unflatten(-1, (3, heads, -1))
    queries, keys, values = projected.permute(2, 0, 3, 1, 4).unbind()
    scores = (queries / math.sqrt(queries.shape[-1])) @ keys.transpose(-2, -1)
    if mask is not None:
        hidden = mask[:, None, None, :] if kind == KEYS else mask
        scores = scores.masked_fill(hidden.to(torch.bool), -math.inf)
    shares = scores.softmax(-1)
    joined = (shares @ values).transpose(1, 2).flatten(-2)
    return functional.linear(joined, weights[2], weights[3]), shares


_BY_NAME = {
    "_native_multi_head_attention": _multi_head_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
}
"""Functions that compute the same as fused operators of torch, by the operators' names."""

_PLAIN: dict[Any, Callable[..., Any]] = {getattr(torch, name): plain for name, plain in _BY_NAME.items()}
"""The same by the operators."""
