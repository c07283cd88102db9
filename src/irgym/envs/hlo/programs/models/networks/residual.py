"""Residual networks on images (He et al., arXiv 1512.03385)."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.networks.layers import dense, dense_shapes, norm_shapes
from irgym.envs.hlo.programs.models.networks.tasks import stateful_classifier

_LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1, groups: int = 1) -> jax.Array:
    """Convolve images (batch, rows, columns, channels), padded so that stride 1 keeps their size."""
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=_LAYOUT, feature_group_count=groups
    )


def conv_norm_shapes(kernel: int, inputs: int, outputs: int) -> Tree:
    """Return the weights of a convolution with batch normalisation."""
    return {"kernel": floats(kernel, kernel, inputs, outputs), "norm": norm_shapes(outputs)}


def averages_shapes(outputs: int) -> Tree:
    """Return the running averages of a batch normalisation."""
    return {"mean": floats(outputs), "variance": floats(outputs)}


def batch_norm(x: jax.Array, weights: Tree, averages: Tree, training: bool) -> tuple[jax.Array, Tree]:
    """Normalise over all but the channels (Ioffe and Szegedy, arXiv 1502.03167).

    Returns:
        The normalised activations and the new running averages.
    """
    if training:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        averages = {
            "mean": 0.9 * averages["mean"] + 0.1 * mean.astype(jnp.float32),
            "variance": 0.9 * averages["variance"] + 0.1 * variance.astype(jnp.float32),
        }
    else:
        mean, variance = averages["mean"].astype(x.dtype), averages["variance"].astype(x.dtype)
    scaled = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weights["scale"] + weights["offset"]
    return scaled, averages


def conv_norm(
    x: jax.Array, weights: Tree, averages: Tree, stride: int, training: bool, groups: int = 1
) -> tuple[jax.Array, Tree]:
    """Apply a convolution and batch normalisation."""
    return batch_norm(convolve(x, weights["kernel"], stride, groups), weights["norm"], averages, training)


def _plan(stages: Sequence[int], width: int, bottleneck: bool) -> list[tuple[int, int, int, int]]:
    """Return input channels, inner channels, output channels and stride of each block."""
    blocks: list[tuple[int, int, int, int]] = []
    inputs = width
    for stage, count in enumerate(stages):
        inner = width << stage
        outputs = 4 * inner if bottleneck else inner
        for index in range(count):
            blocks.append((inputs, inner, outputs, 2 if stage and not index else 1))
            inputs = outputs
    return blocks


def _convolutions(inputs: int, inner: int, outputs: int, bottleneck: bool) -> list[tuple[int, int, int]]:
    """Return kernel size, input and output channels of a block's convolutions."""
    if bottleneck:
        return [(1, inputs, inner), (3, inner, inner), (1, inner, outputs)]
    return [(3, inputs, inner), (3, inner, outputs)]


def _network(stages: Sequence[int], options: Options, bottleneck: bool) -> Model:
    width, classes, pixels, batch = (options[name] for name in ("width", "classes", "pixels", "batch"))
    plan = _plan(stages, width, bottleneck)
    blocks: list[Tree] = []
    averages: list[Tree] = []
    for inputs, inner, outputs, stride in plan:
        sizes = _convolutions(inputs, inner, outputs, bottleneck)
        if stride != 1 or inputs != outputs:
            sizes.append((1, inputs, outputs))
        blocks.append([conv_norm_shapes(*size) for size in sizes])
        averages.append([averages_shapes(size[2]) for size in sizes])
    last = plan[-1][2]
    parameters = {
        "stem": conv_norm_shapes(7, 3, width),
        "blocks": blocks,
        "head": dense_shapes(last, classes),
    }
    state = {"stem": averages_shapes(width), "blocks": averages}

    def block(
        x: jax.Array, weights: Tree, averages: Tree, stride: int, training: bool
    ) -> tuple[jax.Array, Tree]:
        kept = list(averages)
        main = 3 if bottleneck else 2
        strided = 1 if bottleneck else 0
        y = x
        for index in range(main):
            step = stride if index == strided else 1
            y, kept[index] = conv_norm(y, weights[index], averages[index], step, training)
            if index < main - 1:
                y = jax.nn.relu(y)
        if len(weights) > main:
            x, kept[main] = conv_norm(x, weights[main], averages[main], stride, training)
        return jax.nn.relu(x + y), kept

    def logits(weights: Tree, state: Tree, images: jax.Array, training: bool) -> tuple[jax.Array, Tree]:
        x, stem = conv_norm(images, weights["stem"], state["stem"], 2, training)
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        kept: list[Tree] = []
        for (*_, stride), layer, average in zip(plan, weights["blocks"], state["blocks"], strict=True):
            x, new = block(x, layer, average, stride, training)
            kept.append(new)
        return dense(x.mean((1, 2)), weights["head"]), {"stem": stem, "blocks": kept}

    return stateful_classifier(parameters, state, floats(batch, pixels, pixels, 3), logits)


def resnet18(options: Options) -> Model:
    """ResNet of basic blocks; two a stage make ResNet-18."""
    return _network([options["depth"]] * 4, options, bottleneck=False)


def resnet50(options: Options) -> Model:
    """ResNet-50."""
    return _network((3, 4, 6, 3), options, bottleneck=True)
