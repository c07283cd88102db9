"""SuperPMI as a process that compiles recorded methods on request, with the choices that it is told.

The protocol is that of `superpmi -streaming stdin` (dotnet/runtime, src/coreclr/tools/superpmi): a request is
one line, the method's number and options of the JIT between exclamation marks; an answer ends in a line that
says so. A method that the collection does not have ends the process.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import BackendError, ProgramError
from irgym.core.uri import is_file
from irgym.envs.cse.superpmi.answers import NEEDED, AnswerError, JitMethod, method_of
from irgym.measure.external.protocol import Answered, LineLimits, LineReply, told
from irgym.measure.external.session import LineSession

REMEDY = "check that CORE_ROOT has a Checked build of the .NET JIT with superpmi, and that the MCH fits it"

FAILURES = 8
"""Failures in a row that the process is borne with."""

ATTEMPTS = 2
"""How often a method is asked for whose answer does not come: the process may have died of something else."""

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
        timeout_s: Seconds that a method may take.
    """

    core_root: Path
    mch: Path
    timeout_s: float = 60.0

    def command(self, streaming: bool = True) -> list[str]:
        """Return the command that compiles methods on request, or all methods once.

        Raises:
            ProgramError: The folder has no superpmi or no JIT, or the recorded methods are not there.
        """
        superpmi = self.core_root / "superpmi"
        for file, what in ((superpmi, "superpmi"), (self.jit, "the JIT"), (self.mch, "the MCH file")):
            if not is_file(file):
                raise ProgramError(f"{what} is not at {file}: name CORE_ROOT and an MCH file that exist")
        how = ["-streaming", "stdin"] if streaming else []
        return [str(superpmi.absolute()), str(self.jit), *how, str(self.mch), "-v", "q"]

    @property
    def jit(self) -> Path:
        """The JIT's library; it may not be there."""
        names = ("libclrjit.so", "libclrjit.dylib", "clrjit.dll")
        there = (self.core_root / name for name in names if (self.core_root / name).is_file())
        return next(there, self.core_root / names[0])


class SuperPmi(Closing):
    """Compiles the methods of a collection, one after the other. Close it.

    Args:
        collection: The collection.
        failures: Failures in a row that are borne with.

    Raises:
        ProgramError: The collection is not there.
    """

    def __init__(self, collection: Collection, failures: int = FAILURES) -> None:
        self._mch = collection.mch
        self._lines = LineSession(
            collection.command(),
            lambda line: _DONE.fullmatch(line.rstrip()) is not None,
            name="superpmi",
            remedy=REMEDY,
            farewell="quit",
            limits=LineLimits(timeout_s=collection.timeout_s, failures=ATTEMPTS + 1),
        )
        self._borne = failures
        self._failures = 0

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
        reply = self._answer(index, chosen)
        status = _DONE.fullmatch(reply.lines[-1].rstrip())
        method = method_of(reply.lines)
        if method is None or status is None or status[1] != "0":
            said = f"status {status[1]}" if status else "no status"
            raise ProgramError(
                f"the JIT did not compile method {index} of {self._mch} ({said}): leave the method out"
            )
        if method.index != index:
            raise AnswerError(f"the JIT was asked for method {index} and told of {method.index}")
        missing = {name for one in method.candidates for name in NEEDED - one.keys()}
        if missing:
            raise AnswerError(f"the JIT does not tell {', '.join(sorted(missing))} of candidates")
        return method

    def own_choice(self, index: int) -> tuple[int, ...] | None:
        """Return the candidates that the JIT's own heuristic shares in a method, from 0 on; None if unknown.

        Some heuristics count them from 1 on when they tell: the numbering that makes the same code is taken.

        Raises:
            IrgymError: As `compile`.
        """
        own = self.compile(index, None)
        for first in (0, 1):
            chosen = tuple(sorted(one - first for one in own.sequence))
            if len(chosen) == own.shared and min(chosen, default=0) >= 0:
                again = self.compile(index, chosen)
                if (again.score, again.bytes, again.shared) == (own.score, own.bytes, own.shared):
                    return chosen
        return None

    def _answer(self, index: int, chosen: Sequence[int] | None) -> Answered:
        """Return what the process answers, in a new process where one dies.

        Raises:
            ProgramError: It does not answer.
            BackendError: It has answered nothing for several methods in a row, however little was shared.
        """
        if self._failures:
            self._lines.close()
        reply = self._requested(request_of(index, chosen), ATTEMPTS)
        if isinstance(reply, Answered):
            self._failures = 0
            return reply
        self._lines.close()  # its failures are those of this choice, if the method compiles without any
        healthy = isinstance(self._requested(request_of(index, ()), 1), Answered)
        self._failures = 0 if healthy else self._failures + 1
        if self._failures > self._borne:
            raise BackendError(
                f"superpmi failed on {self._failures} methods in a row ({told(reply)}): {REMEDY}"
            )
        raise ProgramError(
            f"the JIT did not compile method {index} of {self._mch} ({told(reply)}): leave the method out"
        )

    def _requested(self, line: str, attempts: int) -> LineReply:
        reply = self._lines.request(line)
        for _ in range(attempts - 1):
            if isinstance(reply, Answered):
                break
            reply = self._lines.request(line)
        return reply

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
