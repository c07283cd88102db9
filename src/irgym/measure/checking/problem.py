"""What a program is checked on: inputs, what its results must be there, and what would pass unnoticed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irgym.core.cost import Validation
from irgym.measure.checking.agreement import Agreement, agreement
from irgym.measure.checking.expected import Expected
from irgym.measure.checking.numbers import Array, finite
from irgym.measure.checking.power import blind_spots, unmoved

SCALES = (1.0, 1e-3, 1e-6, 1e3)
"""Factors of the inputs that are tried until wrong answers show."""


@dataclass(frozen=True)
class Problem:
    """Inputs on which programs are checked.

    Attributes:
        inputs: The arguments.
        expected: The results.
        blind: By the place of a result a wrong answer that would pass there; empty where all would show.
        idle: Places of the results that no wrong answer changes, as those that do not depend on the inputs.
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
        """Compare results with what they must be."""
        return agreement(self.expected, results)


def problem(
    inputs: Sequence[Array],
    expected: Sequence[Expected],
    computed: Mapping[str, Sequence[Array]],
    slight: Mapping[str, Sequence[Array]] | None = None,
) -> Problem:
    """Return inputs and results, with wrong answers tried.

    Args:
        inputs: The arguments.
        expected: The results.
        computed: Wrong answers that the program itself gives, as on other inputs; by name.
        slight: Those of which most numbers may be nearly right; see `blind_spots`.
    """
    return Problem(inputs, expected, blind_spots(expected, computed, slight), unmoved(expected, computed))


def best_problem(draw: Callable[[float], Problem]) -> Problem:
    """Return the first problem on which all wrong answers show and all results depend on the inputs.

    Where there is none, it is the one with the fewest results of which either does not hold: the inputs may
    round to nothing, or a relu may let none of them through.

    Args:
        draw: Makes the problem of inputs that are scaled by a factor; `SCALES` are tried in order.
    """
    best = draw(SCALES[0])
    for scale in SCALES[1:]:
        if not best.unseen:
            break
        best = min(best, draw(scale), key=lambda candidate: len(candidate.unseen))
    return best


def validation(problems: Sequence[Problem], agreements: Sequence[Agreement], tolerance: str) -> Validation:
    """Return the outcome of checks on several inputs.

    A result counts as checked where wrong answers show on at least one of the inputs.

    Args:
        problems: What was checked on.
        agreements: How the results compared, in the same order; it may end with the first that failed.
        tolerance: What was allowed, in words.
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
    """Say in words why inputs tell nothing of a program; empty where they tell something.

    They do not where each result is the same number everywhere and on all of them, or no finite one.
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
