"""SuperPMI as a process that compiles recorded methods on request, with the choices that it is told.

The protocol is that of `superpmi -streaming stdin` (dotnet/runtime, src/coreclr/tools/superpmi): a request is
one line, the method's number and options of the JIT between exclamation marks; an answer ends in a line that
says so. A method that the collection does not have ends the process.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irgym.core.closing import Closing
from irgym.core.errors import BackendError, ProgramError
from irgym.envs.cse.superpmi.answers import AnswerError, JitMethod, method_of
from irgym.measure.lines import Answered, LineLimits, LineSession, told

REMEDY = "check that CORE_ROOT has a Checked build of the .NET JIT with superpmi, and that the MCH fits it"

LIMITS = LineLimits(timeout_s=60.0, failures=8)
"""What the process is borne with."""

REQUEST_BYTES = 2048
"""What SuperPMI reads of a request at most, the line's end included."""

METRICS = "JitMetrics=1"
HOOK = ("JitRLHook=1", "JitRLHookEmitFeatureNames=1")
"""Options under which the JIT tells what it made of a method, and shares what it is told to."""

_DONE = re.compile(r"\[streaming\] Done\. Status=(-?\d+)")


@dataclass(frozen=True)
class Collection:
    """Recorded methods, and the JIT that compiles them.

    Attributes:
        core_root: The folder of the JIT and of superpmi: what builds of the .NET runtime call CORE_ROOT.
        mch: The recorded methods.
        program: How superpmi is begun, in place of the one in `core_root`; for a stand-in.
    """

    core_root: Path
    mch: Path
    program: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """Return the command that compiles methods on request.

        Raises:
            ProgramError: The folder has no superpmi or no JIT, or the recorded methods are not there.
        """
        jit = self._jit()
        for file, what in ((self._superpmi(), "superpmi"), (jit, "the JIT"), (self.mch, "the MCH file")):
            if file is not None and not file.is_file():
                raise ProgramError(f"{what} is not at {file}: name CORE_ROOT and an MCH file that exist")
        begun = self.program or (str(self._superpmi()),)
        return [*begun, str(jit), "-streaming", "stdin", str(self.mch), "-v", "q"]

    def _superpmi(self) -> Path | None:
        return None if self.program else self.core_root / "superpmi"

    def _jit(self) -> Path:
        names = ("libclrjit.so", "libclrjit.dylib", "clrjit.dll")
        there = (self.core_root / name for name in names if (self.core_root / name).is_file())
        return next(there, self.core_root / names[0])


class SuperPmi(Closing):
    """Compiles the methods of a collection, one after the other. Close it.

    Args:
        collection: The collection.
        limits: What to bear with.

    Raises:
        ProgramError: The collection is not there.
    """

    def __init__(self, collection: Collection, limits: LineLimits = LIMITS) -> None:
        self._mch = collection.mch
        self._lines = LineSession(
            collection.command(),
            lambda line: _DONE.fullmatch(line.rstrip()) is not None,
            name="superpmi",
            remedy=REMEDY,
            farewell="quit",
            limits=limits,
        )

    def compile(self, index: int, chosen: Sequence[int] | None) -> JitMethod:
        """Compile a method.

        Args:
            index: Its number in the collection, from 1 on.
            chosen: The candidates to share, from 0 on, in the order in which they are to be; None: what the
                JIT's own heuristic chooses.

        Raises:
            ProgramError: The collection has no such method, or the JIT fails on it.
            AnswerError: The JIT told something that cannot be read, or of another method.
            BackendError: The process does not start, or fails again and again.
        """
        reply = self._lines.request(request_of(index, chosen))
        if not isinstance(reply, Answered):
            raise ProgramError(
                f"the JIT did not compile method {index} of {self._mch} ({told(reply)}): leave the method out"
            )
        status = _DONE.fullmatch(reply.lines[-1].rstrip())
        method = method_of(reply.lines)
        if method is None or status is None or status[1] != "0":
            said = f"status {status[1]}" if status else "no status"
            raise ProgramError(
                f"the JIT did not compile method {index} of {self._mch} ({said}): leave the method out"
            )
        if method.index != index:
            raise AnswerError(f"the JIT was asked for method {index} and told of {method.index}")
        return method

    def close(self) -> None:
        """End the process."""
        self._lines.close()


def request_of(index: int, chosen: Sequence[int] | None) -> str:
    """Return the line that asks for a method; see `SuperPmi.compile`.

    Raises:
        BackendError: It is longer than SuperPMI reads.
    """
    parts = [str(index), METRICS]
    if chosen is not None:
        parts += HOOK
        if chosen:
            parts.append(f"JitRLHookCSEDecisions={','.join(map(str, chosen))}")
    line = "!".join(parts)
    if len(line) + 1 >= REQUEST_BYTES:
        raise BackendError(f"superpmi reads no request of {len(line)} bytes: share fewer candidates")
    return line


def replayed(chosen: Sequence[int]) -> str:
    """Return the option of the JIT that shares the same candidates outside of irgym; it counts from 1 on."""
    return f"JitReplayCSE={','.join(f'{one + 1:x}' for one in chosen)}"
