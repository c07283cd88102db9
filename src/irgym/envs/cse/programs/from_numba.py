"""Python functions as programs of `cse`, by numba."""

import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from irgym.base.errors import ProgramError
from irgym.core.cost import Call
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.replies import answered
from irgym.measure.store import Store, digest, stem_of

LIMITS = Limits(timeout_s=300.0, memory_bytes=8 * GIB)
"""Limits of compiling a function."""

STORE = Store("cse/functions", ".ll")
"""IR of functions, as numba generates it."""


def from_numba(function: Callable[..., Any], signature: Any) -> str:
    """Write numba's unoptimised LLVM IR of a function to the cache, and return the program's URI.

    Args:
        function: A function that numba compiles in nopython mode, jitted or not.
        signature: Types of its arguments as numba takes them, such as `"float64(float64[:], int64)"`.

    Raises:
        BackendError: numba is not installed.
        ProgramError: numba cannot compile the function; the message quotes numba.
        StorageError: The cache folder cannot be written.
    """
    plain = getattr(function, "py_func", function)
    name = getattr(plain, "__name__", type(plain).__name__)
    call = Call("irgym.envs.cse.programs.lowering:lowered", (_pickled(plain, signature, name), name))
    with Child(LIMITS) as child:
        symbol, text = answered(child, call, name, "numba")
    file = STORE.put(f"{stem_of(name)}-{digest(text)}", text.encode())
    return f"cse:{file}#{symbol}"


def _pickled(function: Any, signature: Any, name: str) -> bytes:
    """Pickle a function by value, since the child may not find its module.

    Raises:
        ProgramError: It cannot be pickled.
    """
    cloudpickle: Any = import_module("cloudpickle")
    module = sys.modules.get(getattr(function, "__module__", ""))
    with_code = module is not None and module.__name__ != "__main__"
    if module is not None and with_code:
        cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps((function, signature))
    except (pickle.PicklingError, TypeError) as error:
        raise ProgramError(
            f"{name} cannot be handed to another process ({error}): give a function"
        ) from error
    finally:
        if module is not None and with_code:
            cloudpickle.unregister_pickle_by_value(module)
