"""Steps of text generation with a cache of keys and values: sampling and beam search."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import KEY, Model, Options, Tree, floats, integers, stacked
from irgym.envs.hlo.programs.models.networks.layers import (
    attend,
    block_shapes,
    dense,
    feed_forward,
    layer_norm,
    layers_shapes,
    norm_shapes,
)


def _shapes(options: Options, rows: int) -> tuple[Tree, Tree]:
    """Return the weights of a GPT-2 and the caches of its layers for `rows` sequences."""
    layers, width, heads, context = (options[n] for n in ("layers", "width", "heads", "context"))
    parameters = {
        "tokens": floats(options["vocabulary"], width),
        "positions": floats(context, width),
        "blocks": layers_shapes(block_shapes(width), layers, options["scan"]),
        "norm": norm_shapes(width),
    }
    room = floats(rows, heads, context, width // heads)
    cache = {"key": room, "value": room}
    return parameters, stacked(cache, layers) if options["scan"] else [cache] * layers


def _attend_cached(x: jax.Array, weights: Tree, cache: Tree, place: jax.Array) -> tuple[jax.Array, Tree]:
    """Attend from one new position (rows, width) to those before it, which the cache holds."""
    rows, heads, context, size = cache["key"].shape
    query, key, value = jnp.split(dense(x, weights["qkv"]), 3, axis=-1)
    start = (0, 0, place, 0)
    cache = {
        "key": jax.lax.dynamic_update_slice(cache["key"], key.reshape(rows, heads, 1, size), start),
        "value": jax.lax.dynamic_update_slice(cache["value"], value.reshape(rows, heads, 1, size), start),
    }
    seen = (jnp.arange(context) <= place)[None, None, None, :]
    mixed = attend(query.reshape(rows, heads, 1, size), cache["key"], cache["value"], seen)
    return dense(mixed.reshape(rows, heads * size), weights["output"]), cache


def _block(x: jax.Array, weights: Tree, cache: Tree, place: jax.Array) -> tuple[jax.Array, Tree]:
    attended, cache = _attend_cached(layer_norm(x, weights["first_norm"]), weights["attention"], cache, place)
    x = x + attended
    return x + feed_forward(layer_norm(x, weights["second_norm"]), weights["feed_forward"]), cache


def _next_logits(
    weights: Tree, tokens: jax.Array, caches: Tree, place: jax.Array, scan: bool
) -> tuple[jax.Array, Tree]:
    """Return the logits (rows, vocabulary) after one token (rows,) at a place, and the new caches."""
    x = weights["tokens"][tokens] + weights["positions"][place]
    if scan:
        x, new = jax.lax.scan(lambda x, layer: _block(x, *layer, place), x, (weights["blocks"], caches))
    else:
        new = []
        for layer, cache in zip(weights["blocks"], caches, strict=True):
            x, longer = _block(x, layer, cache, place)
            new.append(longer)
    return layer_norm(x, weights["norm"]) @ weights["tokens"].T, new


def _sample(logits: jax.Array, key: jax.Array, how: str, top: int) -> jax.Array:
    """Choose a token for each row of logits (rows, vocabulary)."""
    if how == "greedy":
        return jnp.argmax(logits, axis=-1)
    if how == "top_k":
        values, tokens = jax.lax.top_k(logits, top)
        chosen = jax.random.categorical(key, values, axis=-1)
        return jnp.take_along_axis(tokens, chosen[:, None], axis=-1)[:, 0]
    if how == "nucleus":
        # Holtzman et al., arXiv 1904.09751: the likeliest tokens that together have 90 %.
        ordered = jnp.sort(logits, axis=-1)[:, ::-1]
        mass = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
        kept = jnp.sum(mass < 0.9, axis=-1, keepdims=True)
        least = jnp.take_along_axis(ordered, kept, axis=-1)
        logits = jnp.where(logits < least, -jnp.inf, logits)
    return jax.random.categorical(key, logits, axis=-1)


def decode(options: Options) -> Model:
    """One step of sampling from a GPT-2 with a cache of keys and values."""
    batch = options["batch"]
    parameters, caches = _shapes(options, batch)

    def forward(weights: Tree, state: Tree, inputs: Tree) -> Tree:
        place = inputs["place"]
        logits, new = _next_logits(weights, inputs["tokens"], inputs["caches"], place, options["scan"])
        logits = logits.astype(jnp.float32) / jnp.maximum(inputs["temperature"], 1e-3)
        tokens = _sample(logits, inputs["noise"], options["sampling"], options["top"])
        return tokens, new, place + 1

    inputs = {
        "tokens": integers(batch),
        "caches": caches,
        "place": integers(),
        "temperature": floats(),
        "noise": KEY,
    }
    return Model(parameters, None, None, inputs, forward)


def beam(options: Options) -> Model:
    """One step of beam search with a GPT-2; token 0 ends a sequence."""
    batch, beams, vocabulary = options["batch"], options["beams"], options["vocabulary"]
    parameters, caches = _shapes(options, batch * beams)
    axis = 1 if options["scan"] else 0

    def chosen(cache: jax.Array, parents: jax.Array) -> jax.Array:
        """Return the caches of the selected beams."""
        shape = cache.shape
        grouped = cache.reshape(*shape[:axis], batch, beams, *shape[axis + 1 :])
        pick = jax.vmap(lambda cache, index: jnp.take(cache, index, axis=axis), (axis, 0), axis)
        return pick(grouped, parents).reshape(shape)

    def forward(weights: Tree, state: Tree, inputs: Tree) -> Tree:
        tokens, scores, place = inputs["tokens"], inputs["scores"], inputs["place"]
        logits, new = _next_logits(weights, tokens.reshape(-1), inputs["caches"], place, options["scan"])
        logs = jax.nn.log_softmax(logits.astype(jnp.float32)).reshape(batch, beams, vocabulary)
        only_end = jnp.where(jnp.arange(vocabulary) == 0, 0.0, -jnp.inf)
        logs = jnp.where((tokens == 0)[..., None], only_end, logs)
        every = (scores.astype(jnp.float32)[..., None] + logs).reshape(batch, beams * vocabulary)
        best, index = jax.lax.top_k(every, beams)
        parents, tokens = index // vocabulary, index % vocabulary
        caches = jax.tree.map(lambda cache: chosen(cache, parents), new)
        return tokens, best, parents, caches, place + 1

    inputs = {
        "tokens": integers(batch, beams),
        "scores": floats(batch, beams),
        "caches": caches,
        "place": integers(),
    }
    return Model(parameters, None, None, inputs, forward)
