"""Axes of tensors: affine expressions of the loop indices, such as 2*h+r-1."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from irgym.base.errors import ProgramError

FORM = "an axis is a letter, or an expression in brackets such as [2*h+r-1], with its size as in [h+r-1:28]"
"""The form of an axis, for messages."""


class Reach(NamedTuple):
    """The least and the greatest index that the accesses along an axis have."""

    low: int
    high: int


@dataclass(frozen=True)
class Axis:
    """One axis of a tensor: an affine expression of the loop indices.

    Attributes:
        terms: Pairs of dimension and coefficient, which is negative for a reversed axis.
        offset: The constant part.
        size: Number of elements; None for as many as the accesses reach. Elements outside are zeros.
    """

    terms: tuple[tuple[str, int], ...]
    offset: int = 0
    size: int | None = None

    def text(self) -> str:
        """Return the expression, such as `2*h+r-1`, or `h+r-1:28` with a size."""
        words = "".join(
            f"{'-' if factor < 0 else '+'}{dim if abs(factor) == 1 else f'{abs(factor)}*{dim}'}"
            for dim, factor in self.terms
        )
        if self.offset or not words:
            words += f"{self.offset:+d}"
        return words.removeprefix("+") + (f":{self.size}" if self.size is not None else "")

    def spec(self) -> str:
        """Return the axis as it stands in a URI: a letter, or the expression in brackets."""
        text = self.text()
        return text if len(text) == 1 and text.isalpha() else f"[{text}]"

    def reach(self, sizes: Mapping[str, int]) -> Reach:
        """Return the least and the greatest index of the accesses."""
        ends = [factor * (sizes[dim] - 1) for dim, factor in self.terms]
        return Reach(
            self.offset + sum(end for end in ends if end < 0),
            self.offset + sum(end for end in ends if end > 0),
        )

    def extent(self, sizes: Mapping[str, int]) -> int:
        """Return the number of elements of the tensor along the axis."""
        return self.reach(sizes).high + 1 if self.size is None else self.size

    def padding(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the number of zeros before and after the elements that the accesses read."""
        low, high = self.reach(sizes)
        return max(0, -low), max(0, high + 1 - self.extent(sizes))


def parse_axes(uri: str, text: str) -> tuple[Axis, ...]:
    """Parse the axes of a tensor.

    Raises:
        ProgramError: They are malformed.
    """
    return tuple(_axis(uri, word) for word in re.findall(r"\[[^\]]*\]|.", text, re.DOTALL))


def _axis(uri: str, word: str) -> Axis:
    match = re.fullmatch(r"([a-zA-Z])|\[([^:]+)(?::([1-9][0-9]{0,9}))?\]", word, re.DOTALL)
    if match is None:
        raise ProgramError(f"{uri!r} is malformed at {word!r}: {FORM}")
    text, size = match[1] or match[2], match[3]
    terms: dict[str, int] = {}
    offset = 0
    signed = text if text[0] in "+-" else f"+{text}"
    if not re.fullmatch(r"([+-][^+-]+)+", signed):
        raise ProgramError(f"{uri!r} is malformed at {word!r}: {FORM}")
    for sign, factor, dim, constant in _terms(uri, word, signed):
        number = int(f"{sign}{factor or constant or 1}")
        if not dim:
            offset += number
        elif not number or dim in terms:
            raise ProgramError(
                f"{uri!r} is malformed at {word!r}: name each letter of an axis once, not 0 times"
            )
        else:
            terms[dim] = number
    return Axis(tuple(terms.items()), offset, int(size) if size else None)


def _terms(uri: str, word: str, signed: str) -> list[tuple[str, str, str, str]]:
    """Return sign, coefficient, letter and constant of each term."""
    found: list[tuple[str, str, str, str]] = []
    for term in re.findall(r"[+-][^+-]+", signed):
        match = re.fullmatch(r"([+-])(?:(?:([0-9]{1,6})\*)?([a-zA-Z])|([0-9]{1,9}))", term)
        if match is None:
            raise ProgramError(f"{uri!r} is malformed at {word!r}: {FORM}")
        found.append((match[1], match[2] or "", match[3] or "", match[4] or ""))
    return found
