"""Models: shapes, a loss and an inference function."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Tree = Any
"""A pytree of arrays, or of `jax.ShapeDtypeStruct`."""

Options = Mapping[str, Any]
"""Options of a program: numbers, flags and words by name."""

Loss = Callable[[Tree, Tree, Tree, jax.Array], tuple[jax.Array, Tree]]
"""Maps weights, state, batch and random key to the scalar loss and the new state."""

KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)
"""Shape of a random key, as an ordinary array."""


@dataclass(frozen=True)
class Model:
    """A model, without weights.

    Attributes:
        parameters: Shapes of the trained weights.
        batch: Shapes of a training batch; None if the model is for inference only.
        loss: Maps weights, state, batch and random key to the scalar loss and the new state; or None.
        inputs: Shapes of the inputs at inference.
        forward: Maps weights, state and inputs to the outputs.
        state: Shapes of the arrays carried from step to step without training; may be empty.
    """

    parameters: Tree
    batch: Tree
    loss: Loss | None
    inputs: Tree
    forward: Callable[[Tree, Tree, Tree], Tree]
    state: Tree = ()


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    """Return the shape of a float32 array."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def integers(*shape: int) -> jax.ShapeDtypeStruct:
    """Return the shape of an int32 array."""
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def stacked(tree: Tree, count: int) -> Tree:
    """Return the shapes of `count` copies of a tree, stacked along a new leading axis."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype), tree)


def in_bfloat16(tree: Tree) -> Tree:
    """Return a tree with its floating-point arrays cast to bfloat16."""
    return jax.tree.map(
        lambda leaf: leaf.astype(jnp.bfloat16) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, tree
    )
