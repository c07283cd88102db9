"""Opening of untrusted files in a child process, under limits that depend on the file's size.

Environments read programs from files by calls in an `Opener`, never in this process: a file may crash a
parser, expand endlessly, or describe more data than fits into memory. Opening it then costs a child, and
ends with an error of one sentence.
"""

from collections.abc import Sequence
from typing import Any

from irgym.base.closing import Closing
from irgym.core.cost import Call
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.replies import answered

SECONDS = 20.0
"""Time limit of a call on a small file, in seconds."""

SPEED = 16 << 20
"""Bytes of a file for which a call gets one more second."""

MEMORY = 2 * GIB + GIB // 2
"""Memory limit of a call on a small file, in bytes."""

TIMES = 6
"""Additional bytes of memory for each byte of the file."""

STEP = 64 << 20
"""Sizes are rounded up to multiples of this many bytes, so that files of similar size share a child."""


def limits_of(size: int, seconds: float = SECONDS, memory: int = MEMORY) -> Limits:
    """Return the limits of a call on a file.

    Args:
        size: Bytes of the file.
        seconds: Time limit for a small file.
        memory: Memory limit for a small file, in bytes.
    """
    rounded = -(-size // STEP) * STEP if size >= STEP else 0
    most = min(memory + TIMES * rounded, 12 * GIB)
    return Limits(timeout_s=seconds + rounded / SPEED, memory_bytes=most, file_bytes=8 * GIB)


class Opener(Closing):
    """Runs calls that open files, in a child whose limits depend on the file's size.

    The child starts on the first call, and restarts for a file that needs other limits. Use it from one
    thread at a time. Close it, or let it end with the process.

    Args:
        by: Name of the parser in errors: "LLVM".
        remedy: Advice where a file is too much for it.
        seconds: Time limit of a call on a small file.
        memory: Memory limit of a call on a small file, in bytes.
    """

    def __init__(
        self,
        by: str,
        remedy: str = "choose a smaller or another program",
        seconds: float = SECONDS,
        memory: int = MEMORY,
    ) -> None:
        self._seconds = seconds
        self._memory = memory
        self._by = by
        self._remedy = remedy
        self._child: Child | None = None

    def start(self, modules: Sequence[str], size: int = 0) -> None:
        """Start the child, if there is none, and let it import modules; do not wait for it."""
        self._for(size).start(modules)

    def call(self, call: Call, what: str, size: int = 0) -> Any:
        """Return the value of a call.

        Args:
            call: The function and its arguments.
            what: Name of the file in errors.
            size: Bytes that the call has to read.

        Raises:
            ProgramError: The file crashes the child, or exceeds its limits.
            IrgymError: The function refuses the file.
            RuntimeError: The function has a bug.
        """
        return answered(self._for(size), call, what, self._by, self._remedy)

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child:
            child.close()

    def _for(self, size: int) -> Child:
        limits = limits_of(size, self._seconds, self._memory)
        if self._child is None or self._child.limits != limits:
            self.close()
            self._child = Child(limits)
        return self._child
