"""Functions in Python as LLVM's IR, by numba. It runs in a child process of its own."""

import os
import pickle
from importlib import import_module
from typing import Any

from irgym.base.errors import BackendError, ProgramError

INSTALL = "pip install 'irgym[cse-numba]'"


def lowered(content: bytes, name: str) -> tuple[str, str]:
    """Return a function's symbol, and the IR of its module.

    Args:
        content: The function and its signature, pickled by cloudpickle.
        name: What messages call it.

    Raises:
        BackendError: numba is not installed.
        ProgramError: numba does not compile the function.
    """
    os.environ["NUMBA_OPT"] = "0"  # read when numba is imported: what it shared could not be chosen any more
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
    """Return what an error says, less the places that numba adds around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("Failed in", "File ", "During:", "^", "<source"))]
    return (said or lines or [type(error).__name__])[0]
