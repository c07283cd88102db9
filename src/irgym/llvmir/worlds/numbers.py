"""Random numbers as fuzzers draw them: boundaries, constants of the code and their neighbours."""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = (1 << 64) - 1
_INTEGERS = re.compile(r"(?<![\w.%@#!\"])-?\d+(?![\w.x])")
_FLOATS = re.compile(r"(?<![\w%@])(?:-?\d+\.\d+e[+-]\d+|0x[0-9A-F]{16})(?!\w)")
_LABEL = re.compile(r", (?:align \d+|![\w.]+ !\d+)")

SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    0.1,
    -0.3,
    1e-3,
    3.0000001,
    1e10,
    -1e30,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
)
"""Floating-point numbers at which functions tend to behave specially."""


@dataclass(frozen=True)
class Known:
    """Numbers in the code of a function.

    Attributes:
        integers: Integers and their neighbours.
        floats: Floating-point numbers.
        texts: Texts, each with the zero at its end.
    """

    integers: tuple[int, ...]
    floats: tuple[float, ...]
    texts: tuple[bytes, ...] = ()


def known_in(lines: Iterable[str]) -> Known:
    """Return the numbers in some lines of a function; integers with their neighbours and negations."""
    found: set[int] = set()
    floats: set[float] = set()
    for line in lines:
        text = _LABEL.sub("", line)
        floats |= {_float(number) for number in _FLOATS.findall(text)}
        if "getelementptr" in text or " phi " in text:
            continue
        found |= {int(number) for number in _INTEGERS.findall(_FLOATS.sub("", text))}
    near = {number + step for number in found for step in (-1, 0, 1)}
    return Known(tuple(sorted(near | {-number for number in near})), tuple(sorted(floats, key=repr)))


def _float(text: str) -> float:
    if text.startswith("0x"):
        return struct.unpack("<d", int(text[2:], 16).to_bytes(8, "little"))[0]
    return float(text)


def mixed(first: int, second: int) -> int:
    """Return 64 pseudo-random bits from two numbers (splitmix64)."""
    state = (first + second * 0x9E3779B97F4A7C15) & _WORD
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _WORD
    return state ^ (state >> 31)


def boundary(random: int, bits: int) -> int:
    """Return an integer at a boundary of a type or of a power of two."""
    choice = random & 7
    power = (random >> 3) % max(bits, 1)
    edges = (0, 1, -1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 1 << power, (1 << power) - 1, -(1 << power))
    return edges[choice]


def special(random: int, size: int, known: Known) -> float:
    """Return a floating-point number at which functions tend to behave specially."""
    choices = (*SPECIAL, *known.floats)
    place = random % (len(choices) + 3)
    if place < len(choices):
        return choices[place]
    least = 2.0**-149 if size == 4 else 5e-324
    largest = 3.4028234663852886e38 if size == 4 else 1.7976931348623157e308
    return (least, largest, -least * 7)[place - len(choices)]
