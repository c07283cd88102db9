"""Estimates of the code that LLVM generates for a function: a model of its instructions and registers.

The model covers what decides whether sharing pays. Addresses and conditions are folded into the instructions
that use them; so are loads with a single use. Values that are live across calls need callee-saved registers,
which the function saves on entry. Values that fit into no register are spilled to the stack. The frame is set
up as late as possible (shrink wrapping).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import cycle
from typing import NamedTuple

from irgym.envs.cse.estimates.block_costs import BlockCost, block_cost
from irgym.envs.cse.estimates.estimate import Estimate, Machine
from irgym.envs.cse.estimates.liveness import Liveness
from irgym.envs.cse.estimates.operations import Operations, members
from irgym.envs.cse.estimates.reading import Reader, Reading
from irgym.envs.cse.ir.analysis import Analysed

SAVES, LINKS, ALIGNS = 2.0, 2.25, 1.25
"""Cost of a frame: for each saved register, for linking the frame, and for an odd number of registers."""

PUTS, FETCHES = 1.0, 0.6
"""Cost of a value on the stack: where it is computed, and in each block that uses it."""

_PUTTING = {"alloca": 0.0, "load": 0.5}
"""Exceptions from `PUTS`, by operation: addresses of variables, and values that were loaded anyway."""

LEAST = 1e-6
"""Least improvement that counts as one."""


class _Spill(NamedTuple):
    """Cost and reach of a value on the stack.

    Attributes:
        price: Cost of keeping it on the stack.
        first: The last block that dominates all blocks that define or use it.
    """

    price: float
    first: int


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts about a choice.

    Attributes:
        chosen: Places of the shared candidates.
        reading: The instructions that are left of the function.
        entering: Set of the live values at the beginning of each block.
        leaving: Set of the live values at the end of each block.
        costs: Cost of each block.
        spills: Spills by value name, filled as they are asked for.
    """

    chosen: frozenset[int]
    reading: Reading
    entering: Mapping[int, int]
    leaving: Mapping[int, int]
    costs: Mapping[int, BlockCost]
    spills: dict[str, _Spill]


