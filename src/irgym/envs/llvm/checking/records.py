"""Records of runs by what others can observe: calls, the memory that others see, the result."""

from collections.abc import Mapping
from dataclasses import dataclass

from irgym.llvmir.interpreter.memory_map import GLOBALS, HEAP, REGION_BITS, SOLE, STACK
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.traces import Event, Trace


@dataclass(frozen=True)
class Happening(Event):
    """An observable event, with the memory that plays a part in it.

    Attributes:
        seen: Numbers of the private regions that the callee can reach.
        scope: Numbers of the regions to which its accesses are confined; None for none.
        handed: Numbers of the regions that it may write.
        escaped: Numbers of the private regions whose addresses others may know afterwards.
        ended: Numbers of the private regions whose life ended since the last event.
        renewed: Numbers of the variables that began another life since the last event, and live.
    """

    seen: frozenset[int] = frozenset()
    scope: frozenset[int] | None = None
    handed: frozenset[int] = frozenset()
    escaped: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    renewed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Record(Trace):
    """The record of a run of the original.

    Attributes:
        happenings: The observable events, in order.
        parameters: Parameters of each function that was called from outside, in order.
        initial: Content of random memory, byte by byte.
        reachable: Private regions that the caller sees at the end.
        zeros: Allocations whose unwritten bytes are 0.
        allocations: Allocations, in order: function, size, and whether it succeeded.
        left: Numbers of the private regions whose life ended since the last event.
    """

    happenings: tuple[Happening, ...]
    parameters: tuple[tuple[Operand, ...], ...]
    initial: Mapping[int, int]
    reachable: frozenset[int]
    zeros: frozenset[int]
    allocations: tuple[tuple[str, int, bool], ...]
    left: frozenset[int]


def is_local(address: Value) -> bool:
    """Say whether an address is that of a variable or of an allocation of the program."""
    return isinstance(address, int) and STACK <= address < SOLE


def is_variable(number: int) -> bool:
    """Say whether a region is that of a variable of a function."""
    return STACK <= number << REGION_BITS < HEAP


def is_outer(address: int) -> bool:
    """Say whether an address is that of an object from outside the module."""
    return address < GLOBALS or address >= SOLE
