"""Programs from Python objects: each function returns the URI of a program.

`irgym.tune(module, x)` does this too; a URI is for programs that are tuned later, or several times.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from irgym.base.errors import ProgramError

__all__ = ["from_einsum", "from_jax", "from_numba", "from_torch"]

TORCH = {
    "graph": "irgym.envs.graph.programs.from_torch",
    "linalg": "irgym.envs.linalg.importing.from_torch",
}
"""Modules that write torch modules, by environment."""


def from_torch(module: Any, *inputs: Any, environment: str = "graph", path: str | Path | None = None) -> str:
    """Write a torch module as ONNX or MLIR, with its weights and fixed shapes, and return the program's URI.

    Args:
        module: A `torch.nn.Module` in evaluation mode.
        inputs: Example inputs: the module is called with them, and compared with the program on these and
            similar ones.
        environment: `graph` for ONNX, or `linalg` for MLIR.
        path: File to write, *.onnx or *.mlir; by default one in the user's cache folder, named by its
            content.

    Raises:
        BackendError: A package is not installed; the message names it.
        ProgramError: The module cannot be exported; the message names the obstacle.
        StorageError: The file cannot be written.
    """
    if environment not in TORCH:
        raise ProgramError(f"{environment!r} takes no torch modules: choose {' or '.join(TORCH)}")
    uri: str = import_module(TORCH[environment]).from_torch(module, *inputs, path=path)
    return uri


def from_jax(function: Callable[..., Any], *arguments: Any) -> str:
    """Write the HLO of a function in JAX, before any of XLA's passes, and return the program's URI.

    The module is kept in the user's cache folder, named by its content, so that the URI means the same
    program in every later process.

    Args:
        function: A function of arrays, jitted or not.
        arguments: Arrays or `jax.ShapeDtypeStruct`s, nested as the function takes them; only shapes matter.

    Raises:
        BackendError: jax is not installed.
        ProgramError: jax cannot lower the function to one static HLO module.
        StorageError: The cache folder cannot be written.
    """
    from irgym.envs.hlo.programs.from_jax import program_of_function

    return program_of_function(function, arguments)


def from_numba(function: Callable[..., Any], signature: Any) -> str:
    """Write numba's unoptimised LLVM IR of a function, and return the URI of a program of cse.

    Args:
        function: A function that numba compiles in nopython mode, jitted or not.
        signature: Types of its arguments as numba takes them, such as `"float64(float64[:], int64)"`.

    Raises:
        BackendError: numba is not installed.
        ProgramError: numba cannot compile the function; the message quotes numba.
        StorageError: The cache folder cannot be written.
    """
    from irgym.envs.cse.programs.from_numba import from_numba as lowered

    return lowered(function, signature)


def from_einsum(subscripts: str, *operands: Any, **sizes: int) -> str:
    """Return the URI of the program of `loops` that computes `numpy.einsum(subscripts, *operands)`.

    Args:
        subscripts: The contraction, in numpy's notation: with `...`, or without an output. Axes may also be
            affine, as in `n[2*h+r-1]c,rcf->nhf`; elements outside of the array are then zeros.
        operands: One or two arrays of numpy or torch, or their shapes for float32. Only shape and type of
            elements matter; the program takes arrays in row-major order.
        sizes: Sizes of letters that stand in brackets only.

    Raises:
        ProgramError: They do not fit together, or `loops` has no such program; the message says why.
    """
    from irgym.envs.loops.programs.from_einsum import from_einsum as lowered

    return lowered(subscripts, operands, sizes)
