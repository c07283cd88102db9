"""Language models without frills: GPT-2 and BERT."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import jax

from irgym.envs.hlo.models.layers import (
    apply_layers,
    attention_shapes,
    causal,
    cross_entropy,
    dense,
    dense_shapes,
    dropout,
    layer_norm,
    layers_shapes,
    norm_shapes,
    self_attention,
)
from irgym.envs.hlo.models.model import Model, Options, Tree, floats, integers


def block_shapes(width: int) -> Tree:
    """Return the weights of a transformer layer."""
    return {
        "attention": attention_shapes(width),
        "first_norm": norm_shapes(width),
        "second_norm": norm_shapes(width),
        "expand": dense_shapes(width, 4 * width),
        "contract": dense_shapes(4 * width, width),
    }


def pre_norm_block(
    x: jax.Array,
    weights: Tree,
    key: jax.Array,
    *,
    heads: int,
    mask: jax.Array | None,
    drop: bool,
) -> jax.Array:
    """Apply a transformer layer that normalises before attention and before the feed-forward part."""
    first, second = jax.random.split(key)
    attended = self_attention(
        layer_norm(x, weights["first_norm"]), weights["attention"], heads, mask, first if drop else None
    )
    x = x + attended
    hidden = jax.nn.gelu(dense(layer_norm(x, weights["second_norm"]), weights["expand"]))
    update = dense(hidden, weights["contract"])
    return x + (dropout(second, update) if drop else update)


def gpt2(options: Options) -> Model:
    """GPT-2: pre-norm decoder, learnt positions, tied output, next-token loss (Radford et al., 2019)."""
    layers, width, heads = options["layers"], options["width"], options["heads"]
    vocabulary, sequence, batch = options["vocabulary"], options["sequence"], options["batch"]
    parameters = {
        "tokens": floats(vocabulary, width),
        "positions": floats(sequence, width),
        "blocks": layers_shapes(block_shapes(width), layers, options["scan"]),
        "norm": norm_shapes(width),
    }

    def logits(weights: Tree, tokens: jax.Array, key: jax.Array, drop: bool) -> jax.Array:
        x = weights["tokens"][tokens] + weights["positions"][: tokens.shape[1]]

        def block(x: jax.Array, layer: Tree, key: jax.Array) -> jax.Array:
            return pre_norm_block(x, layer, key, heads=heads, mask=causal(x.shape[1]), drop=drop)

        scan, remat = options["scan"], options["remat"]
        x = apply_layers(block, x, weights["blocks"], key, layers, scan=scan, remat=remat)
        return layer_norm(x, weights["norm"]) @ weights["tokens"].T

    def loss(weights: Tree, state: Tree, tokens: jax.Array, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores = logits(weights, tokens[:, :-1], key, options["dropout"])
        return cross_entropy(scores, tokens[:, 1:]).mean(), state

    def forward(weights: Tree, state: Tree, tokens: jax.Array) -> jax.Array:
        return logits(weights, tokens, jax.random.PRNGKey(0), drop=False)

    return Model(parameters, integers(batch, sequence + 1), loss, integers(batch, sequence), forward)


def bert(options: Options) -> Model:
    """BERT: post-norm encoder, segments, masked-token loss (Devlin et al., arXiv 1810.04805)."""
    layers, width, heads = options["layers"], options["width"], options["heads"]
    vocabulary, sequence, batch = options["vocabulary"], options["sequence"], options["batch"]
    parameters = {
        "tokens": floats(vocabulary, width),
        "positions": floats(sequence, width),
        "segments": floats(2, width),
        "embedding_norm": norm_shapes(width),
        "blocks": layers_shapes(block_shapes(width), layers, options["scan"]),
        "head": dense_shapes(width, width),
        "head_norm": norm_shapes(width),
        "output_bias": floats(vocabulary),
    }

    def block(x: jax.Array, layer: Tree, key: jax.Array, drop: bool) -> jax.Array:
        first, second = jax.random.split(key)
        attended = self_attention(x, layer["attention"], heads, None, first if drop else None)
        x = layer_norm(x + attended, layer["first_norm"])
        update = dense(jax.nn.gelu(dense(x, layer["expand"]), approximate=False), layer["contract"])
        if drop:
            update = dropout(second, update)
        return layer_norm(x + update, layer["second_norm"])

    def logits(weights: Tree, inputs: Tree, key: jax.Array, drop: bool) -> jax.Array:
        x = weights["tokens"][inputs["tokens"]] + weights["positions"][:sequence]
        x = layer_norm(x + weights["segments"][inputs["segments"]], weights["embedding_norm"])
        x = apply_layers(
            lambda x, layer, key: block(x, layer, key, drop),
            x,
            weights["blocks"],
            key,
            layers,
            scan=options["scan"],
            remat=options["remat"],
        )
        x = layer_norm(jax.nn.gelu(dense(x, weights["head"]), approximate=False), weights["head_norm"])
        return x @ weights["tokens"].T + weights["output_bias"]

    def loss(weights: Tree, state: Tree, inputs: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        errors = cross_entropy(logits(weights, inputs, key, options["dropout"]), inputs["labels"])
        return (errors * inputs["mask"]).sum() / (inputs["mask"].sum() + 1e-6), state

    def forward(weights: Tree, state: Tree, inputs: Tree) -> jax.Array:
        return logits(weights, inputs, jax.random.PRNGKey(0), drop=False)

    words = {"tokens": integers(batch, sequence), "segments": integers(batch, sequence)}
    targets = {"labels": integers(batch, sequence), "mask": floats(batch, sequence)}
    return Model(parameters, words | targets, loss, words, forward)
