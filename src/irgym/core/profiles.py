"""Profiles: the sizes at which a program with open dimensions is called, and how often at each."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irgym.base.errors import ProgramError

MOST = 8
"""Greatest number of profiles of a program; measuring takes as many times as long."""

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-6, 1e6
"""Limits of weights."""

LARGEST = 10**9 - 1
"""The greatest size."""

_SIZE = r"[^=,][^=]*=[0-9]+"  # after a number, a comma separates; names may have commas, too
_TEXT = re.compile(rf"(?P<sizes>{_SIZE}(?:,{_SIZE})*)(?::(?P<weight>[^,=]*))?")


@dataclass(frozen=True)
class Profile:
    """Sizes at which a program is called.

    Attributes:
        sizes: Names of open dimensions and their sizes, in order of the names.
        weight: How often it is called at them, beside other profiles: calls, or a share of them.
    """

    sizes: tuple[tuple[str, int], ...]
    weight: float = 1.0

    @property
    def words(self) -> str:
        """The sizes as users write them, such as `batch=8,height=320`."""
        return ",".join(f"{name}={size}" for name, size in self.sizes)

    @property
    def text(self) -> str:
        """The sizes and the weight as users write them, such as `batch=8,height=320:0.3`."""
        return f"{self.words}:{self.weight:.12g}"


def shares(profiles: Sequence[Profile]) -> list[float]:
    """Return the share of the calls at each profile; their sum is 1."""
    total = math.fsum(profile.weight for profile in profiles)
    return [profile.weight / total for profile in profiles]


def split(text: str) -> tuple[dict[str, int], float | None]:
    """Return the sizes in a text, and the weight; None where it has none.

    Args:
        text: `NAME=SIZE,NAME=SIZE:WEIGHT`.

    Raises:
        ProgramError: It is written otherwise, names a dimension twice, or a number is out of its range.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ProgramError(
            f"{text!r} is no size of a dimension: write NAME=SIZE, as in batch=1,width=320, and a weight "
            "after a colon, as in batch=1,width=320:0.7"
        )
    sizes: dict[str, int] = {}
    for name, number in re.findall(r"([^=]+)=([0-9]+)(?:,|$)", match["sizes"]):
        if name in sizes:
            raise ProgramError(f"{text!r}: {name} is given twice; give it once")
        if len(number) > len(str(LARGEST)) or not int(number):
            raise ProgramError(f"{text!r}: {name} must be a whole number in 1 to {LARGEST}")
        sizes[name] = int(number)
    return sizes, None if match["weight"] is None else _weight(text, match["weight"])


def _weight(text: str, written: str) -> float:
    try:
        weight = float(written)
    except ValueError:
        weight = math.nan
    if not LEAST_WEIGHT <= weight <= GREATEST_WEIGHT:
        raise ProgramError(
            f"{text!r}: the weight {written!r} must be a number in {LEAST_WEIGHT:f} to "
            f"{GREATEST_WEIGHT:.0f}: how often the model is called at these sizes, such as 0.7"
        )
    return weight


def profiles_of(texts: Sequence[str], common: Mapping[str, int]) -> tuple[Profile, ...]:
    """Return the profiles that some texts name.

    Args:
        texts: At least one text for `split`; either all have weights, or none has.
        common: Sizes that all profiles share.

    Raises:
        ProgramError: A text is malformed, only some have weights, two name the same sizes or other
            dimensions than each other, or they are too many.
    """
    if len(texts) > MOST:
        raise ProgramError(f"{len(texts)} profiles of sizes are too many: name up to {MOST}")
    found = [(text, *split(text)) for text in texts]
    weightless = [text for text, _, weight in found if weight is None]
    if 0 < len(weightless) < len(found):
        raise ProgramError(
            f"the sizes {weightless[0]!r} have no weight, and others have: give each a weight, or none"
        )
    profiles: list[Profile] = []
    names = {name for _, sizes, _ in found for name in (*sizes, *common)}
    for text, own, weight in found:
        if twice := sorted(own.keys() & common.keys()):
            raise ProgramError(f"{text!r}: {twice[0]} is given twice; give it once")
        sizes = {**common, **own}
        if missing := sorted(names - sizes.keys()):
            raise ProgramError(
                f"the sizes {text!r} lack {', '.join(missing)}, which others name: sizes that belong "
                "together are joined by commas, as in batch=1,width=320, and each profile names all of them"
            )
        profile = Profile(tuple(sorted(sizes.items())), 1.0 if weight is None else weight)
        if any(profile.sizes == other.sizes for other in profiles):
            raise ProgramError(
                f"the sizes {profile.words} are named twice: name them once, with the sum of the weights"
            )
        profiles.append(profile)
    return tuple(profiles)