class Estimator:
    """Estimates choices in one function.

    Args:
        analysed: The function.
        liveness: Register classes of its values.
        machine: The target.
    """

    def __init__(self, analysed: Analysed, liveness: Liveness, machine: Machine) -> None:
        self._machine = machine
        self._flow = analysed.flow
        self._code = Operations(analysed, liveness)
        self._replaced = [candidate.replaced for candidate in analysed.candidates]
        self._reader = Reader(self._code, self._replaced, folds=machine.folds)
        self._often = {
            block: analysed.frequencies.get(analysed.function.blocks[block].name, 0.0)
            for block in analysed.flow.order
        }
        self._estimates: dict[frozenset[int], Estimate] = {}
        self._looping = {block for body in analysed.flow.loops.values() for block in body}

    def around(self, chosen: Collection[int]) -> tuple[Estimate, list[Estimate]]:
        """Return the estimate of a choice, and for each candidate that of the choice with it flipped."""
        base = self._known(chosen, self._nothing)
        places = range(len(self._replaced))
        return self._estimated(base.chosen, base), [
            self._estimated(base.chosen ^ {place}, base) for place in places
        ]

    def estimate(self, chosen: Collection[int]) -> Estimate:
        """Return the estimate of a choice, given the places of the shared candidates."""
        return self._estimated(frozenset(chosen), self._nothing)

    @cached_property
    def settled(self) -> frozenset[int]:
        """A local optimum of the estimates: flipping any single candidate improves nothing.

        The descent starts from sharing nothing or all, whichever is better, and takes each improving flip as
        it finds it.
        """
        places = range(len(self._replaced))
        starts = [self._nothing, self._known(places, self._nothing)]
        known = min(starts, key=lambda start: self._estimated(start.chosen, start).cost)
        tried = 0
        for place in cycle(places):
            if tried == len(places):
                break
            tried += 1
            flipped = known.chosen ^ {place}
            now, then = (self._estimated(chosen, known) for chosen in (known.chosen, flipped))
            if then.cost < now.cost - LEAST:
                known, tried = self._known(flipped, known), 1
        return known.chosen

    def _estimated(self, chosen: frozenset[int], before: _Known) -> Estimate:
        """Return the estimate of a choice; see `_known`."""
        if chosen not in self._estimates:
            self._estimates[chosen] = self._summed(self._known(chosen, before))
        return self._estimates[chosen]

    @cached_property
    def _nothing(self) -> _Known:
        """Facts about sharing nothing."""
        reading = self._reader.first()
        entering = dict.fromkeys(reading.blocks, 0)
        leaving = dict.fromkeys(reading.blocks, 0)
        self._live(reading, -1, entering, leaving)
        costs = {
            block: block_cost(steps, leaving[block], self._often[block], self._code, self._machine)
            for block, steps in reading.blocks.items()
        }
        return _Known(frozenset(), reading, entering, leaving, costs, {})

    def _known(self, chosen: Collection[int], before: _Known) -> _Known:
        """Return the facts about a choice; unchanged parts come from those about another choice."""
        chosen = frozenset(chosen)
        if chosen == before.chosen:
            return before
        reading = self._reader.changed(before.reading, chosen)
        differing = _differing(reading, before.reading)
        entering = {block: live & ~differing for block, live in before.entering.items()}
        leaving = {block: live & ~differing for block, live in before.leaving.items()}
        self._live(reading, differing, entering, leaving)
        costs = {
            block: before.costs[block]
            if steps is before.reading.blocks[block] and leaving[block] == before.leaving[block]
            else block_cost(steps, leaving[block], self._often[block], self._code, self._machine)
            for block, steps in reading.blocks.items()
        }
        spills = dict(before.spills)
        for name in reading.touched:
            spills.pop(name, None)
        return _Known(chosen, reading, entering, leaving, costs, spills)

    def _live(
        self, reading: Reading, unknown: int, entering: dict[int, int], leaving: dict[int, int]
    ) -> None:
        """Compute liveness by data flow.

        Args:
            reading: The instructions that are left of the function.
            unknown: Set of the values whose liveness is to be computed.
            entering: Live values at the beginning of each block; the unknown values are added.
            leaving: Live values at the end of each block; likewise.
        """
        blocks, by_phis = reading.blocks, reading.by_phis
        successors, predecessors = self._flow.successors, self._flow.predecessors
        waiting = [place for place in self._flow.order if (blocks[place].used | by_phis[place]) & unknown]
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

    def _summed(self, known: _Known) -> Estimate:
        code, machine = self._code, self._machine
        across = floats = lasting = needed = 0
        work = copies = crossing = crowded = 0.0
        for cost in known.costs.values():
            work += cost.work
            copies += cost.copies
            crossing += cost.crossing
            crowded += cost.crowded
            floats |= cost.floats
            needed = max(needed, cost.needed)
            across |= cost.across
            lasting = max(lasting, cost.lasting)
        stack = self._spilled(known)
        stack += sum(self._spill(place, known).price for place in members(floats))
        calling = [block for block, cost in known.costs.items() if cost.calls]
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
        """Return the cost of spilled integers: where too many are live at once, the cheapest are spilled."""
        crowds = {crowd for cost in known.costs.values() if cost.crowds for crowd in cost.crowds}
        spilled, total = 0, 0.0
        for _, live, registers in sorted(crowds, reverse=True):
            left = live & ~spilled
            excess = left.bit_count() - registers
            if excess <= 0:
                continue
            prices = sorted((self._spill(place, known).price, place) for place in members(left))
            for price, place in prices[:excess]:
                spilled |= 1 << place
                total += price
        return total

    def _spill(self, place: int, known: _Known) -> _Spill:
        """Return the spill of a value, given the number of its bit."""
        name = self._code.names[place]
        if name not in known.spills:
            puts, made = PUTS, self._code.made.get(name)
            blocks = list(known.reading.blocks_using(name))
            price = FETCHES * sum(self._often[block] for block in blocks)
            if made is not None:
                puts = self._often[made.block] * _PUTTING.get(made.opcode, PUTS)
                blocks.append(made.block)
            known.spills[name] = _Spill(puts + price, reduce(self._flow.common, set(blocks)))
        return known.spills[name]

    def _first(self, calling: Iterable[int], across: int, known: _Known) -> int:
        """Return the block that sets up the frame: the last one that dominates all blocks in need of it."""
        kept = (self._spill(place, known).first for place in members(across))
        first = reduce(self._flow.common, {*calling, *kept})
        while first in self._looping:
            first = self._flow.parents[first]
        return first


def _differing(reading: Reading, before: Reading) -> int:
    """Return the set of values that two readings define or use in different blocks."""
    found = 0
    for block, steps in reading.blocks.items():
        other = before.blocks[block]
        if steps is not other:
            found |= (steps.used ^ other.used) | (steps.made ^ other.made)
        found |= reading.by_phis[block] ^ before.by_phis[block]
    return found
