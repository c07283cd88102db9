"""Whether a check would notice: wrong answers of its own, which it must refuse.

A check that accepts zeros says nothing. So before anything counts as checked, wrong answers are tried: if one
of them would pass, these are no inputs to check with.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irgym.measure.checking.agreement import compare
from irgym.measure.checking.expected import SLACK, Expected
from irgym.measure.checking.numbers import Array, numbers_of, same_bits

SEEN = 0.5
"""Share of the numbers that a wrong answer changes that must show, each by itself."""


def _opposite(expected: Expected) -> Array:
    return 1 - expected.numbers if expected.values.dtype.kind == "b" else -expected.numbers


MADE: Mapping[str, Callable[[Expected], Array]] = {
    "zeros": lambda expected: np.zeros_like(expected.numbers),
    "the opposite": _opposite,
    "its numbers one place on": lambda expected: np.roll(expected.numbers, 1),
}
"""Wrong answers that are made of the right one, by name."""


def blind_spots(
    expected: Sequence[Expected],
    computed: Mapping[str, Sequence[Array]],
    slight: Mapping[str, Sequence[Array]] | None = None,
) -> dict[int, str]:
    """Try wrong answers for each result.

    A wrong answer counts where it differs from the right one at all. It shows where at least `SEEN` of the
    numbers that it changes are off by more than they may be. Of a slight one, as with one input left out,
    most numbers may be nearly right: it counts where one is off by more than rounding takes it, and shows
    where one is off by more than it may be. A result without any number in it shows nothing.

    Args:
        expected: The results.
        computed: Wrong answers that the program itself gives, as on other inputs; by name.
        slight: Those that differ little, likewise.

    Returns:
        By the place of a result the name of the first wrong answer that would pass there.
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
    """Return the places of results that are the same in all wrong answers that the program itself gives."""
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
    """Say whether a wrong answer would be noticed; one that equals the right one is none."""
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
    """Say whether a slightly wrong answer is taken for right, though more than rounding is wrong with it."""
    found = compare(expected, result)
    return found.ok and found.error > 1.0 / SLACK


def _floats(values: Array) -> bool:
    return values.dtype.kind == "f"
