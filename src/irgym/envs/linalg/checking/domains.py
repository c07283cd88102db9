"""Ranges of a program's arguments: indices within tensors, and integers for which nothing is rounded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irgym.envs.linalg.checking.exactness import Findings, findings
from irgym.envs.linalg.checking.intervals import GREATEST, TRUTH, UNKNOWN, Interval, symmetric
from irgym.envs.linalg.compiling.compiler import function_of
from irgym.envs.linalg.compiling.contexts import mlir, parse, run_passes
from irgym.envs.linalg.scheduling.operations import FLOATS, Program

MOST = 4095
"""Greatest absolute value of the integers in floating-point arguments."""

WIDE, POSITIVE = Interval(-1000, 1000), Interval(1, 1000)
"""Ranges of integer arguments: for most of them, and for divisors."""


@dataclass(frozen=True)
class Domains:
    """Ranges of arguments.

    Attributes:
        whole: Range of each integer argument, by its place; it keeps indices within their tensors.
        exact: Greatest absolute value of integers in the floating-point arguments for which nothing is
            rounded; 0 if there is none.
    """

    whole: Mapping[int, Interval]
    exact: int


def domains(text: str, program: Program) -> Domains:
    """Return the ranges of a program's arguments.

    Args:
        text: The program.
        program: Description of the program.
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
        # Twice: a range may become safe only after another one, such as a divisor's, is narrowed.
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
    """Return the widest safe range; 0 and 1 where none is known to be safe."""
    if safe(_of_type(WIDE, element)):
        return _of_type(WIDE, element)
    high = _greatest(1000, lambda high: safe(_of_type(Interval(0, high), element)))
    if high:
        return _of_type(Interval(0, high), element)
    return _of_type(POSITIVE, element) if safe(_of_type(POSITIVE, element)) else TRUTH


def _greatest(most: int, holds: Callable[[int], bool]) -> int:
    """Return the greatest number up to `most` for which a monotone predicate holds; 0 for none."""
    low, high = 0, most + 1
    while high - low > 1:
        # 1 is tried first: for most programs the predicate does not hold even there.
        middle = (low + high) // 2 if low else 1
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _of_type(interval: Interval, element: str) -> Interval:
    most = GREATEST[element]
    return Interval(max(interval.low, -most), min(interval.high, most))
