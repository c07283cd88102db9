"""Comparison of two executables: their output, exit status and signals, under limits."""

from dataclasses import dataclass, replace
from pathlib import Path

from irgym.core.cost import Validation
from irgym.envs.llvm.whole.running import LIMITS, LONGER, Ending, Limits, Run, ending

TOLERANCE = "output and exit status, byte for byte"
"""The tolerance of comparisons, for messages."""

_SHOWN = 40


@dataclass(frozen=True)
class Expected:
    """Output and end of an original program, from two runs.

    Attributes:
        first: The first run.
        blind: Why other programs cannot be compared with it, in words; empty if they can.
    """

    first: Ending
    blind: str


def expected(original: Path, run: Run, limits: Limits = LIMITS) -> Expected:
    """Run an original program twice: where it does not repeat itself, nothing can be compared with it.

    Raises:
        OSError: It cannot be started.
    """
    first = ending(original, run, limits)
    again = first if first.limited else ending(original, run, limits)
    if first.limited or again.limited:
        stopped = first if first.limited else again
        return Expected(first, f"the original program is stopped: {stopped.text}")
    if first.killed:
        return Expected(first, f"the original program crashes with {first.text}")
    return Expected(first, "" if first == again else "the original program's output differs from run to run")


def difference(wanted: Ending, found: Ending) -> str:
    """Return how a run differs from the original's, in words; empty if it does not."""
    if found.status != wanted.status:
        return f"the program ends with {found.text}, not with {wanted.text}"
    if found.output == wanted.output:
        return ""
    pairs = enumerate(zip(wanted.output, found.output, strict=False))
    shorter = min(len(wanted.output), len(found.output))
    place = next((number for number, (first, second) in pairs if first != second), shorter)
    shown, instead = (run.output[place : place + _SHOWN] for run in (found, wanted))
    return f"the output differs from byte {place} on: {shown!r}, not {instead!r}"


def compared_programs(original: Path, optimised: Path, run: Run, limits: Limits = LIMITS) -> Validation:
    """Run two programs on the same input, and compare what they do.

    Each runs in a new folder, which is removed afterwards.

    Args:
        original: The original program.
        optimised: The optimised program; it may take `LONGER` times as long.
        run: Arguments and input of both.
        limits: Limits of a run of the original.

    Raises:
        OSError: A program cannot be started.
    """
    wanted = expected(original, run, limits)
    if wanted.blind:
        return Validation(True, 0.0, TOLERANCE, 0, blind=wanted.blind)
    found = ending(optimised, run, replace(limits, seconds=LONGER * limits.seconds))
    detail = difference(wanted.first, found)
    return Validation(not detail, 0.0, TOLERANCE, 1, detail)


def both(functions: Validation, program: Validation) -> Validation:
    """Return what the comparisons of a program's functions and of its output come to.

    Where the output agrees, functions that could not be compared by themselves become a note: they are part
    of the program that ran.
    """
    details = [text for text in (functions.detail, program.detail) if text]
    notes = [*functions.notes, f"the program was run: {program.blind or program.tolerance}"]
    blind = functions.blind
    if blind and program.checked:
        notes.append(f"functions {blind}")
        blind = ""
    return replace(
        functions,
        ok=functions.ok and program.ok,
        inputs=max(functions.inputs, program.inputs),
        detail="; ".join(details),
        blind=blind,
        notes=tuple(notes),
    )
