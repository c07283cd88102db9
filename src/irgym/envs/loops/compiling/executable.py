"""Compiled nests: functions in memory."""

import ctypes
from typing import Protocol

PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)
"""Type of the compiled function: A, B, C, repetitions and workspace. Calls release the GIL."""


class Executable(Protocol):
    """A compiled kernel in memory."""

    @property
    def code(self) -> bytes | None:
        """Machine code; None if the back end does not give it away."""
        ...

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Compute C from A and B, float32 tensors at these addresses, `repetitions` >= 1 times.

        Other Python threads can run meanwhile.
        """
        ...

    def close(self) -> None:
        """Free the machine code; `run` must not be called after it. Closing twice has no effect."""
        ...


class Compiled(Executable, Protocol):
    """A compiled kernel, of the type `PROTOTYPE`, that runs on the thread that calls it."""

    @property
    def address(self) -> int:
        """Address of the function."""
        ...

    @property
    def workspace(self) -> int:
        """Address of the workspace."""
        ...
