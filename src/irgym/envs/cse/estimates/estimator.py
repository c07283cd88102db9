"""Estimates of what LLVM makes of a function: a model of its instructions and of its registers.

It knows what decides whether sharing pays. Addresses and conditions go into the instructions that use them,
and so may a load that is used once. What lives across calls needs registers that are saved on entry. What
does not fit is on the stack. A frame is set up no earlier than it is needed (shrink wrapping).
"""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from itertools import cycle
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.envs.cse.estimates.operations import COMMUTATIVE, Operation, Operations, members
from irgym.envs.cse.estimates.reading import SIMPLE, Reader, Reading, Steps
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.liveness import Liveness

SAVES, LINKS, ALIGNS = 2.0, 2.25, 1.25
"""What a frame costs for each register that it saves; for linking it; and for an odd number of registers."""

PUTS, FETCHES = 1.0, 0.6
"""What a value on the stack costs where it is made, and where it is used."""

_PUTTING = {"alloca": 0.0, "load": 0.5}
"""What it costs where it is made, if it is an address on the stack, or was loaded anyway."""


LEAST = 1e-6
"""By what a change must better a choice at least."""


@dataclass(frozen=True)
class Machine:
    """What an estimate needs to know of a target.

    Attributes:
        lasting: Registers for integers that outlive calls, less the frame's.
        integers: All registers for integers, less the frame's.
        folds: Whether instructions read memory themselves, and results take the place of an operand.
    """

    lasting: int
    integers: int
    folds: bool


@dataclass(frozen=True)
class Estimate:
    """What a choice is estimated to come to, in the unit of the score.

    Attributes:
        cost: All of it.
        work: What instructions cost.
        copies: What keeping operands costs that are needed afterwards.
        stack: What values on the stack cost.
        frame: What saving and restoring registers costs.
        entered: How often a call sets up the frame.
        lasting: The most values that live across a call at once.
        across: How many values live across calls.
        floats: How many of these are in registers for floating-point numbers, none of which outlives calls.
        crossing: Values that live across calls, as often as these run.
        needed: The most values that live at once.
        crowded: Values beyond the registers, as often as instructions run.
        early: How many values live where the frame is set up.
    """

    cost: float
    work: float
    copies: float
    stack: float
    frame: float
    entered: float
    lasting: int
    across: int
    floats: int
    crossing: float
    needed: int
    crowded: float
    early: int

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """All of these, shape [ESTIMATED]."""
        return np.array(_NUMBERS(self), dtype=np.float64)


_NUMBERS = attrgetter(*(one.name for one in fields(Estimate)))

ESTIMATED = len(fields(Estimate))
"""Numbers of an estimate."""


