"""Run times of whole programs. It works in the measuring child."""

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path as File

from irgym.base.errors import BaselineError, IrgymError, ProgramError
from irgym.core.cost import Measurement, Outcome
from irgym.envs.llvm.checking.programs import Expected, difference, expected
from irgym.envs.llvm.compiling.store import store
from irgym.envs.llvm.whole.linking import executable
from irgym.envs.llvm.whole.running import (
    LEAST_S,
    LIMITS,
    LONGER,
    Ending,
    Limits,
    OtherEndError,
    Run,
    ending,
    repeated,
)
from irgym.measure.machine import restart_clock
from irgym.measure.passes.store import Path
from irgym.measure.timing import Run as Runs
from irgym.measure.timing import Timing, interleave, sample

TIMING = Timing(
    budget_ns=500_000_000,
    sample_ns=20_000_000,
    fewest=3,
    slow_ns=150_000_000,
    disturbance=0.1,
    clock="children",
)
"""A run takes a tenth of a second or longer, and starting a program some milliseconds."""

REMEDY = "give it arguments or input with which it ends sooner, as in llvm:prog.c?args=100&stdin=FILE"


@dataclass(frozen=True)
class WholeProgram:
    """A program to run.

    Attributes:
        file: File of its bitcode.
        backend: Name of the LLVM.
        name: Its name in errors.
        run: How it is run.
    """

    file: str
    backend: str
    name: str
    run: Run


@contextmanager
def linked(program: WholeProgram, path: Path) -> Generator[File]:
    """Return the executable of a program after the passes of a path, which is removed in the end.

    Raises:
        ProgramError: It does not link.
        PassFailure: A pass fails, or LLVM generates no code.
    """
    code = store(program.backend).module(program.file, path).module.code()
    with executable(code, program.name) as file:
        yield file


@dataclass(frozen=True)
class Original:
    """An original program as it runs.

    Attributes:
        expected: Its output and end.
        limits: Limits of optimised programs.
    """

    expected: Expected
    limits: Limits

    def wrong(self, found: Ending) -> str:
        """Return how a run differs from the original's, in words; empty where it does not, or may."""
        if found.limited:
            return found.text
        return "" if self.expected.blind else difference(self.expected.first, found)


@lru_cache(maxsize=64)
def original_of(program: WholeProgram) -> Original:
    """Run an original program, and return what it does.

    Raises:
        ProgramError: It does not link, crashes, or does not end within the limits.
    """
    with linked(program, ()) as file:
        restart_clock()
        begin = time.perf_counter()
        found = expected(file, program.run, LIMITS)
        seconds = time.perf_counter() - begin
        restart_clock()
    if found.first.limited:
        limits = f"{LIMITS.seconds:g} s, {LIMITS.output_bytes >> 20} MiB"
        raise ProgramError(f"{program.name}: {found.first.text} ({limits}): {REMEDY}")
    if found.first.killed:
        raise ProgramError(
            f"{program.name} crashes with {found.first.text} before any pass: mend it, or give it the "
            "arguments and the input that it needs, as in llvm:prog.c?args=100&stdin=FILE"
        )
    return Original(found, replace(LIMITS, seconds=max(LEAST_S, LONGER * seconds / 2)))


def timed(program: WholeProgram, path: Path, timing: Timing) -> Measurement:
    """Return run times of a program after passes, in nanoseconds, or how it fails.

    A program whose output or exit status differs from the original's has a wrong result.

    Raises:
        ProgramError: The original does not link, crashes, or does not end within the limits.
        PassFailure: A pass fails, or LLVM generates no code.
    """
    original = original_of(program)
    begin = time.perf_counter()
    with linked(program, path) as file:
        compile_s = time.perf_counter() - begin
        restart_clock()
        found = ending(file, program.run, original.limits)
        wrong = original.wrong(found)
        if wrong:
            outcome = Outcome.TIMEOUT if found.limited else Outcome.WRONG_RESULT
            return Measurement(outcome, compile_s=compile_s, detail=wrong)
        try:
            runs = repeated(file, program.run, found.status, original.limits)
            return Measurement(Outcome.OK, sample(runs, timing), compile_s)
        except OtherEndError as error:
            return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=str(error))


def in_turn(
    program: WholeProgram, ours: Path, theirs: Path, rounds: int, timing: Timing
) -> list[tuple[float, float]]:
    """Time a program after the passes of two paths in turn.

    Args:
        program: The program.
        ours: The passes of the program to judge.
        theirs: The passes of the other one.
        rounds: Number of rounds.
        timing: The timing protocol.

    Returns:
        For each round, nanoseconds of the first and of the second.

    Raises:
        BaselineError: The second one gives other results than the original.
        IrgymError: The first one does, or a program does not link.
    """
    original = original_of(program)
    with ExitStack() as stack:
        runs = [
            _repeated(stack.enter_context(linked(program, path)), program, original, kind)
            for path, kind in ((ours, IrgymError), (theirs, BaselineError))
        ]
        return interleave(runs[0], runs[1], rounds, timing)


def _repeated(file: File, program: WholeProgram, original: Original, kind: type[IrgymError]) -> Runs:
    """Check a program, and return what runs it for timing."""
    restart_clock()
    found = ending(file, program.run, original.limits)
    restart_clock()
    wrong = original.wrong(found)
    if wrong:
        raise kind(f"{program.name} gives a wrong result ({wrong}): choose another schedule")
    return repeated(file, program.run, found.status, original.limits)
