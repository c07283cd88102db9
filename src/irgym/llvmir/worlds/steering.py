"""Changes of worlds that may give an operand of an instruction a wanted value.

Drawn values that equal the operand are replaced (input-to-state correspondence: Aschermann et al., REDQUEEN,
NDSS 2019); others are shifted by the difference, which is right for sums.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.memory_map import SOLE, STACK
from irgym.llvmir.interpreter.numbers import Value, bits_of, float_of
from irgym.llvmir.interpreter.traces import Trace
from irgym.llvmir.worlds.numbers import mixed
from irgym.llvmir.worlds.world import STYLES, World

T = TypeVar("T")

Change = Mapping[int, int]
"""Fixed bits by key."""

_KEYS = 32
_LARGEST_SINGLE = 3e38


def replacing(trace: Trace, value: Value, wanted: Sequence[Value]) -> Iterator[Change]:
    """Yield changes of drawn values that equal an operand.

    Args:
        trace: Trace of a run.
        value: Value of the operand in the run.
        wanted: Values that it should have.
    """
    for key, (kind, bits) in _drawn(trace):
        if _stands_for(value, kind, bits):
            for target in filter(_foreign, wanted):
                new = _as_bits(target, kind)
                if new is not None:
                    yield {key: new}


def shifting(trace: Trace, value: Value, wanted: Sequence[Value]) -> Iterator[Change]:
    """Yield changes of drawn values that may be a term of an operand; see `replacing`."""
    for key, (kind, bits) in _drawn(trace) if _foreign(value) else ():
        if kind.name == "ptr" or _stands_for(value, kind, bits):
            continue
        for target in filter(_foreign, wanted):
            if isinstance(target, float) and isinstance(value, float) and kind.floating:
                new = _as_bits(float_of(bits, kind.size) + (target - value), kind)
            elif isinstance(target, int) and isinstance(value, int) and not kind.floating:
                new = _as_bits(bits + target - value, kind)
            else:
                new = None
            if new is not None:
                yield {key: new}


def redrawing(trace: Trace, world: World) -> Iterator[Change]:
    """Yield another value for each drawn value in turn."""
    for place, (key, (kind, _)) in enumerate(_drawn(trace)):
        other = World(mixed(world.seed, place), world.known, STYLES[place % len(STYLES)])
        yield {key: other.bits(key, kind)}


def _foreign(value: Value) -> bool:
    """Say whether a value may come from outside: the address of a variable or an allocation may not."""
    return not isinstance(value, int) or not STACK <= value < SOLE


def _drawn(trace: Trace) -> Sequence[tuple[int, tuple[Kind, int]]]:
    """Return the first and the last drawn values."""
    drawn = list(trace.drawn.items())
    return drawn if len(drawn) <= _KEYS else [*drawn[: _KEYS // 2], *drawn[-_KEYS // 2 :]]


def _as_bits(value: Value, kind: Kind) -> int | None:
    """Return the bits of a value of a kind; None if the kind cannot represent it."""
    if isinstance(value, float):
        if not kind.floating:
            return None
        if kind.size == 4 and _LARGEST_SINGLE < abs(value) < float("inf"):
            return None
        return bits_of(value, kind.size)
    return None if kind.floating or not isinstance(value, int) else value & kind.mask


def _stands_for(value: Value, kind: Kind, bits: int) -> bool:
    """Say whether an operand of a comparison equals a drawn value, possibly extended or truncated."""
    if isinstance(value, float):
        return kind.floating and float_of(bits, kind.size) == value
    if not isinstance(value, int) or kind.floating:
        return False
    extended = bits - (1 << kind.bits) if bits >> (kind.bits - 1) else bits
    return value in (bits, extended & 0xFFFFFFFF, extended & 0xFFFFFFFFFFFFFFFF, bits & 0xFF, bits & 0xFFFF)
