"""Programs of hlo from functions in JAX."""

from collections.abc import Callable, Sequence
from typing import Any

from irgym.base.errors import BackendError
from irgym.envs.hlo.compiling.toolchain import INSTALL, installed
from irgym.envs.hlo.programs.sources import STORE
from irgym.measure.store import stem_of


def program_of_function(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """Return the URI of a function in JAX: its HLO before any of XLA's passes.

    The module is stored in the user's cache folder under a name derived from its content, so the URI means
    the same program in later processes.

    Args:
        function: A function of arrays, jitted or not.
        arguments: Arrays or `jax.ShapeDtypeStruct`s, nested as the function expects; only shapes matter.

    Raises:
        BackendError: jax is not installed.
        ProgramError: jax cannot lower the function to one static HLO module; or the function has static
            arguments, draws random numbers outside jax or keeps state.
        StorageError: The cache folder cannot be written.
    """
    if not installed("jax"):
        raise BackendError(f"from_jax needs jax, which is not installed: run {INSTALL}")
    from irgym.envs.hlo.compiling.calling import refuse_unsteady
    from irgym.envs.hlo.programs.lowering import lower_function

    refuse_unsteady(function, arguments)
    name = stem_of(getattr(function, "__name__", "function"))
    return f"hlo:{STORE.put(name, lower_function(function, tuple(arguments)))}"
