"""Replies of isolated processes, turned into values, measurements or errors."""

from typing import Any

from irgym.base.errors import IrgymError, ProgramError
from irgym.core.cost import Call, Measurement, Outcome
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Crashed, OutOfMemory, Raised, Returned, TimedOut


def answered(
    child: Child, call: Call, what: str, by: str, remedy: str = "choose a smaller or another program"
) -> Any:
    """Return the value that a call returns in a child.

    Args:
        child: The child process.
        call: The function and its arguments.
        what: Name of the program in errors.
        by: Name of the component that processes it, such as "LLVM".
        remedy: Advice where that component crashes, or the program is too much for it.

    Raises:
        ProgramError: The child crashes on the program, or takes too much time or memory.
        IrgymError: The function refuses the program.
        RuntimeError: The function has a bug.
    """
    reply = child.call(call)
    if isinstance(reply, Returned):
        return reply.value
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    if isinstance(reply, Crashed):
        raise ProgramError(f"{what}: {by} crashed on it ({_brief(reply.detail)}): {remedy}")
    raise ProgramError(f"{what} is too much for {by} ({failure_of(reply).detail}): {remedy}")


def _brief(detail: str) -> str:
    """Return how a process died without the traceback of this program, which no user can act on."""
    return detail.partition("Fatal Python error: ")[0].strip().removesuffix("it printed:").rstrip("; ")


def failure_of(reply: Crashed | TimedOut | OutOfMemory) -> Measurement:
    """Return the measurement of a call that its process did not survive."""
    if isinstance(reply, Crashed):
        return Measurement(Outcome.CRASH, detail=reply.detail)
    if isinstance(reply, TimedOut):
        idle = ", in which it hardly computed" if reply.doubtful else ""
        return Measurement(Outcome.TIMEOUT, detail=f"it took longer than {reply.seconds:g} s{idle}")
    return Measurement(Outcome.OUT_OF_MEMORY, detail=reply.detail)


def error_of(call: Call, reply: Raised) -> IrgymError | RuntimeError:
    """Return the exception of a call that raised: the user's error, or a bug with its traceback."""
    if reply.user_error is not None:
        return reply.user_error
    return RuntimeError(f"{call.function} failed in the isolated process:\n{reply.traceback}")
