"""Training steps: gradient, clipping, weight decay and an optimiser, in the style of user code."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import KEY, Model, Options, Tree, floats, in_bfloat16

RATE = 1e-3
DECAY = 0.01
CLIP = 1.0


@dataclass(frozen=True)
class Optimizer:
    """An optimiser.

    Attributes:
        slots: Maps the shapes of the weights to those of the optimiser's state.
        update: Maps weights, slots, gradients and the number of the step to new weights and slots.
    """

    slots: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree, jax.Array], tuple[Tree, Tree]]


def _adam(weights: Tree, slots: Tree, gradients: Tree, count: jax.Array) -> tuple[Tree, Tree]:
    """Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101)."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, slots["first"], gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, slots["second"], gradients)

    def new(weight: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        mean = m / (1 - 0.9**count)
        scale = jnp.sqrt(v / (1 - 0.999**count)) + 1e-8
        return weight - RATE * (mean / scale + DECAY * weight)

    return jax.tree.map(new, weights, first, second), {"first": first, "second": second}


def _sgd(weights: Tree, slots: Tree, gradients: Tree, count: jax.Array) -> tuple[Tree, Tree]:
    """Gradient descent at a rate proportional to 1 / sqrt(step)."""
    rate = RATE / jnp.sqrt(count)
    return jax.tree.map(lambda w, g: w - rate * (g + DECAY * w), weights, gradients), slots


def _momentum(weights: Tree, slots: Tree, gradients: Tree, count: jax.Array) -> tuple[Tree, Tree]:
    """Gradient descent with Nesterov's momentum (Sutskever et al., 2013)."""
    decayed = jax.tree.map(lambda w, g: g + DECAY * w, weights, gradients)
    trace = jax.tree.map(lambda m, g: 0.9 * m + g, slots, decayed)
    return jax.tree.map(lambda w, m, g: w - RATE * (0.9 * m + g), weights, trace, decayed), trace


def _lion(weights: Tree, slots: Tree, gradients: Tree, count: jax.Array) -> tuple[Tree, Tree]:
    """The sign of interpolated momentum (Chen et al., arXiv 2302.06675)."""

    def new(weight: jax.Array, m: jax.Array, g: jax.Array) -> jax.Array:
        return weight - RATE * (jnp.sign(0.9 * m + 0.1 * g) + DECAY * weight)

    updated = jax.tree.map(new, weights, slots, gradients)
    return updated, jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g, slots, gradients)


def _factors(leaf: jax.ShapeDtypeStruct) -> Tree:
    """Return Adafactor's slots of an array: means over rows and columns of a matrix, else the whole shape."""
    if leaf.ndim < 2:
        return {"all": leaf}
    return {"rows": floats(*leaf.shape[:-1]), "columns": floats(*leaf.shape[:-2], leaf.shape[-1])}


def _adafactor(weights: Tree, slots: Tree, gradients: Tree, count: jax.Array) -> tuple[Tree, Tree]:
    """Adafactor without momentum (Shazeer and Stern, arXiv 1804.04235)."""
    decay = 1.0 - count**-0.8
    leaves, structure = jax.tree.flatten(weights)
    every: list[jax.Array] = []
    kept: list[Tree] = []
    for weight, slot, gradient in zip(
        leaves, structure.flatten_up_to(slots), structure.flatten_up_to(gradients), strict=True
    ):
        square = gradient * gradient + 1e-30
        if "all" in slot:
            mean = decay * slot["all"] + (1 - decay) * square
            kept.append({"all": mean})
        else:
            rows = decay * slot["rows"] + (1 - decay) * square.mean(-1)
            columns = decay * slot["columns"] + (1 - decay) * square.mean(-2)
            mean = (rows / rows.mean(-1, keepdims=True))[..., None] * columns[..., None, :]
            kept.append({"rows": rows, "columns": columns})
        step = gradient * jax.lax.rsqrt(mean)
        step = step / jnp.maximum(1.0, jnp.sqrt(jnp.mean(step * step)))
        rate = RATE * jnp.maximum(1e-3, jnp.sqrt(jnp.mean(weight * weight)))
        every.append(weight - rate * step - RATE * DECAY * weight)
    return structure.unflatten(every), structure.unflatten(kept)


OPTIMIZERS = {
    "adam": Optimizer(lambda weights: {"first": weights, "second": weights}, _adam),
    "sgd": Optimizer(lambda weights: (), _sgd),
    "momentum": Optimizer(lambda weights: weights, _momentum),
    "lion": Optimizer(lambda weights: weights, _lion),
    "adafactor": Optimizer(lambda weights: jax.tree.map(_factors, weights), _adafactor),
}
"""The optimisers, by name."""


def clipped(gradients: Tree) -> Tree:
    """Scale gradients down to a global norm of at most `CLIP`."""
    norm = jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, CLIP / (norm + 1e-6)), gradients)


def training_step(model: Model, options: Options) -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """Return a training step of a model and the shapes of its arguments.

    The step maps weights, optimiser slots, number of the step, state, batch and random key to new weights,
    slots, number, state, and the loss. Under `dtype=bf16` weights are stored in float32 and used in bfloat16.
    """
    optimizer = OPTIMIZERS[options["optimizer"]]
    bf16: bool = options["dtype"] == "bf16"
    model_loss = model.loss
    assert model_loss is not None, "the family's modes leave training out"

    def loss(weights: Tree, state: Tree, batch: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        if bf16:
            weights, batch = in_bfloat16(weights), in_bfloat16(batch)
        value, state = model_loss(weights, state, batch, key)
        return value.astype(jnp.float32), state

    def step(
        weights: Tree, slots: Tree, count: jax.Array, state: Tree, batch: Tree, key: jax.Array
    ) -> tuple[Tree, ...]:
        (value, state), gradients = jax.value_and_grad(loss, has_aux=True)(weights, state, batch, key)
        if options["clip"]:
            gradients = clipped(gradients)
        count = count + 1
        weights, slots = optimizer.update(weights, slots, gradients, count)
        return weights, slots, count, state, value

    slots = optimizer.slots(model.parameters)
    return step, (model.parameters, slots, floats(), model.state, model.batch, KEY)


def inference(model: Model, options: Options) -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """Return the inference function of a model and the shapes of its arguments."""

    def forward(weights: Tree, state: Tree, inputs: Tree) -> Tree:
        if options.get("dtype") == "bf16":
            weights, inputs = in_bfloat16(weights), in_bfloat16(inputs)
        return model.forward(weights, state, inputs)

    return forward, (model.parameters, model.state, model.inputs)
