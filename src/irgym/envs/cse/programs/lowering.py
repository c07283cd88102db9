"""Lowering of Python functions to LLVM's IR, by numba. It runs in a child."""

import os
import pickle
from importlib import import_module
from typing import Any

from irgym.base.errors import BackendError, ProgramError

INSTALL = "pip install 'irgym[cse-numba]'"


def lowered(content: bytes, name: str) -> tuple[str, str]:
    """Return the symbol of a function, and the IR of its module.

    Args:
        content: The function and its signature, pickled by cloudpickle.
        name: Name for messages.

    Raises:
        BackendError: numba is not installed.
        ProgramError: numba cannot compile the function.
    """
    os.environ["NUMBA_OPT"] = "0"  # read at import; numba's optimisations would already share expressions
    try:
        numba: Any = import_module("numba")
    except ImportError as error:
        raise BackendError(f"from_numba needs numba, which is not installed: run {INSTALL}") from error
    try:
        function, signature = pickle.loads(content)
        dispatcher = numba.njit(function)
        dispatcher.compile(signature)
        [compiled] = dispatcher.overloads.values()
    except (
        numba.core.errors.NumbaError,
        ImportError,
        NameError,
        SyntaxError,
        TypeError,
        ValueError,
    ) as error:
        raise ProgramError(
            f"numba does not compile {name} ({_said(error)}): check the function and its signature"
        ) from error
    return compiled.fndesc.mangled_name, compiled.library.get_llvm_str()


def _said(error: Exception) -> str:
    """Return the message of an error, without the locations that numba adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("Failed in", "File ", "During:", "^", "<source"))]
    return (said or lines or [type(error).__name__])[0]
