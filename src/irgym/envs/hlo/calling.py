"""Functions of JAX after passes, called in place of the original; imports jax, as whoever made them did."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.export

from irgym.core.errors import ProgramError
from irgym.envs.hlo.lowering import jitted, portable, to_stablehlo


def in_place_of(function: Callable[..., Any], inputs: Sequence[Any], proto: bytes) -> Callable[..., Any]:
    """Return what computes a module and is called as the function that it was made of.

    It is a function of jax: it may be jitted with others, and takes and returns pytrees as the function does.
    XLA compiles it on its first call.

    Args:
        function: What was lowered.
        inputs: Arrays or `jax.ShapeDtypeStruct`s that it was lowered with.
        proto: HloModuleProto of it, after passes.

    Raises:
        ProgramError: jax cannot export the function, or the module has operations that StableHLO lacks.
    """
    try:
        frame = jax.export.export(jitted(function), platforms=("cpu",))(*inputs)
    except (TypeError, ValueError, NotImplementedError) as error:
        name = getattr(function, "__name__", "the function")
        raise ProgramError(f"jax cannot export {name}, so it cannot be called ({error})") from error
    code = portable(to_stablehlo(proto))
    return jax.jit(replace(frame, mlir_module_serialized=code).call)