@dataclass(frozen=True, slots=True)
class _Walked:
    """What walking over a block finds, given what it consists of and what lives behind it.

    Attributes:
        work, copies, crossing, crowded, needed: The block's part of an estimate's.
        calls: Whether there are calls that need a frame.
        lasting: The most values in registers for integers that live across a call.
        across: All of these.
        floats: The others that live across calls.
        crowds: Values that live at once, more than there are registers: how many more, which, and how many
            registers there are.
    """

    work: float
    copies: float
    crossing: float
    crowded: float
    needed: int
    calls: bool
    lasting: int
    across: int
    floats: int
    crowds: AbstractSet[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a choice.

    Attributes:
        chosen: Places of the candidates that are shared.
        reading: What that leaves of the function.
        entering: The values that live where each block begins.
        leaving: Those that live where each ends.
        walked: What walking over each block finds.
        places: Where values are made and used, as far as that was asked for.
    """

    chosen: frozenset[int]
    reading: Reading
    entering: Mapping[int, int]
    leaving: Mapping[int, int]
    walked: Mapping[int, _Walked]
    places: dict[str, "_Places"]


class Estimator:
    """Estimates choices in one function.

    Args:
        analysed: The function.
        liveness: What holds its values.
        machine: The target.
    """

    def __init__(self, analysed: Analysed, liveness: Liveness, machine: Machine) -> None:
        self._machine = machine
        self._flow = analysed.flow
        self._code = Operations(analysed, liveness)
        self._replaced = [one.replaced for one in analysed.candidates]
        self._reader = Reader(self._code, self._replaced, folds=machine.folds)
        self._often = {
            block: analysed.frequencies.get(analysed.function.blocks[block].name, 0.0)
            for block in analysed.flow.order
        }
        self._estimates: dict[frozenset[int], Estimate] = {}
        self._looping = {one for body in analysed.flow.loops.values() for one in body}

    def around(self, chosen: Collection[int]) -> tuple[Estimate, list[Estimate]]:
        """Return the estimate of a choice, and for each candidate, that of the choice but for this one."""
        base = self._known(chosen, self._nothing)
        places = range(len(self._replaced))
        return self._estimated(base.chosen, base), [
            self._estimated(base.chosen ^ {one}, base) for one in places
        ]

    def estimate(self, chosen: Collection[int]) -> Estimate:
        """Return the estimate of a choice, by the places of the candidates that are shared."""
        return self._estimated(frozenset(chosen), self._nothing)

    @cached_property
    def settled(self) -> frozenset[int]:
        """A choice that no change of a single candidate betters by the estimates.

        The way there begins with nothing or with all shared, whichever is better, and takes each change that
        betters as it comes.
        """
        places = range(len(self._replaced))
        starts = [self._nothing, self._known(places, self._nothing)]
        known = min(starts, key=lambda one: self._estimated(one.chosen, one).cost)
        tried = 0
        for place in cycle(places):
            if tried == len(places):
                break
            tried += 1
            now, then = (self._estimated(one, known) for one in (known.chosen, known.chosen ^ {place}))
            if then.cost < now.cost - LEAST:
                known, tried = self._known(known.chosen ^ {place}, known), 1
        return known.chosen

    def _estimated(self, chosen: frozenset[int], before: _Known) -> Estimate:
        """Return the estimate of a choice; see `_known`."""
        if chosen not in self._estimates:
            self._estimates[chosen] = self._summed(self._known(chosen, before))
        return self._estimates[chosen]

    @cached_property
    def _nothing(self) -> _Known:
        """What is known of sharing nothing."""
        reading = self._reader.first()
        entering = dict.fromkeys(reading.blocks, 0)
        leaving = dict.fromkeys(reading.blocks, 0)
        self._live(reading, -1, entering, leaving)
        walked = {block: self._walk(block, leaving[block], one) for block, one in reading.blocks.items()}
        return _Known(frozenset(), reading, entering, leaving, walked, {})

    def _known(self, chosen: Collection[int], before: _Known) -> _Known:
        """Return what is known of a choice; what is as it was in another one is taken from there."""
        chosen = frozenset(chosen)
        if chosen == before.chosen:
            return before
        reading = self._reader.changed(before.reading, chosen)
        differing = _differing(reading, before.reading)
        entering = {block: live & ~differing for block, live in before.entering.items()}
        leaving = {block: live & ~differing for block, live in before.leaving.items()}
        self._live(reading, differing, entering, leaving)
        walked = {
            block: before.walked[block]
            if one is before.reading.blocks[block] and leaving[block] == before.leaving[block]
            else self._walk(block, leaving[block], one)
            for block, one in reading.blocks.items()
        }
        places = dict(before.places)
        for name in reading.touched:
            places.pop(name, None)
        return _Known(chosen, reading, entering, leaving, walked, places)

    def _live(
        self, reading: Reading, unknown: int, entering: dict[int, int], leaving: dict[int, int]
    ) -> None:
        """Find where values live.

        Args:
            reading: What is left of the function.
            unknown: The values of which nothing is known.
            entering: The other values that live where each block begins; these are added.
            leaving: The same where each block ends.
        """
        blocks, by_phis = reading.blocks, reading.by_phis
        successors, predecessors = self._flow.successors, self._flow.predecessors
        waiting = [one for one in self._flow.order if (blocks[one].used | by_phis[one]) & unknown]
        while waiting:
            block = waiting.pop()
            behind = by_phis[block]
            for following in successors[block]:
                behind |= entering[following]
            leaving[block] = behind
            live = blocks[block].used | behind & ~blocks[block].made
            if live != entering[block]:
                entering[block] = live
                waiting += predecessors[block]

    def _walk(self, block: int, live: int, steps: Steps) -> _Walked:
        integers, machine = self._code.integers, self._machine
        work = copies = crossing = crowded = 0.0
        needed = lasting = across = floats = 0
        calls = False
        crowds: set[tuple[int, int, int]] = set()
        for one, used, cost in steps.backwards:
            live &= ~one.bit
            work += cost
            if one.calls:
                calls = True
                kept = live & integers
                number = kept.bit_count()
                crossing += number
                across |= kept
                lasting = max(lasting, number)
                floats |= live & self._code.others
                if number > machine.lasting:
                    crowds.add((number - machine.lasting, kept, machine.lasting))
            if one.pair and machine.folds and not self._dies(one, live):
                copies += SIMPLE
            live |= used
            kept = live & integers
            number = kept.bit_count()
            needed = max(needed, number)
            if number > machine.integers:
                crowded += number - machine.integers
                crowds.add((number - machine.integers, kept, machine.integers))
        often = self._often[block]
        return _Walked(
            work * often,
            copies * often,
            crossing * often,
            crowded * often,
            needed,
            calls,
            lasting,
            across,
            floats,
            crowds,
        )

    def _dies(self, one: Operation, live: int) -> bool:
        """Say whether an operand of arithmetic is not needed any more, so that the result may replace it."""
        bits = self._code.bits
        first, second = (bits.get(name, 0) for name in one.pair)
        return bool(
            (first and not first & live) or (one.opcode in COMMUTATIVE and second and not second & live)
        )

    def _summed(self, known: _Known) -> Estimate:
        code, machine, walked = self._code, self._machine, known.walked.values()
        across = floats = lasting = needed = 0
        work = copies = crossing = crowded = 0.0
        for one in walked:
            work += one.work
            copies += one.copies
            crossing += one.crossing
            crowded += one.crowded
            floats |= one.floats
            needed = max(needed, one.needed)
            across |= one.across
            lasting = max(lasting, one.lasting)
        stack = self._spilled(known)
        stack += sum(self._placed(place, known).price for place in members(floats))
        calling = [block for block, one in known.walked.items() if one.calls]
        entered, early, frame = 0.0, 0, 0.0
        if calling:
            first = self._first(calling, across & ~code.parameters, known)
            entered, early = self._often[first], (known.entering[first] & code.integers).bit_count()
            saved = min(lasting, machine.lasting)
            frame = entered * (SAVES * saved + LINKS + ALIGNS * (saved % 2))
        return Estimate(
            work + copies + stack + frame,
            work,
            copies,
            stack,
            frame,
            entered,
            lasting,
            across.bit_count(),
            floats.bit_count(),
            crossing,
            needed,
            crowded,
            early,
        )

    def _spilled(self, known: _Known) -> float:
        """Return what integers on the stack cost: where too many live at once, the cheapest go there."""
        crowds = {crowd for one in known.walked.values() if one.crowds for crowd in one.crowds}
        there_already, cost = 0, 0.0
        for _, live, there in sorted(crowds, reverse=True):
            left = live & ~there_already
            excess = left.bit_count() - there
            if excess <= 0:
                continue
            prices = sorted((self._placed(place, known).price, place) for place in members(left))
            for price, place in prices[:excess]:
                there_already |= 1 << place
                cost += price
        return cost

    def _placed(self, place: int, known: _Known) -> "_Places":
        """Return where a value is made and used, by the number of its bit."""
        name = self._code.names[place]
        if name not in known.places:
            puts, one = PUTS, self._code.made.get(name)
            blocks = list(known.reading.blocks_using(name))
            price = FETCHES * sum(self._often[block] for block in blocks)
            if one is not None:
                puts = self._often[one.block] * _PUTTING.get(one.opcode, PUTS)
                blocks.append(one.block)
            known.places[name] = _Places(puts + price, reduce(self._flow.common, set(blocks)))
        return known.places[name]

    def _first(self, calling: Iterable[int], across: int, known: _Known) -> int:
        """Return the block where the frame is set up: the last one that dominates all that needs it."""
        kept = (self._placed(place, known).first for place in members(across))
        first = reduce(self._flow.common, {*calling, *kept})
        while first in self._looping:
            first = self._flow.parents[first]
        return first


class _Places(NamedTuple):
    """Where a value is made and used.

    Attributes:
        price: What it costs to keep it on the stack.
        first: The last block that dominates all that make or use it.
    """

    price: float
    first: int


def _differing(reading: Reading, before: Reading) -> int:
    """Return the values that two readings make or need in different blocks."""
    found = 0
    for block, steps in reading.blocks.items():
        other = before.blocks[block]
        if steps is not other:
            found |= (steps.used ^ other.used) | (steps.made ^ other.made)
        found |= reading.by_phis[block] ^ before.by_phis[block]
    return found
