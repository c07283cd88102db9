"""Records of runs, and the interface of the worlds in which they take place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.numbers import Value, bits_of
from irgym.llvmir.interpreter.poison import POISON
from irgym.llvmir.interpreter.watching import Feature

NAN = -2 - (1 << 64)
"""Stands for all NaNs among plain values; its hash is the same in every process."""


class Surroundings(Protocol):
    """A random world around a function."""

    @property
    def alone(self) -> bool:
        """Whether callees in the module are replaced by random results."""
        ...

    @property
    def changed(self) -> bool:
        """Whether variables of the module have random rather than initial values."""
        ...

    def bits(self, key: int, kind: Kind) -> int:
        """Return the bits of the value at a key."""
        ...

    def writes(self, key: int, pointer: bool) -> bool:
        """Say whether a call overwrites a value in memory that it may write."""
        ...

    def throws(self, key: int) -> bool:
        """Say whether a call throws."""
        ...


class Differs(Exception):
    """A run's behaviour differs from the reference; the message says how."""


@dataclass(frozen=True)
class Event:
    """An observable event: a call of an external function, or a volatile or atomic access.

    Attributes:
        what: The callee or the operation.
        arguments: The arguments.
        changes: Content of the memory written since the last event.
        answer: Result of the call.
        writes: Writes of the call: address, kind and bits.
        thrown: Whether the call throws.
    """

    what: object
    arguments: object
    changes: Mapping[int, int]
    answer: Value = None
    writes: tuple[tuple[int, Kind, int], ...] = ()
    thrown: bool = False


@dataclass(frozen=True)
class Trace:
    """The record of a run.

    Attributes:
        events: Observable events, in order.
        result: The returned value.
        changes: Content of the memory written since the last event, without local variables.
        ended: How the run ended; empty for a return.
        drawn: Random values by key: kind and bits.
        seen: Last operands of comparisons, by result.
        edges: Branches taken, as pairs of block numbers.
        blocks: Blocks entered.
        features: Cases of the watched instructions.
        operands: Last operands of the watched instructions by result, with the sign bit of integers.
        steps: Approximate number of steps.
        vague: Whether the run depends on undefined values.
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
    """Return a value as integers, which compare and hash exactly; all NaNs are equal."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, float):
        return NAN if value != value else -1 - bits_of(value, 8)
    return value


def same(wanted: Value, found: Value) -> bool:
    """Say whether a value equals the wanted one; poison accepts any value."""
    if wanted is POISON:
        return True
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        return all(map(same, wanted, found))  # pyright: ignore[reportUnknownArgumentType]
    if found is POISON or isinstance(wanted, tuple) or isinstance(found, tuple):
        return False
    return plain(wanted) == plain(found)
