"""Multi-layer perceptrons."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from itertools import pairwise

import jax
import jax.numpy as jnp

from irgym.envs.hlo.models.layers import cross_entropy, dense, dense_shapes, dropout
from irgym.envs.hlo.models.model import Model, Options, Tree, floats, integers

ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "tanh": jnp.tanh, "silu": jax.nn.silu}


def mlp(options: Options) -> Model:
    """Classify flat images with dense layers."""
    layers, width, inputs = options["layers"], options["width"], options["inputs"]
    classes, batch, drop = options["classes"], options["batch"], options["dropout"]
    activation = ACTIVATIONS[options["activation"]]
    sizes = [inputs, *[width] * (layers - 1), classes]
    parameters = [dense_shapes(*pair) for pair in pairwise(sizes)]

    def logits(weights: Tree, x: jax.Array, key: jax.Array | None) -> jax.Array:
        keys = None if key is None else jax.random.split(key, layers)
        for index, layer in enumerate(weights):
            x = dense(x, layer)
            if index < layers - 1:
                x = activation(x)
                x = x if keys is None else dropout(keys[index], x, 0.5)
        return x

    def loss(weights: Tree, state: Tree, examples: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores = logits(weights, examples["images"], key if drop else None)
        return cross_entropy(scores, examples["labels"]).mean(), state

    def forward(weights: Tree, state: Tree, images: jax.Array) -> jax.Array:
        return logits(weights, images, None)

    images = floats(batch, inputs)
    return Model(parameters, {"images": images, "labels": integers(batch)}, loss, images, forward)
