"""Problems to check a program on: inputs, expected results, and wrong answers that would pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irgym.core.cost import Validation
from irgym.measure.checking.agreement import Agreement, agreement
from irgym.measure.checking.expected import Expected
from irgym.measure.checking.numbers import Array, finite
from irgym.measure.checking.power import blind_spots, unmoved

SCALES = (1.0, 1e-3, 1e-6, 1e3)
"""Factors of the inputs, tried in order until all wrong answers are noticed."""


@dataclass(frozen=True)
class Problem:
    """Inputs on which programs are checked.

    Attributes:
        inputs: The arguments.
        expected: The results.
        blind: A wrong answer that would pass, for each result with one, by place.
        idle: Places of the results that no wrong answer changes, such as those independent of the inputs.
    """

    inputs: Sequence[Array]
    expected: Sequence[Expected]
    blind: Mapping[int, str] = field(default_factory=dict[int, str])
    idle: frozenset[int] = frozenset()

    @property
    def unseen(self) -> frozenset[int]:
        """Places of the results that are blind or idle."""
        return self.idle | self.blind.keys()

    def judge(self, results: Sequence[Array]) -> Agreement:
        """Compare results with the expected ones."""
        return agreement(self.expected, results)


def problem(
    inputs: Sequence[Array],
    expected: Sequence[Expected],
    computed: Mapping[str, Sequence[Array]],
    slight: Mapping[str, Sequence[Array]] | None = None,
) -> Problem:
    """Return a problem, with wrong answers tried.

    Args:
        inputs: The arguments.
        expected: The results.
        computed: Wrong answers computed by the program, for example on other inputs, by name.
        slight: Slightly wrong answers, by name; see `blind_spots`.
    """
    return Problem(inputs, expected, blind_spots(expected, computed, slight), unmoved(expected, computed))


def best_problem(draw: Callable[[float], Problem]) -> Problem:
    """Return the first problem on which all wrong answers are noticed and all results depend on the inputs.

    If there is none, return the problem with the fewest exceptions: inputs may vanish in rounding, or a ReLU
    may block all of them.

    Args:
        draw: Returns the problem for inputs scaled by a factor; `SCALES` are tried in order.
    """
    best = draw(SCALES[0])
    for scale in SCALES[1:]:
        if not best.unseen:
            break
        best = min(best, draw(scale), key=lambda candidate: len(candidate.unseen))
    return best


def validation(problems: Sequence[Problem], agreements: Sequence[Agreement], tolerance: str) -> Validation:
    """Return the outcome of checks on several inputs.

    A result counts as checked if wrong answers are noticed on at least one of the inputs.

    Args:
        problems: The problems.
        agreements: Comparisons of the results, in the same order; it may end with the first failure.
        tolerance: Description of the tolerance.
    """
    failed = next((found for found in agreements if not found.ok), None)
    unseen = [place for place in problems[0].blind if all(place in other.blind for other in problems)]
    first = min(unseen, default=None)
    blind = ""
    if first is not None:
        others = f" (and {len(unseen) - 1} more)" if len(unseen) > 1 else ""
        count = len(problems[0].expected)
        result = f"result {first} of {count}{others}" if count > 1 else "the result"
        blind = f"{problems[0].blind[first]} would pass for {result}"
    return Validation(
        ok=failed is None,
        error=max((found.error for found in agreements), default=0.0),
        tolerance=tolerance,
        inputs=len(problems),
        detail="" if failed is None else failed.detail,
        blind=blind,
    )


def untelling(problems: Sequence[Problem]) -> str:
    """Return the reason why inputs reveal nothing about a program; empty if they reveal something.

    They reveal nothing if each result is the same number everywhere and for all inputs, or is not finite.
    """
    for results in zip(*(checked.expected for checked in problems), strict=True):
        seen: set[Any] = set()
        for result in results:
            numbers = result.values[finite(result.values)]
            if numbers.size:
                seen |= {numbers.flat[0].item(), *numbers[numbers != numbers.flat[0]][:1].tolist()}
            if len(seen) > 1:
                return ""
    return "all results are one and the same number, or no finite one, on all inputs"
