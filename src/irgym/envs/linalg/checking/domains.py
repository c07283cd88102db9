"""What a program's arguments may hold: indices within their tensors, whole numbers that nothing rounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irgym.envs.linalg.checking.exactness import Findings, findings
from irgym.envs.linalg.checking.intervals import GREATEST, TRUTH, UNKNOWN, Interval, symmetric
from irgym.envs.linalg.compiling.compiler import function_of, mlir, parse, run_passes
from irgym.envs.linalg.scheduling.operations import FLOATS, Program

MOST = 4095
"""Greatest absolute value of whole numbers that serve as elements of floating-point arguments."""

WIDE, POSITIVE = Interval(-1000, 1000), Interval(1, 1000)
"""Ranges of whole numbers: for most arguments, and for those that are divided by."""


@dataclass(frozen=True)
class Domains:
    """What arguments may hold.

    Attributes:
        whole: By the place of an argument of whole numbers its range; indices stay within their tensors.
        exact: Greatest absolute value of whole numbers as elements of the other arguments with which nothing
            is rounded; 0 where there is none.
    """

    whole: Mapping[int, Interval]
    exact: int


def domains(text: str, program: Program) -> Domains:
    """Return what a program's arguments may hold.

    Args:
        text: The program.
        program: What it is made of.
    """
    with mlir():
        module = parse(text)
        run_passes(module, "func.func(linalg-generalize-named-ops)")

        def found(whole: Mapping[int, Interval], size: int) -> Findings:
            kinds = enumerate(program.arguments)
            ranges = [
                whole[place] if place in whole else UNKNOWN if not size else symmetric(size)
                for place, _ in kinds
            ]
            return findings(function_of(module), program, ranges)

        elements = [element for _, element in program.arguments]
        narrow = {place: TRUTH for place, element in enumerate(elements) if element not in FLOATS}
        whole = dict(narrow)
        # Twice: a range may be safe only once another's is, as with that of a divisor.
        for place in (*narrow, *narrow):
            if elements[place] != "i1":
                whole[place] = _widest(
                    elements[place], lambda interval, at=place: found({**whole, at: interval}, 0).safe
                )
        for ranges in (whole, narrow):
            size = _greatest(MOST, lambda size, ranges=ranges: found(ranges, size).exact)
            if size:
                return Domains(ranges, size)
        return Domains(whole, 0)


def _widest(element: str, safe: Callable[[Interval], bool]) -> Interval:
    """Return the widest range that is safe; truth values where none is known to be."""
    if safe(_of_type(WIDE, element)):
        return _of_type(WIDE, element)
    high = _greatest(1000, lambda high: safe(_of_type(Interval(0, high), element)))
    if high:
        return _of_type(Interval(0, high), element)
    return _of_type(POSITIVE, element) if safe(_of_type(POSITIVE, element)) else TRUTH


def _greatest(most: int, holds: Callable[[int], bool]) -> int:
    """Return the greatest number up to `most` for which something holds, as for all below it; 0 for none."""
    low, high = 0, most + 1
    while high - low > 1:
        # The least is tried first: it does not hold for most programs.
        middle = (low + high) // 2 if low else 1
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _of_type(interval: Interval, element: str) -> Interval:
    most = GREATEST[element]
    return Interval(max(interval.low, -most), min(interval.high, most))
