"""Power of a check: deliberately wrong answers, which it must refuse.

A check that accepts zeros is worthless. Before a program counts as checked, wrong answers are therefore
tried: if one of them would pass, the inputs are unsuitable.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irgym.measure.checking.agreement import compare
from irgym.measure.checking.expected import SLACK, Expected
from irgym.measure.checking.numbers import Array, numbers_of, same_bits

SEEN = 0.5
"""Share of the numbers changed by a wrong answer that must exceed their tolerance."""


def _opposite(expected: Expected) -> Array:
    return 1 - expected.numbers if expected.values.dtype.kind == "b" else -expected.numbers


MADE: Mapping[str, Callable[[Expected], Array]] = {
    "zeros": lambda expected: np.zeros_like(expected.numbers),
    "the opposite": _opposite,
    "its numbers one place on": lambda expected: np.roll(expected.numbers, 1),
}
"""Wrong answers derived from the right one, by name."""


def blind_spots(
    expected: Sequence[Expected],
    computed: Mapping[str, Sequence[Array]],
    slight: Mapping[str, Sequence[Array]] | None = None,
) -> dict[int, str]:
    """Try wrong answers for each result.

    A wrong answer that differs from the right one must be noticed: at least `SEEN` of the numbers that it
    changes must exceed their tolerance. In a slightly wrong answer, such as one without a term, most numbers
    may be nearly right. If one of them is off by more than rounding explains, one must exceed its tolerance.
    A result of NaN only reveals nothing.

    Args:
        expected: The results.
        computed: Wrong answers computed by the program, for example on other inputs, by name.
        slight: Slightly wrong answers, by name.

    Returns:
        For each result with blind spots, by place, the name of the first wrong answer that would pass.
    """
    found: dict[int, str] = {}
    for place, result in enumerate(expected):
        if _floats(result.numbers) and result.numbers.size and np.isnan(result.numbers).all():
            found[place] = "anything that is no number"
            continue
        wrong = {name: make(result) for name, make in MADE.items()}
        for name, results in computed.items():
            wrong[name] = numbers_of(results[place])
        unseen = [name for name, numbers in wrong.items() if not _shows(result, numbers)]
        unseen += [name for name, results in (slight or {}).items() if _passes(result, results[place])]
        if unseen:
            found[place] = unseen[0]
    return found


def unmoved(expected: Sequence[Expected], computed: Mapping[str, Sequence[Array]]) -> frozenset[int]:
    """Return the places of results that are equal in all wrong answers computed by the program."""
    if not computed:
        return frozenset()
    return frozenset(
        place
        for place, result in enumerate(expected)
        if all(
            result.values.shape == results[place].shape and same_bits(result.values, results[place])
            for results in computed.values()
        )
    )


def _shows(expected: Expected, numbers: Array) -> bool:
    """Say whether a wrong answer would be noticed, or equals the right one."""
    wanted = expected.numbers
    if numbers.shape != wanted.shape:
        return True
    with np.errstate(invalid="ignore"):
        changed = (
            ~((numbers == wanted) | (np.isnan(numbers) & np.isnan(wanted)))
            if _floats(wanted)
            else (numbers != wanted)
        )
        count = int(np.count_nonzero(changed))
        if not count:
            return True
        off = np.asarray(np.abs(numbers.astype(np.float64) - wanted.astype(np.float64)))
    seen = changed if expected.allowance is None else changed & ~(off <= expected.allowance)
    if expected.ignored is not None:
        seen = seen & ~expected.ignored
    noticed = int(np.count_nonzero(seen))
    if noticed <= expected.jumps and bool((off[seen] <= expected.jump).all()):
        return False
    return noticed >= SEEN * count


def _passes(expected: Expected, result: Array) -> bool:
    """Say whether a slightly wrong answer passes, though its error is more than rounding explains."""
    found = compare(expected, result)
    return found.ok and found.error > 1.0 / SLACK


def _floats(values: Array) -> bool:
    return values.dtype.kind == "f"
