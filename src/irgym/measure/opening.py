"""Files of users and strangers: every one is opened in a child process, under limits that its size sets.

Environments make programs of files by calls in an `Opener`, never in their own process: a file may crash a
parser, expand without end, or describe more than memory holds. Opening it then costs a child, and ends with
one sentence.
"""

from collections.abc import Sequence
from typing import Any

from irgym.base.closing import Closing
from irgym.core.cost import Call
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.replies import answered

SECONDS = 20.0
"""Seconds that a call on a small file may take."""

SPEED = 16 << 20
"""Bytes of a file for which a call may take one second more."""

MEMORY = 2 * GIB + GIB // 2
"""Bytes of memory that a call on a small file may take."""

TIMES = 6
"""How many times its own size a file may take besides."""

STEP = 64 << 20
"""Sizes are rounded up to multiples of this many bytes, so that files of about one size share a child."""


def limits_of(size: int, seconds: float = SECONDS) -> Limits:
    """Return what a call on a program of so many bytes may take.

    Args:
        size: The bytes.
        seconds: Seconds that a call on a small file may take.
    """
    rounded = -(-size // STEP) * STEP if size >= STEP else 0
    memory = min(MEMORY + TIMES * rounded, 12 * GIB)
    return Limits(timeout_s=seconds + rounded / SPEED, memory_bytes=memory, file_bytes=8 * GIB)


class Opener(Closing):
    """Runs the calls that open files, in a child whose limits follow from the size of the file at hand.

    The child starts on the first call, and again where a file of another size needs other limits. Use it from
    one thread at a time. Close it, or let it go with the process.

    Args:
        by: What errors call the parser: "LLVM".
        remedy: What they advise where a file is too much for it.
        seconds: Seconds that a call on a small file may take.
    """

    def __init__(
        self, by: str, remedy: str = "choose a smaller or another program", seconds: float = SECONDS
    ) -> None:
        self._seconds = seconds
        self._by = by
        self._remedy = remedy
        self._child: Child | None = None

    def start(self, modules: Sequence[str], size: int = 0) -> None:
        """Start the child, if there is none, and have it import modules; do not wait for it."""
        self._for(size).start(modules)

    def call(self, call: Call, what: str, size: int = 0) -> Any:
        """Return what a call returns.

        Args:
            call: The function and its arguments.
            what: What errors call the file.
            size: Bytes that the call has to read.

        Raises:
            ProgramError: The file crashes the child, or takes more than its limits.
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
        limits = limits_of(size, self._seconds)
        if self._child is None or self._child.limits != limits:
            self.close()
            self._child = Child(limits)
        return self._child
