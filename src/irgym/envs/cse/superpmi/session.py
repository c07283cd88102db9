"""SuperPMI as a process that recompiles recorded methods under given choices.

The protocol is that of `superpmi -streaming stdin` (dotnet/runtime, src/coreclr/tools/superpmi): a request is
one line with the method's number and the JIT's options, separated by exclamation marks; an answer ends with a
status line. A request for a method outside the collection ends the process.
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
"""Consecutive failures that are tolerated."""

ATTEMPTS = 2
"""Attempts for a method without an answer: the process may have died for another reason."""

REQUEST_BYTES = 2048
"""Greatest length of a request, the line's end included."""

METRICS = "JitMetrics=1"
HOOK = ("JitRLHook=1", "JitRLHookEmitFeatureNames=1")
"""Options under which the JIT prints metrics, and shares the given candidates."""

_DONE = re.compile(r"\[streaming\] Done\. Status=(-?\d+)")


@dataclass(frozen=True)
class Collection:
    """Recorded methods, and the JIT that compiles them.

    Attributes:
        core_root: The folder with the JIT and superpmi, which .NET calls CORE_ROOT.
        mch: The file of recorded methods.
        timeout_s: Time limit for a method, in seconds.
    """

    core_root: Path
    mch: Path
    timeout_s: float = 60.0

    def command(self, streaming: bool = True) -> list[str]:
        """Return the command that compiles methods on request, or all methods once.

        Raises:
            ProgramError: superpmi, the JIT or the recorded methods are missing.
        """
        superpmi = self.core_root / "superpmi"
        for file, what in ((superpmi, "superpmi"), (self.jit, "the JIT"), (self.mch, "the MCH file")):
            if not is_file(file):
                raise ProgramError(f"{what} is not at {file}: name CORE_ROOT and an MCH file that exist")
        how = ["-streaming", "stdin"] if streaming else []
        return [str(superpmi.absolute()), str(self.jit), *how, str(self.mch), "-v", "q"]

    @property
    def jit(self) -> Path:
        """The JIT's library, which may be missing."""
        names = ("libclrjit.so", "libclrjit.dylib", "clrjit.dll")
        existing = (self.core_root / name for name in names if (self.core_root / name).is_file())
        return next(existing, self.core_root / names[0])


class SuperPmi(Closing):
    """Compiles the methods of a collection, one after the other. Close it.

    Args:
        collection: The collection.
        failures: Consecutive failures that are tolerated.

    Raises:
        ProgramError: The collection does not exist.
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
        self._tolerated = failures
        self._failures = 0

    def compile(self, index: int, chosen: Sequence[int] | None) -> JitMethod:
        """Compile a method.

        Args:
            index: Its number in the collection, from 1.
            chosen: The candidates to share in order, numbered from 0; None for the choice of the JIT's
                heuristic.

        Raises:
            ProgramError: The collection has no such method, or the JIT fails on it.
            AnswerError: The answer cannot be parsed, or is about another method.
            BackendError: The process does not start, or fails repeatedly.
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
        missing = {name for candidate in method.candidates for name in NEEDED - candidate.keys()}
        if missing:
            raise AnswerError(f"the JIT does not tell {', '.join(sorted(missing))} of candidates")
        return method

    def heuristic_choice(self, index: int) -> tuple[int, ...] | None:
        """Return the candidates that the JIT's heuristic shares in a method, from 0; None if unknown.

        Some heuristics print numbers from 1: the numbering that reproduces the same code is taken.

        Raises:
            IrgymError: As `compile`.
        """
        method = self.compile(index, None)
        for first in (0, 1):
            chosen = tuple(sorted(place - first for place in method.sequence))
            if len(chosen) == method.shared and min(chosen, default=0) >= 0:
                again = self.compile(index, chosen)
                if (again.score, again.bytes, again.shared) == (method.score, method.bytes, method.shared):
                    return chosen
        return None

    def _answer(self, index: int, chosen: Sequence[int] | None) -> Answered:
        """Return the answer of the process, restarting it if it dies.

        Raises:
            ProgramError: There is no answer.
            BackendError: Several consecutive methods got no answer, even with nothing shared.
        """
        if self._failures:
            self._lines.close()
        reply = self._requested(request_of(index, chosen), ATTEMPTS)
        if isinstance(reply, Answered):
            self._failures = 0
            return reply
        self._lines.close()  # if the method compiles with nothing shared, the choice is to blame
        healthy = isinstance(self._requested(request_of(index, ()), 1), Answered)
        self._failures = 0 if healthy else self._failures + 1
        if self._failures > self._tolerated:
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
    """Return the request for a method; see `SuperPmi.compile`.

    Raises:
        BackendError: The request is too long for SuperPMI.
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
    """Return the JIT's option that shares the same candidates outside irgym; it numbers them from 1."""
    return f"JitReplayCSE={','.join(f'{place + 1:x}' for place in chosen)}"
