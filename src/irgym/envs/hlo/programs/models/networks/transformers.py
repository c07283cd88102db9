"""Plain transformers: GPT-2, BERT and ViT."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.networks.layers import (
    apply_layers,
    block_shapes,
    causal,
    cross_entropy,
    dense,
    dense_shapes,
    feed_forward,
    layer_norm,
    layers_shapes,
    maybe_dropout,
    norm_shapes,
    pre_norm_block,
    self_attention,
    split_key,
)
from irgym.envs.hlo.programs.models.networks.tasks import classifier, language_model


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

    def logits(weights: Tree, tokens: jax.Array, key: jax.Array | None) -> jax.Array:
        x = weights["tokens"][tokens] + weights["positions"][:sequence]

        def block(x: jax.Array, layer: Tree, key: jax.Array | None) -> jax.Array:
            return pre_norm_block(x, layer, key, heads, causal(sequence))

        scan, remat = options["scan"], options["remat"]
        x = apply_layers(block, x, weights["blocks"], key, layers, scan=scan, remat=remat)
        return layer_norm(x, weights["norm"]) @ weights["tokens"].T

    return language_model(parameters, batch, sequence, logits, options["dropout"])


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

    def block(x: jax.Array, layer: Tree, key: jax.Array | None) -> jax.Array:
        first, second = split_key(key)
        attended = self_attention(x, layer["attention"], heads, None, first)
        x = layer_norm(x + attended, layer["first_norm"])
        update = feed_forward(x, layer["feed_forward"], exact=True)
        return layer_norm(x + maybe_dropout(second, update), layer["second_norm"])

    def logits(weights: Tree, inputs: Tree, key: jax.Array | None) -> jax.Array:
        x = weights["tokens"][inputs["tokens"]] + weights["positions"][:sequence]
        x = layer_norm(x + weights["segments"][inputs["segments"]], weights["embedding_norm"])
        scan, remat = options["scan"], options["remat"]
        x = apply_layers(block, x, weights["blocks"], key, layers, scan=scan, remat=remat)
        x = layer_norm(jax.nn.gelu(dense(x, weights["head"]), approximate=False), weights["head_norm"])
        return x @ weights["tokens"].T + weights["output_bias"]

    def loss(weights: Tree, state: Tree, inputs: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores = logits(weights, inputs, key if options["dropout"] else None)
        errors = cross_entropy(scores, inputs["labels"])
        return (errors * inputs["mask"]).sum() / (inputs["mask"].sum() + 1e-6), state

    def forward(weights: Tree, state: Tree, inputs: Tree) -> jax.Array:
        return logits(weights, inputs, None)

    words = {"tokens": integers(batch, sequence), "segments": integers(batch, sequence)}
    targets = {"labels": integers(batch, sequence), "mask": floats(batch, sequence)}
    return Model(parameters, words | targets, loss, words, forward)


def vit(options: Options) -> Model:
    """Vision Transformer: image patches and a class token (Dosovitskiy et al., arXiv 2010.11929)."""
    layers, width, heads = options["layers"], options["width"], options["heads"]
    pixels, patch, batch = options["pixels"], options["patch"], options["batch"]
    grid = pixels // patch
    parameters = {
        "patches": dense_shapes(patch * patch * 3, width),
        "class_token": floats(width),
        "positions": floats(grid * grid + 1, width),
        "blocks": layers_shapes(block_shapes(width), layers, options["scan"]),
        "norm": norm_shapes(width),
        "head": dense_shapes(width, options["classes"]),
    }

    def block(x: jax.Array, layer: Tree, key: jax.Array | None) -> jax.Array:
        return pre_norm_block(x, layer, key, heads)

    def logits(weights: Tree, images: jax.Array, key: jax.Array | None) -> jax.Array:
        tiles = images.reshape(batch, grid, patch, grid, patch, 3).transpose(0, 1, 3, 2, 4, 5)
        x = dense(tiles.reshape(batch, grid * grid, patch * patch * 3), weights["patches"])
        first = jnp.broadcast_to(weights["class_token"], (batch, 1, width))
        x = jnp.concatenate([first, x], axis=1) + weights["positions"]
        scan, remat = options["scan"], options["remat"]
        x = apply_layers(block, x, weights["blocks"], key, layers, scan=scan, remat=remat)
        return dense(layer_norm(x, weights["norm"])[:, 0], weights["head"])

    return classifier(parameters, floats(batch, pixels, pixels, 3), logits, options["dropout"])
