"""Layers that several models share."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Tree, floats, stacked

Block = Callable[[jax.Array, Tree, jax.Array | None], jax.Array]
"""Maps activations, a layer's weights and a random key (None without dropout) to activations."""


def dense_shapes(inputs: int, outputs: int) -> Tree:
    """Return the weights of a dense layer."""
    return {"kernel": floats(inputs, outputs), "bias": floats(outputs)}


def dense(x: jax.Array, weights: Tree) -> jax.Array:
    """Apply a dense layer to the last axis."""
    return x @ weights["kernel"] + weights["bias"]


def norm_shapes(width: int) -> Tree:
    """Return the scale and offset of a normalisation."""
    return {"scale": floats(width), "offset": floats(width)}


def layer_norm(x: jax.Array, weights: Tree) -> jax.Array:
    """Normalise the last axis (Ba et al., arXiv 1607.06450)."""
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weights["scale"] + weights["offset"]


def dropout(key: jax.Array, x: jax.Array, rate: float = 0.1) -> jax.Array:
    """Set elements to zero with probability `rate` and scale up the others."""
    keep = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0.0)


def maybe_dropout(key: jax.Array | None, x: jax.Array, rate: float = 0.1) -> jax.Array:
    """Apply dropout if there is a random key."""
    return x if key is None else dropout(key, x, rate)


def split_heads(x: jax.Array, heads: int) -> jax.Array:
    """Return (batch, sequence, width) as (batch, heads, sequence, width of a head)."""
    batch, sequence, width = x.shape
    return x.reshape(batch, sequence, heads, width // heads).transpose(0, 2, 1, 3)


def merge_heads(x: jax.Array) -> jax.Array:
    """Undo `split_heads`."""
    batch, heads, sequence, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, sequence, heads * width)


def attend(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    mask: jax.Array | None = None,
    noise: jax.Array | None = None,
) -> jax.Array:
    """Apply scaled dot-product attention (Vaswani et al., arXiv 1706.03762).

    Args:
        query: (batch, heads, queries, width).
        key: (batch, heads, keys, width).
        value: (batch, heads, keys, width).
        mask: True where a query may attend to a key; broadcast to (batch, heads, queries, keys).
        noise: Random key of the dropout on the attention weights; None for no dropout.
    """
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) / jnp.sqrt(query.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(value.dtype)
    return jnp.einsum("bhqk,bhkd->bhqd", maybe_dropout(noise, weights), value)


def causal(sequence: int) -> jax.Array:
    """Return the mask that hides later positions."""
    return jnp.tril(jnp.ones((sequence, sequence), bool))


def attention_shapes(width: int) -> Tree:
    """Return the weights of self-attention with one projection for query, key and value."""
    return {"qkv": dense_shapes(width, 3 * width), "output": dense_shapes(width, width)}


def self_attention(
    x: jax.Array, weights: Tree, heads: int, mask: jax.Array | None = None, noise: jax.Array | None = None
) -> jax.Array:
    """Apply multi-head self-attention to (batch, sequence, width)."""
    query, key, value = jnp.split(dense(x, weights["qkv"]), 3, axis=-1)
    mixed = attend(split_heads(query, heads), split_heads(key, heads), split_heads(value, heads), mask, noise)
    return dense(merge_heads(mixed), weights["output"])


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the negative log-likelihood of integer labels, with the labels' shape."""
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(logs, labels[..., None], axis=-1)[..., 0]


def layers_shapes(block: Tree, count: int, scan: bool) -> Tree:
    """Return the weights of `count` equal layers: a list, or stacked for a scan."""
    return stacked(block, count) if scan else [block] * count


def split_key(key: jax.Array | None) -> tuple[jax.Array | None, jax.Array | None]:
    """Return two random keys; None twice for no key."""
    if key is None:
        return None, None
    first, second = jax.random.split(key)
    return first, second


def apply_layers(
    block: Block,
    x: jax.Array,
    layers: Tree,
    key: jax.Array | None,
    count: int,
    *,
    scan: bool,
    remat: bool = False,
) -> jax.Array:
    """Apply equal layers in turn.

    Args:
        block: One layer.
        x: Activations.
        layers: Weights as in `layers_shapes`.
        key: Random key, split between the layers; None without dropout.
        count: Number of layers.
        scan: Loop with `lax.scan` instead of unrolling.
        remat: Compute each layer's activations again in the backward pass instead of keeping them.
    """
    layer = jax.checkpoint(block) if remat else block
    keys = None if key is None else jax.random.split(key, count)
    if scan:
        return jax.lax.scan(lambda carry, inputs: (layer(carry, *inputs), None), x, (layers, keys))[0]
    for index in range(count):
        x = layer(x, layers[index], None if keys is None else keys[index])
    return x


def feed_forward_shapes(width: int, hidden: int) -> Tree:
    """Return the weights of two dense layers with a wider one between."""
    return {"expand": dense_shapes(width, hidden), "contract": dense_shapes(hidden, width)}


def feed_forward(x: jax.Array, weights: Tree, *, exact: bool = False) -> jax.Array:
    """Apply two dense layers with a GELU between, which uses the error function if `exact`."""
    return dense(jax.nn.gelu(dense(x, weights["expand"]), approximate=not exact), weights["contract"])


def block_shapes(width: int) -> Tree:
    """Return the weights of a transformer layer."""
    return {
        "attention": attention_shapes(width),
        "first_norm": norm_shapes(width),
        "second_norm": norm_shapes(width),
        "feed_forward": feed_forward_shapes(width, 4 * width),
    }


def pre_norm_block(
    x: jax.Array, weights: Tree, key: jax.Array | None, heads: int, mask: jax.Array | None = None
) -> jax.Array:
    """Apply a transformer layer that normalises before attention and before the feed-forward layers."""
    first, second = split_key(key)
    x = x + self_attention(layer_norm(x, weights["first_norm"]), weights["attention"], heads, mask, first)
    update = feed_forward(layer_norm(x, weights["second_norm"]), weights["feed_forward"])
    return x + maybe_dropout(second, update)
