"""Compiled nests: functions in memory."""

import ctypes
from typing import Protocol

import numpy as np

from irgym.envs.loops.programs.elements import Elements
from irgym.measure.arrays import aligned
from irgym.measure.native import ExecutableBuffer

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
        """Compute C from A and B, tensors at these addresses, `repetitions` >= 1 times.

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


class MachineCode:
    """Generated machine code in memory, until it is closed.

    Attributes:
        code: The function's machine code.
        address: Address of the function.
        workspace: Address of the workspace.
    """

    def __init__(self, code: bytes, workspace: int, elements: Elements) -> None:
        """Map the code of a function.

        Args:
            code: Machine code of a function of the type `PROTOTYPE`.
            workspace: Number of elements of its workspace.
            elements: Their type.

        Raises:
            OSError: The system is out of memory, or forbids executable memory.
        """
        self.code: bytes | None = code
        self._buffer = ExecutableBuffer(code)
        self.address = self._buffer.address
        self._function = PROTOTYPE(self.address)
        self._workspace = aligned((elements.bytes * workspace,), np.uint8)
        self.workspace = int(self._workspace.ctypes.data)

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        self._function(a, b, c, repetitions, self.workspace)

    def close(self) -> None:
        """Free the machine code."""
        self._buffer.close()
