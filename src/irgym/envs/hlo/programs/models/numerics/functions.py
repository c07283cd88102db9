"""Functions shared by numerical programs."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax

from irgym.envs.hlo.programs.models.model import Model, Tree


def program(function: Callable[..., Tree], **inputs: Tree) -> Model:
    """Return a function as a model without weights; its inputs are passed by name."""
    return Model((), None, None, inputs, lambda weights, state, given: function(**given))


def derived(function: Callable[..., Any], of: str) -> Callable[..., Any]:
    """Return a function of several arrays, or its derivatives by the first of them.

    Args:
        function: Takes positional arguments and returns a scalar.
        of: `value`, `gradient` (with the value), or `hessian` (with the gradient).
    """
    if of == "value":
        return function
    if of == "gradient":
        return jax.value_and_grad(function)
    gradient = jax.grad(function)
    return lambda *arguments: (gradient(*arguments), jax.jacfwd(gradient)(*arguments))
