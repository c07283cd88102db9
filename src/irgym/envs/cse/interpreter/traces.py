"""Records of runs: what others see of them, and what is made up around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from irgym.envs.cse.interpreter.layout import Kind
from irgym.envs.cse.interpreter.numbers import Value, bits_of
from irgym.envs.cse.interpreter.poison import POISON
from irgym.envs.cse.interpreter.watching import Feature

NAN = -2 - (1 << 64)
"""What stands for all NaNs among plain values; it hashes to the same number in every process."""


class Surroundings(Protocol):
    """What is made up around a function."""

    @property
    def alone(self) -> bool:
        """Whether functions that the module defines are made up, too, where they are called."""
        ...

    @property
    def changed(self) -> bool:
        """Whether variables of the module hold anything, instead of what they hold at first."""
        ...

    def bits(self, key: int, kind: Kind) -> int:
        """Return the bits of a made-up value."""
        ...

    def writes(self, key: int, pointer: bool) -> bool:
        """Say whether a call writes a value in memory that it may write."""
        ...

    def throws(self, key: int) -> bool:
        """Say whether a call ends in an exception."""
        ...


class Differs(Exception):
    """A run does something else than the one that it is compared with; the message says what."""


@dataclass(frozen=True)
class Event:
    """Something that others see: a call of a function that is made up, or a volatile or atomic access.

    Attributes:
        what: What it is.
        arguments: What is passed.
        changes: What the memory holds that was written since the last event.
        answer: What the call returns.
        writes: What it writes: address, kind and bits.
        thrown: Whether it ends in an exception.
    """

    what: object
    arguments: object
    changes: Mapping[int, int]
    answer: Value = None
    writes: tuple[tuple[int, Kind, int], ...] = ()
    thrown: bool = False


@dataclass(frozen=True)
class Trace:
    """What a run did.

    Attributes:
        events: What others saw of it, in order.
        result: What it returned.
        changes: What the memory holds that was written since the last event, but for variables.
        ended: How it ended: empty for a return.
        drawn: What was made up, by key: kind and bits.
        seen: Operands of comparisons, the last ones, by result.
        edges: Branches that were taken: numbers of blocks.
        blocks: Blocks that were entered.
        features: Cases of the instructions that are looked at.
        operands: Their operands, the last ones, by result, and the sign bit of integers.
        steps: Instructions that ran, about, with what took as long.
        vague: Whether the run depends on undefined values, which may be others.
    """

    events: tuple[Event, ...]
    result: Value
    changes: Mapping[int, int]
    ended: str
    drawn: Mapping[int, tuple[Kind, int]]
    seen: Mapping[str, tuple[Value, Value]]
    edges: frozenset[tuple[int, int]]
    blocks: frozenset[int]
    features: frozenset[Feature]
    operands: Mapping[str, tuple[tuple[Value, ...], int]]
    steps: int
    vague: bool


def plain(value: Value) -> Value:
    """Return a value as whole numbers, which can be compared and hashed; all NaNs are one."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, float):
        return NAN if value != value else -1 - bits_of(value, 8)
    return value


def same(wanted: Value, found: Value) -> bool:
    """Say whether a value is what is wanted; where that is poison, any value is."""
    if wanted is POISON:
        return True
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        return all(map(same, wanted, found))  # pyright: ignore[reportUnknownArgumentType]
    if found is POISON or isinstance(wanted, tuple) or isinstance(found, tuple):
        return False
    return plain(wanted) == plain(found)
