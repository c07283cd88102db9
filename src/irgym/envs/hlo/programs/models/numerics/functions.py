"""What programs without weights have in common: numerical code that is not a network."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any

import jax

from irgym.envs.hlo.programs.models.model import Model, Tree


def program(function: Callable[..., Tree], **inputs: Tree) -> Model:
    """Return a function as a model: it is called with its inputs by name, and there is nothing to train."""
    return Model((), None, None, inputs, lambda weights, state, given: function(**given))


def derived(function: Callable[..., Any], of: str) -> Callable[..., Any]:
    """Return a function of several arrays, or what it comes to with its derivatives by the first.

    Args:
        function: Its result is a scalar; its arguments have no names.
        of: `value`, `gradient` (with the value), or `hessian` (with the gradient).
    """
    if of == "value":
        return function
    if of == "gradient":
        return jax.value_and_grad(function)
    gradient = jax.grad(function)
    return lambda *arguments: (gradient(*arguments), jax.jacfwd(gradient)(*arguments))
