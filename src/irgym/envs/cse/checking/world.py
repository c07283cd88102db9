"""What a function finds while it runs: arguments, memory and answers, each drawn by its key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from irgym.envs.cse.checking.numbers import Known, boundary, mixed, special
from irgym.envs.cse.interpreter.layout import Kind
from irgym.envs.cse.interpreter.making import ARGUMENTS
from irgym.envs.cse.interpreter.memory_map import MIDDLE, REGION_BITS
from irgym.envs.cse.interpreter.numbers import bits_of, single

_BELOW = 6
"""What small arguments are below, at least: all of memory may be 0, but sizes may not."""

_OBJECTS = (1 << 11) - 2
"""Objects that pointers may point to."""


@dataclass(frozen=True)
class Style:
    """How a world draws: shares in percent; what is left are small numbers.

    Attributes:
        known: Of numbers in the code and their neighbours.
        edges: Of boundaries of types.
        wild: Of numbers of any bits.
        below: What small numbers are below.
        null: Of pointers that are null.
        again: Of pointers to the same few objects.
        writes: Of values that calls write where they may.
        throws: Of calls that end in exceptions, where they may.
        alone: Whether all functions that are called are made up.
        changed: Whether variables of the module hold anything.
        floats: Floating-point numbers that all others are drawn from as well; empty for any.
    """

    known: int = 0
    edges: int = 0
    wild: int = 0
    below: int = 4
    null: int = 0
    again: int = 0
    writes: int = 50
    throws: int = 20
    alone: bool = False
    changed: bool = False
    floats: tuple[float, ...] = ()


STYLES = (
    Style(below=4),
    Style(known=40, below=12, null=20, again=30, alone=True, floats=(0.0, -0.0, 1.0)),
    Style(known=30, edges=20, wild=20, below=40, changed=True, writes=30),
    Style(known=10, below=3, null=40, writes=10),
    Style(edges=40, wild=30, below=8, alone=True, null=10, floats=(math.nan, math.inf, -math.inf, 0.5, -2.0)),
    Style(known=70, edges=10, below=12, again=60, changed=True),
    Style(known=10, edges=10, wild=70, below=256, alone=True),
    Style(known=50, wild=10, below=100, null=30, changed=True, alone=True, throws=60),
    Style(known=10, edges=5, wild=5, below=12, writes=70),
    Style(wild=30, below=2, again=20, null=5, alone=True, changed=True),
    Style(known=15, below=1, again=40, floats=(-0.0,)),
    Style(known=5, edges=5, below=6, alone=True),
)
"""Styles of the worlds, in turn."""


@dataclass(frozen=True)
class World:
    """A world.

    Attributes:
        seed: Seed of all that is drawn.
        known: Numbers in the code of the function.
        style: How it draws.
        fixed: Bits that are fixed, by key.
    """

    seed: int
    known: Known
    style: Style
    fixed: Mapping[int, int] = field(default_factory=dict[int, int])

    @staticmethod
    def numbered(seed: int, number: int, known: Known) -> "World":
        """Return a world by its number."""
        return World(mixed(seed, number), known, STYLES[number % len(STYLES)])

    def with_fixed(self, fixed: Mapping[int, int]) -> "World":
        """Return the world with some more bits fixed."""
        return replace(self, fixed={**self.fixed, **fixed})

    @property
    def alone(self) -> bool:
        """Whether all functions that are called are made up."""
        return self.style.alone

    @property
    def changed(self) -> bool:
        """Whether variables of the module hold anything."""
        return self.style.changed

    def bits(self, key: int, kind: Kind) -> int:
        """Return the bits of a made-up value."""
        found = self.fixed.get(key)
        if found is not None:
            return found & kind.mask
        random = mixed(self.seed, key)
        choice, random = random % 100, random // 100
        if kind.name == "ptr":
            return self._pointer(choice, random, kind)
        if kind.floating:
            return bits_of(self._float(choice, random, kind.size), kind.size)
        below = self.style.below if key < ARGUMENTS else max(self.style.below, _BELOW)
        return self._integer(choice, random, kind.bits, below) & kind.mask

    def _integer(self, choice: int, random: int, bits: int, below: int) -> int:
        style = self.style
        if choice < style.known and self.known.integers:
            return self.known.integers[random % len(self.known.integers)]
        choice -= style.known
        if 0 <= choice < style.edges:
            return boundary(random, bits)
        if 0 <= choice - style.edges < style.wild:
            return mixed(random, bits) if bits <= 64 else mixed(random, bits) << 64 | mixed(random, 1)
        return random % below

    def _float(self, choice: int, random: int, size: int) -> float:
        style = self.style
        if choice < style.known + style.edges:
            found = special(random, size, self.known)
        elif choice < style.known + style.edges + style.wild:
            found = (random % 2000003 - 1000001) / 977.0 * 10.0 ** (random // 2000003 % 9 - 4)
        else:
            found = (random % 4001 - 2000) / 477.0
            if style.floats and random // 4001 % 8:
                found = style.floats[random // (8 * 4001) % len(style.floats)]
        return single(found) if size == 4 else found

    def _pointer(self, choice: int, random: int, kind: Kind) -> int:
        style = self.style
        if choice < style.null and kind.low == kind.high:
            return 0
        few = choice < style.null + style.again
        number = 1 + (random % 3 if few else random % _OBJECTS)
        near = random // _OBJECTS % 8
        offset = 8 * (random // (8 * _OBJECTS) % 8) if near == 0 else (4 if near == 1 and few else 0)
        return (number << REGION_BITS) + MIDDLE + offset

    def writes(self, key: int, pointer: bool) -> bool:
        """Say whether a call writes a value in memory that it may write."""
        share = self.style.writes // 3 if pointer else self.style.writes
        return mixed(self.seed ^ 1, key) % 100 < share

    def throws(self, key: int) -> bool:
        """Say whether a call ends in an exception."""
        return mixed(self.seed ^ 2, key) % 100 < self.style.throws
