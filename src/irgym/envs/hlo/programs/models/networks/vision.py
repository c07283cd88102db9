"""Convolutional networks beyond ResNet: MobileNetV2 and DenseNet."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.networks.layers import dense, dense_shapes, norm_shapes
from irgym.envs.hlo.programs.models.networks.residual import (
    averages_shapes,
    batch_norm,
    conv_norm,
    conv_norm_shapes,
    convolve,
)
from irgym.envs.hlo.programs.models.networks.tasks import stateful_classifier

# Expansion, channels (in units of a quarter of the width), number of blocks, stride: Sandler et al., table 2.
_MOBILE_STAGES = ((1, 2, 1, 1), (6, 3, 2, 2), (6, 4, 3, 2), (6, 8, 4, 2), (6, 12, 3, 1), (6, 20, 3, 2))


def _mobile_plan(width: int, depth: int) -> list[tuple[int, int, int, int]]:
    """Return input, inner and output channels and stride of each block; `depth` caps a stage's blocks."""
    plan: list[tuple[int, int, int, int]] = []
    inputs = width
    for expansion, quarters, count, stride in _MOBILE_STAGES:
        outputs = quarters * width // 4
        for index in range(min(count, depth)):
            plan.append((inputs, inputs * expansion, outputs, 1 if index else stride))
            inputs = outputs
    return plan


def mobilenet(options: Options) -> Model:
    """MobileNetV2: inverted residuals with depthwise convolutions (arXiv 1801.04381)."""
    width, batch, pixels = options["width"], options["batch"], options["pixels"]
    plan = _mobile_plan(width, options["depth"])
    parameters = {
        "stem": conv_norm_shapes(3, 3, width),
        "blocks": [
            [conv_norm_shapes(1, a, b), conv_norm_shapes(3, 1, b), conv_norm_shapes(1, b, c)]
            for a, b, c, _ in plan
        ],
        "head": dense_shapes(plan[-1][2], options["classes"]),
    }
    state = {
        "stem": averages_shapes(width),
        "blocks": [[averages_shapes(n) for n in (b, b, c)] for _, b, c, _ in plan],
    }

    def block(x: jax.Array, layer: Tree, kept: Tree, stride: int, training: bool) -> tuple[jax.Array, Tree]:
        y, first = conv_norm(x, layer[0], kept[0], 1, training)
        y = jnp.clip(y, 0.0, 6.0)
        y, second = conv_norm(y, layer[1], kept[1], stride, training, groups=y.shape[-1])
        y = jnp.clip(y, 0.0, 6.0)
        y, third = conv_norm(y, layer[2], kept[2], 1, training)
        return (x + y if x.shape == y.shape else y), [first, second, third]

    def logits(weights: Tree, state: Tree, images: jax.Array, training: bool) -> tuple[jax.Array, Tree]:
        x, stem = conv_norm(images, weights["stem"], state["stem"], 2, training)
        x = jnp.clip(x, 0.0, 6.0)
        kept: list[Tree] = []
        for (*_, stride), layer, averages in zip(plan, weights["blocks"], state["blocks"], strict=True):
            x, new = block(x, layer, averages, stride, training)
            kept.append(new)
        return dense(x.mean((1, 2)), weights["head"]), {"stem": stem, "blocks": kept}

    return stateful_classifier(parameters, state, floats(batch, pixels, pixels, 3), logits)


def densenet(options: Options) -> Model:
    """DenseNet: every layer sees the outputs of all before it (Huang et al., arXiv 1608.06993)."""
    growth, depth, blocks = options["width"], options["depth"], options["blocks"]
    batch, pixels = options["batch"], options["pixels"]
    layers: list[list[Tree]] = []
    averages: list[list[Tree]] = []
    transitions: list[Tree] = []
    channels = 2 * growth
    for index in range(blocks):
        widths = [channels + growth * layer for layer in range(depth)]
        layers.append([{"norm": norm_shapes(w), "kernel": floats(3, 3, w, growth)} for w in widths])
        averages.append([averages_shapes(w) for w in widths])
        channels += growth * depth
        if index < blocks - 1:
            transitions.append(floats(1, 1, channels, channels // 2))
            channels //= 2
    parameters = {
        "stem": floats(3, 3, 3, 2 * growth),
        "blocks": layers,
        "transitions": transitions,
        "head": dense_shapes(channels, options["classes"]),
    }

    def logits(weights: Tree, state: Tree, images: jax.Array, training: bool) -> tuple[jax.Array, Tree]:
        x = convolve(images, weights["stem"])
        kept: list[Tree] = []
        for index, (block, old) in enumerate(zip(weights["blocks"], state, strict=True)):
            new: list[Tree] = []
            for layer, average in zip(block, old, strict=True):
                y, updated = batch_norm(x, layer["norm"], average, training)
                new.append(updated)
                x = jnp.concatenate([x, convolve(jax.nn.relu(y), layer["kernel"])], axis=-1)
            kept.append(new)
            if index < blocks - 1:
                x = convolve(x, weights["transitions"][index])
                x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return dense(x.mean((1, 2)), weights["head"]), kept

    return stateful_classifier(parameters, averages, floats(batch, pixels, pixels, 3), logits)
