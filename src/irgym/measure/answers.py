"""Answers of isolated processes that read, compile or write instead of measuring."""

from typing import Any

from irgym.base.errors import ProgramError
from irgym.core.cost import Call
from irgym.measure.evaluators import error_of, failure_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Crashed, Raised, Returned


def answered(
    child: Child, call: Call, what: str, by: str, remedy: str = "choose a smaller or another program"
) -> Any:
    """Return what a call returns in a child.

    Args:
        child: Where to run it.
        call: The function and its arguments.
        what: What errors call the program.
        by: What crashes if the child does, such as "LLVM".
        remedy: What to do then, and where the program is too much for it.

    Raises:
        ProgramError: The child does not survive the program, or takes too long.
        IrgymError: The function refuses the program.
        RuntimeError: The function has a bug.
    """
    reply = child.call(call)
    if isinstance(reply, Returned):
        return reply.value
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    if isinstance(reply, Crashed):
        raise ProgramError(f"{what}: {by} crashed on it ({reply.detail}): {remedy}")
    raise ProgramError(f"{what} is too much for {by} ({failure_of(reply).detail}): {remedy}")
