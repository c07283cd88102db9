"""Whether a check would notice: wrong answers of its own, which it must refuse.

A check that accepts zeros says nothing. So before anything counts as checked, wrong answers are tried: if one
of them would pass, these are no inputs to check with.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irgym.measure.checking.expected import Expected
from irgym.measure.checking.numbers import Array, doubles, is_fractional, whole

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


def blind_spots(expected: Sequence[Expected], computed: Mapping[str, Sequence[Array]]) -> dict[int, str]:
    """Try wrong answers for each result.

    A wrong answer counts where it differs from the right one at all. It shows where at least `SEEN` of the
    numbers that it changes are off by more than they may be.

    Args:
        expected: The results.
        computed: Wrong answers that the program itself gives, as on other inputs; by name.

    Returns:
        By the place of a result the name of the first wrong answer that would pass there.
    """
    found: dict[int, str] = {}
    for place, one in enumerate(expected):
        wrong = {name: make(one) for name, make in MADE.items()}
        for name, results in computed.items():
            result = results[place]
            wrong[name] = doubles(result) if is_fractional(result.dtype) else whole(result)
        for name, numbers in wrong.items():
            if not _shows(one, numbers):
                found[place] = name
                break
    return found


def _shows(expected: Expected, numbers: Array) -> bool:
    """Say whether a wrong answer would be noticed; one that equals the right one is none."""
    wanted = expected.numbers
    with np.errstate(invalid="ignore"):
        changed = (
            ~((numbers == wanted) | (np.isnan(numbers) & np.isnan(wanted)))
            if _floats(wanted)
            else (numbers != wanted)
        )
        count = int(np.count_nonzero(changed))
        if not count:
            return True
        off = np.abs(numbers.astype(np.float64) - wanted.astype(np.float64))
    seen = changed if expected.allowance is None else changed & ~(off <= expected.allowance)
    if expected.ignored is not None:
        seen = seen & ~expected.ignored
    noticed = int(np.count_nonzero(seen))
    if noticed <= expected.jumps and bool((off[seen] <= expected.jump).all()):
        return False
    return noticed >= SEEN * count


def _floats(values: Array) -> bool:
    return values.dtype.kind == "f"
