"""Language models since GPT-2: Llama, mixture of experts, T5."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import math

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.networks.layers import (
    apply_layers,
    attend,
    attention_shapes,
    causal,
    cross_entropy,
    layer_norm,
    layers_shapes,
    merge_heads,
    norm_shapes,
    self_attention,
    split_heads,
)
from irgym.envs.hlo.programs.models.networks.tasks import language_model


def _rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Divide by the root mean square (Zhang and Sennrich, arXiv 1910.07467), computed in float32."""
    wide = x.astype(jnp.float32)
    normal = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return normal.astype(x.dtype) * scale


def _rotate(x: jax.Array) -> jax.Array:
    """Turn pairs of features by angles that grow with the position (Su et al., arXiv 2104.09864).

    Args:
        x: (batch, heads, sequence, even width).
    """
    half = x.shape[-1] // 2
    rates = 1.0 / 10000.0 ** (jnp.arange(half) / half)
    angles = jnp.arange(x.shape[-2])[:, None] * rates
    cosine, sine = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)


def llama(options: Options) -> Model:
    """Llama: RMS norms, rotary positions, grouped queries, gated feed-forward (arXiv 2307.09288)."""
    layers, width, heads, groups = (options[n] for n in ("layers", "width", "heads", "groups"))
    vocabulary, sequence, batch = (options[n] for n in ("vocabulary", "sequence", "batch"))
    small, hidden = width // heads * groups, 8 * width // 3
    block_weights = {
        "first_norm": floats(width),
        "query": floats(width, width),
        "key": floats(width, small),
        "value": floats(width, small),
        "output": floats(width, width),
        "second_norm": floats(width),
        "gate": floats(width, hidden),
        "up": floats(width, hidden),
        "down": floats(hidden, width),
    }
    parameters = {
        "tokens": floats(vocabulary, width),
        "blocks": layers_shapes(block_weights, layers, options["scan"]),
        "norm": floats(width),
        "head": floats(width, vocabulary),
    }

    def block(x: jax.Array, weights: Tree, key: jax.Array | None) -> jax.Array:
        normal = _rms_norm(x, weights["first_norm"])
        query = _rotate(split_heads(normal @ weights["query"], heads))
        keys = _rotate(split_heads(normal @ weights["key"], groups))
        values = split_heads(normal @ weights["value"], groups)
        keys = jnp.repeat(keys, heads // groups, axis=1)
        values = jnp.repeat(values, heads // groups, axis=1)
        x = x + merge_heads(attend(query, keys, values, causal(sequence))) @ weights["output"]
        normal = _rms_norm(x, weights["second_norm"])
        return x + (jax.nn.silu(normal @ weights["gate"]) * (normal @ weights["up"])) @ weights["down"]

    def logits(weights: Tree, tokens: jax.Array, key: jax.Array | None) -> jax.Array:
        x = weights["tokens"][tokens]
        scan, remat = options["scan"], options["remat"]
        x = apply_layers(block, x, weights["blocks"], None, layers, scan=scan, remat=remat)
        return _rms_norm(x, weights["norm"]) @ weights["head"]

    return language_model(parameters, batch, sequence, logits)


def _experts(x: jax.Array, weights: Tree, top: int, room: int) -> tuple[jax.Array, jax.Array]:
    """Send each token to its best experts, up to their capacity (Lepikhin et al., arXiv 2006.16668).

    Args:
        x: Tokens (tokens, width).
        weights: Router, and stacked weights of the experts.
        top: Experts of a token.
        room: Tokens of an expert; those beyond are dropped.

    Returns:
        The mixed outputs and the loss that balances the experts' loads.
    """
    count = weights["router"].shape[-1]
    gates = jax.nn.softmax((x @ weights["router"]).astype(jnp.float32), axis=-1)
    values, index = jax.lax.top_k(gates, top)
    values = values / values.sum(-1, keepdims=True)
    chosen = jax.nn.one_hot(index, count)
    flat = chosen.swapaxes(0, 1).reshape(-1, count)
    rank = ((jnp.cumsum(flat, axis=0) - 1.0) * flat).sum(-1).reshape(top, -1).T
    slots = jax.nn.one_hot(rank.astype(jnp.int32), room)
    combine = jnp.einsum("tk,tke,tkc->tec", values, chosen, slots).astype(x.dtype)
    sent = jnp.einsum("tec,td->ecd", (combine > 0).astype(x.dtype), x)
    hidden = jax.nn.gelu(jnp.einsum("ecd,edh->ech", sent, weights["expand"]))
    done = jnp.einsum("ech,ehd->ecd", hidden, weights["contract"])
    balance = count * (gates.mean(0) * chosen[:, 0].mean(0)).sum()
    return jnp.einsum("tec,ecd->td", combine, done), balance


def moe(options: Options) -> Model:
    """Transformer decoder whose feed-forward parts are mixtures of experts (Shazeer, arXiv 1701.06538)."""
    layers, width, heads, experts = (options[n] for n in ("layers", "width", "heads", "experts"))
    vocabulary, sequence, batch, top = (options[n] for n in ("vocabulary", "sequence", "batch", "top"))
    room = math.ceil(1.25 * top * batch * sequence / experts)
    block_weights = {
        "first_norm": norm_shapes(width),
        "attention": attention_shapes(width),
        "second_norm": norm_shapes(width),
        "router": floats(width, experts),
        "expand": floats(experts, width, 4 * width),
        "contract": floats(experts, 4 * width, width),
    }
    parameters = {
        "tokens": floats(vocabulary, width),
        "positions": floats(sequence, width),
        "blocks": [block_weights] * layers,
        "norm": norm_shapes(width),
    }

    def logits(weights: Tree, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = weights["tokens"][tokens] + weights["positions"]
        total = jnp.zeros(())
        for block in weights["blocks"]:
            normal = layer_norm(x, block["first_norm"])
            x = x + self_attention(normal, block["attention"], heads, causal(sequence))
            normal = layer_norm(x, block["second_norm"]).reshape(-1, width)
            mixed, balance = _experts(normal, block, top, room)
            x, total = x + mixed.reshape(x.shape), total + balance
        return layer_norm(x, weights["norm"]) @ weights["tokens"].T, total / layers

    def loss(weights: Tree, state: Tree, tokens: jax.Array, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores, balance = logits(weights, tokens[:, :-1])
        return cross_entropy(scores, tokens[:, 1:]).mean() + 0.01 * balance, state

    def forward(weights: Tree, state: Tree, tokens: jax.Array) -> jax.Array:
        return logits(weights, tokens)[0]

    return Model(parameters, integers(batch, sequence + 1), loss, integers(batch, sequence), forward)


def _relative_bias(table: jax.Array, queries: int, keys: int, both_ways: bool) -> jax.Array:
    """Return T5's learnt bias for each distance, (1, heads, queries, keys), from (32, heads)."""
    distance = jnp.arange(keys)[None, :] - jnp.arange(queries)[:, None]
    buckets = 32
    bucket = jnp.zeros_like(distance)
    if both_ways:
        buckets //= 2
        bucket = bucket + jnp.where(distance > 0, buckets, 0)
        distance = jnp.abs(distance)
    else:
        distance = -jnp.minimum(distance, 0)
    exact = buckets // 2
    scaled = jnp.log(jnp.maximum(distance, 1) / exact) / math.log(128 / exact) * (buckets - exact)
    far = jnp.minimum(exact + scaled.astype(jnp.int32), buckets - 1)
    bucket = bucket + jnp.where(distance < exact, distance, far)
    return table[bucket].transpose(2, 0, 1)[None]


def _biased_attention(
    x: jax.Array, memory: jax.Array, weights: Tree, heads: int, bias: jax.Array | None
) -> jax.Array:
    """Attend from x to memory with a bias on the scores, unscaled as in T5."""
    query = split_heads(x @ weights["query"], heads)
    key, value = split_heads(memory @ weights["key"], heads), split_heads(memory @ weights["value"], heads)
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), value)
    return merge_heads(mixed) @ weights["output"]


def t5(options: Options) -> Model:
    """T5: encoder and decoder with relative position biases (Raffel et al., arXiv 1910.10683)."""
    layers, width, heads = options["layers"], options["width"], options["heads"]
    vocabulary, sequence, batch = options["vocabulary"], options["sequence"], options["batch"]
    square = floats(width, width)
    attention = {"query": square, "key": square, "value": square, "output": square, "norm": floats(width)}
    feed = {"norm": floats(width), "up": floats(width, 4 * width), "down": floats(4 * width, width)}
    parameters = {
        "tokens": floats(vocabulary, width),
        "encoder": [{"attention": attention, "feed": feed}] * layers,
        "decoder": [{"attention": attention, "cross": attention, "feed": feed}] * layers,
        "encoder_bias": floats(32, heads),
        "decoder_bias": floats(32, heads),
        "encoder_norm": floats(width),
        "decoder_norm": floats(width),
    }

    def feed_forward(x: jax.Array, weights: Tree) -> jax.Array:
        return x + jax.nn.relu(_rms_norm(x, weights["norm"]) @ weights["up"]) @ weights["down"]

    def logits(weights: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        memory = weights["tokens"][source]
        bias = _relative_bias(weights["encoder_bias"], sequence, sequence, both_ways=True)
        for layer in weights["encoder"]:
            normal = _rms_norm(memory, layer["attention"]["norm"])
            memory = memory + _biased_attention(normal, normal, layer["attention"], heads, bias)
            memory = feed_forward(memory, layer["feed"])
        memory = _rms_norm(memory, weights["encoder_norm"])
        x = weights["tokens"][target]
        bias = _relative_bias(weights["decoder_bias"], sequence, sequence, both_ways=False)
        bias = jnp.where(causal(sequence), bias, -1e9)
        for layer in weights["decoder"]:
            normal = _rms_norm(x, layer["attention"]["norm"])
            x = x + _biased_attention(normal, normal, layer["attention"], heads, bias)
            normal = _rms_norm(x, layer["cross"]["norm"])
            x = x + _biased_attention(normal, memory, layer["cross"], heads, None)
            x = feed_forward(x, layer["feed"])
        return _rms_norm(x, weights["decoder_norm"]) / math.sqrt(width) @ weights["tokens"].T

    def loss(weights: Tree, state: Tree, examples: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        target = examples["target"]
        return cross_entropy(logits(weights, examples["source"], target[:, :-1]), target[:, 1:]).mean(), state

    def forward(weights: Tree, state: Tree, inputs: Tree) -> jax.Array:
        return logits(weights, inputs["source"], inputs["target"])

    source = integers(batch, sequence)
    examples = {"source": source, "target": integers(batch, sequence + 1)}
    return Model(parameters, examples, loss, {"source": source, "target": source}, forward)
