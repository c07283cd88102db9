"""Random worlds: the arguments, memory and call results that a run finds, each drawn by its key."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.making import ARGUMENTS
from irgym.llvmir.interpreter.memory_map import MIDDLE, REGION_BITS
from irgym.llvmir.interpreter.numbers import bits_of, single
from irgym.llvmir.worlds.numbers import Known, boundary, mixed, special

_BELOW = 6
"""Least bound of small arguments: all of memory may be 0, but sizes may not."""

LETTERS = b"abyzABYZ0123456789\0+-*/=.,:;<>()[]{}\"'%&|!?#$@\\^_~ \t\r\nexFX"
"""Bytes that occur in texts."""

_OBJECTS = (1 << 11) - 2
"""Number of objects to which pointers may point."""


@dataclass(frozen=True)
class Style:
    """The distribution of a world's values. Shares are in percent; the remaining integers are small.

    Attributes:
        known: Share of numbers in the code and their neighbours.
        edges: Share of boundaries of types.
        wild: Share of numbers with random bits.
        below: Bound of small numbers.
        null: Share of null pointers.
        again: Share of pointers to the same few objects.
        writes: Share of the values that calls overwrite where they may.
        throws: Share of the calls that throw where they may.
        alone: Whether callees in the module are replaced by random results.
        changed: Whether variables of the module have random values.
        floats: Floating-point numbers to draw from in most other cases; empty for any.
        letters: Share of the bytes that are letters, digits and signs, as in texts.
        texts: Share of the objects that hold a text of the code.
        data: Share of numbers in memory with random bits, besides `wild`.
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
    letters: int = 0
    texts: int = 0
    data: int = 0


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
        seed: Seed of all drawn values.
        known: Numbers in the code of the function.
        style: Distribution of the values.
        fixed: Fixed bits by key.
    """

    seed: int
    known: Known
    style: Style
    fixed: Mapping[int, int] = field(default_factory=dict[int, int])

    @staticmethod
    def numbered(seed: int, number: int, known: Known, styles: Sequence[Style] = STYLES) -> "World":
        """Return the world of a number."""
        return World(mixed(seed, number), known, styles[number % len(styles)])

    def with_fixed(self, fixed: Mapping[int, int]) -> "World":
        """Return the world with some more bits fixed."""
        return replace(self, fixed={**self.fixed, **fixed})

    @property
    def alone(self) -> bool:
        """Whether callees in the module are replaced by random results."""
        return self.style.alone

    @property
    def changed(self) -> bool:
        """Whether variables of the module have random values."""
        return self.style.changed

    def bits(self, key: int, kind: Kind) -> int:
        """Return the bits of the value at a key."""
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
        if key < ARGUMENTS:
            found = self._letter(key) if kind.bits == 8 else None
            if found is not None:
                return found
            if kind.bits == 8 and random // 1000 % 100 < self.style.letters:
                return LETTERS[random // 100_000 % len(LETTERS)]
            if random // 1000 % 100 < self.style.data:
                return mixed(random, kind.bits) & kind.mask
        return self._integer(choice, random, kind.bits, below) & kind.mask

    def _letter(self, address: int) -> int | None:
        """Return the byte of a known text that the object at an address holds; None if it holds none."""
        random = mixed(self.seed ^ 7, address >> REGION_BITS)
        place = (address & ((1 << REGION_BITS) - 1)) - MIDDLE
        if random % 100 >= self.style.texts or not self.known.texts:
            return None
        text = self.known.texts[random // 100 % len(self.known.texts)]
        return text[place] if 0 <= place < len(text) else None

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
        """Say whether a call overwrites a value in memory that it may write."""
        share = self.style.writes // 3 if pointer else self.style.writes
        return mixed(self.seed ^ 1, key) % 100 < share

    def throws(self, key: int) -> bool:
        """Say whether a call throws."""
        return mixed(self.seed ^ 2, key) % 100 < self.style.throws
