"""HLO programs from functions: `irgym.hlo.from_jax(step, *arguments)` returns a task."""

from collections.abc import Callable
from typing import Any

from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.from_jax import program_of_function
from irgym.envs.hlo.task import HloTask

__all__ = ["from_jax"]


def from_jax(function: Callable[..., Any], *arguments: Any) -> HloTask:
    """Return the task of a function in JAX: its HLO before any of XLA's passes.

    The module is kept in the user's cache folder under a name made of its content, so that the task's URI
    means the same program in every later process.

    Args:
        function: A function of arrays, jitted or not.
        arguments: Arrays or `jax.ShapeDtypeStruct`s, nested as the function takes them; only shapes matter.

    Raises:
        BackendError: jax is not installed, or the engine cannot be built.
        ProgramError: jax cannot lower the function to one static HLO module.
        StorageError: The cache folder cannot be written.
    """
    return HLO.task(program_of_function(function, arguments))
