"""Estimates of what LLVM makes of a function: a model of its instructions and of its registers.

It knows what decides whether sharing pays. Addresses and conditions go into the instructions that use them,
and so may a load that is used once. What lives across calls needs registers that are saved on entry. What
does not fit is on the stack. A frame is set up no earlier than it is needed (shrink wrapping).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from irgym.envs.cse.estimates.operations import ARITHMETIC, COMMUTATIVE, Operation, Operations, members
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.liveness import Liveness

SIMPLE = 0.25
"""What most instructions cost, in the unit of the score."""

COSTS: Mapping[str, float] = {
    "call": 2.0,
    "load": 0.75,
    **dict.fromkeys(("store", "ret", "mul", "sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc"), 1.0),
    **dict.fromkeys(("select", "fadd", "fsub", "fmul", "getelementptr"), 0.5),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), 20.25),
    **dict.fromkeys(("fdiv", "frem"), 4.5),
    **dict.fromkeys(("icmp", "fcmp"), 0.75),
    "phi": 0.0,
}
"""What operations cost that become instructions of their own: rounded from `scoring.instructions`."""

COMPARES, FOLDED = 0.25, 0.5
"""What comparing costs without putting the result into a register, and a load as a part of its user."""

SAVES, LINKS, ALIGNS = 2.0, 2.25, 1.25
"""What a frame costs for each register that it saves; for linking it; and for an odd number of registers."""

PUTS, FETCHES, REFETCHES = 1.0, 0.6, 0.5
"""What a value on the stack costs where it is made and where it is used, and where it was loaded anyway."""

_FREE = frozenset(("bitcast", "ptrtoint", "inttoptr", "trunc", "freeze", "alloca"))
_FOLDING = frozenset(
    (*ARITHMETIC, "icmp", "fcmp", "fadd", "fsub", "fmul", "fdiv", "zext", "sext", "sitofp", "fpext")
)
_STAYING = frozenset(("call", "invoke", "store"))


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
        return np.array([getattr(self, one.name) for one in fields(self)], dtype=np.float64)


ESTIMATED = len(fields(Estimate))
"""Numbers of an estimate."""


@dataclass(frozen=True, slots=True)
class _Walked:
    """What walking over a block finds, given what it consists of and what lives behind it."""

    work: float
    copies: float
    crossing: float
    crowded: float
    needed: int
    at_calls: tuple[int, ...]
    floats: int
    full: tuple[int, ...]


@dataclass(frozen=True)
class _Uses:
    """Who uses which value under a choice.

    Attributes:
        instead: For each value that is dropped, the one that takes its place.
        users: The instructions that use each value that is left.
    """

    instead: Mapping[str, str]
    users: Mapping[str, Sequence[Operation]]

    def blocks(self, name: str) -> Iterator[int]:
        """Yield the blocks in which a value is used; phis use it where it comes from."""
        for user in self.users.get(name, ()):
            if user.opcode == "phi":
                yield from (block for one, block in user.arriving if self.instead.get(one, one) == name)
            else:
                yield user.block


_Steps = tuple[tuple[Operation, int, float], ...]
"""A block from its end: instructions, the values that each uses, and what it costs."""


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
        self._often = {
            block: analysed.frequencies.get(analysed.function.blocks[block].name, 0.0)
            for block in analysed.flow.order
        }
        self._looping = {one for body in analysed.flow.loops.values() for one in body}
        self._walks: dict[tuple[int, int, _Steps], _Walked] = {}

    def around(self, chosen: Iterable[int]) -> tuple[Estimate, list[Estimate]]:
        """Return the estimate of a choice, and for each candidate, that of the choice but for this one."""
        base = frozenset(chosen)
        return self.estimate(base), [self.estimate(base ^ {place}) for place in range(len(self._replaced))]

    def estimate(self, chosen: Iterable[int]) -> Estimate:
        """Return the estimate of a choice, by the places of the candidates that are shared."""
        instead = self._instead(chosen)
        users = self._users(instead)
        inside = self._inside(users)
        steps, by_phis = self._steps(instead, users, inside)
        entering, leaving = self._live(steps, by_phis)
        walked = {block: self._walked(block, leaving[block], one) for block, one in steps.items()}
        return self._summed(_Uses(instead, users), walked, entering)

    def _instead(self, chosen: Iterable[int]) -> dict[str, str]:
        """Return for each value that a choice drops the one that takes its place."""
        found: dict[str, str] = {}
        for place in chosen:
            found.update(self._replaced[place])
        for name in found:
            while found[name] in found:
                found[name] = found[found[name]]
        return found

    def _users(self, instead: Mapping[str, str]) -> dict[str, list[Operation]]:
        """Return the instructions that use each value; those are left out whose results nothing uses."""
        users: dict[str, list[Operation]] = {}
        for operations in self._code.blocks.values():
            for one in operations:
                if one.result not in instead:
                    for name in one.operands:
                        users.setdefault(instead.get(name, name), []).append(one)
        unused = [name for name in self._code.made if name not in users and name not in instead]
        while unused:
            one = self._code.made[unused.pop()]
            if one.opcode in _STAYING:
                continue
            for name in (instead.get(operand, operand) for operand in one.operands):
                users[name] = [user for user in users[name] if user is not one]
                if not users[name]:
                    del users[name]
                    if name in self._code.made:
                        unused.append(name)
        return users

    def _inside(self, users: Mapping[str, Sequence[Operation]]) -> set[str]:
        """Return the values that their users compute: addresses, conditions, loads that are used once."""
        found: set[str] = set()
        for name, using in users.items():
            one = self._code.made.get(name)
            if one is None:
                continue
            match one.opcode:
                case "getelementptr":
                    inside = one.addressable and all(_addresses(user, name) for user in using)
                case "icmp" | "fcmp":
                    inside = all(user.opcode in ("br", "select") for user in using)
                case "load":
                    inside = self._machine.folds and len(using) == 1 and _folds(using[0], one)
                case opcode:
                    inside = opcode in _FREE
            if inside:
                found.add(name)
        return found

    def _steps(
        self, instead: Mapping[str, str], users: Mapping[str, object], inside: Collection[str]
    ) -> tuple[dict[int, _Steps], dict[int, int]]:
        """Return the blocks, and the values that phis of following blocks need of each."""
        code, needed = self._code, dict[str, int]()

        def needs(name: str) -> int:
            name = instead.get(name, name)
            if name not in needed:
                needed[name] = code.bits[name]
                if name in inside:
                    found = 0
                    for operand in code.made[name].operands:
                        found |= needs(operand)
                    needed[name] = found
            return needed[name]

        blocks: dict[int, _Steps] = {}
        by_phis = dict.fromkeys(code.blocks, 0)
        for block, operations in code.blocks.items():
            steps: list[tuple[Operation, int, float]] = []
            for one in reversed(operations):
                if one.result and (
                    one.result in inside
                    or one.result in instead
                    or (one.result not in users and one.opcode not in _STAYING)
                ):
                    continue
                if one.opcode == "phi":
                    for name, source in one.arriving:
                        if name in code.bits and source in by_phis:
                            by_phis[source] |= needs(name)
                    steps.append((one, 0, 0.0))
                    continue
                used, cost = 0, COSTS.get(one.opcode, SIMPLE)
                for name in one.operands:
                    used |= needs(name)
                    real = instead.get(name, name)
                    if real in inside:
                        cost += self._inside_cost(code.made[real], instead, inside)
                steps.append((one, used, cost))
            blocks[block] = tuple(steps)
        return blocks, by_phis

    def _inside_cost(self, one: Operation, instead: Mapping[str, str], inside: Collection[str]) -> float:
        if one.opcode == "load":
            return FOLDED
        if one.opcode not in ("icmp", "fcmp"):
            return 0.0
        real = (instead.get(name, name) for name in one.operands)
        return COMPARES + sum(
            FOLDED for name in real if name in inside and self._code.made[name].opcode == "load"
        )

    def _live(
        self, blocks: Mapping[int, _Steps], by_phis: Mapping[int, int]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return the values that live where each block begins, and where it ends."""
        effects: dict[int, tuple[int, int]] = {}
        for block, steps in blocks.items():
            used = made = 0
            for one, uses, _ in steps:
                used = used & ~one.bit | uses
                made |= one.bit
            effects[block] = used, made
        entering, leaving = dict.fromkeys(blocks, 0), dict.fromkeys(blocks, 0)
        order, changed = self._flow.order[::-1], True
        while changed:
            changed = False
            for block in order:
                behind = by_phis[block]
                for following in self._flow.successors[block]:
                    behind |= entering[following]
                used, made = effects[block]
                before = used | behind & ~made
                if before != entering[block] or behind != leaving[block]:
                    entering[block], leaving[block], changed = before, behind, True
        return entering, leaving

    def _walked(self, block: int, live: int, steps: _Steps) -> _Walked:
        key = (block, live, steps)
        if key not in self._walks:
            self._walks[key] = self._walk(block, live, steps)
        return self._walks[key]

    def _walk(self, block: int, live: int, steps: _Steps) -> _Walked:
        integers, machine = self._code.integers, self._machine
        work = copies = crossing = crowded = 0.0
        needed = floats = 0
        at_calls: list[int] = []
        full: list[int] = []
        for one, used, cost in steps:
            live &= ~one.bit
            work += cost
            if one.calls:
                kept = live & integers
                at_calls.append(kept)
                crossing += kept.bit_count()
                floats |= live & self._code.others
            if one.pair and machine.folds and not self._dies(one, live):
                copies += SIMPLE
            live |= used
            now = (live & integers).bit_count()
            needed = max(needed, now)
            if now > machine.integers:
                crowded += now - machine.integers
                full.append(live & integers)
        often = self._often[block]
        return _Walked(
            work * often,
            copies * often,
            crossing * often,
            crowded * often,
            needed,
            tuple(at_calls),
            floats,
            tuple(full),
        )

    def _dies(self, one: Operation, live: int) -> bool:
        """Say whether an operand of arithmetic is not needed any more, so that the result may replace it."""
        bits = self._code.bits
        first, second = (bits.get(name, 0) for name in one.pair)
        return bool(
            (first and not first & live) or (one.opcode in COMMUTATIVE and second and not second & live)
        )

    def _summed(self, uses: _Uses, walked: Mapping[int, _Walked], entering: Mapping[int, int]) -> Estimate:
        code, machine = self._code, self._machine
        across = floats = 0
        for one in walked.values():
            floats |= one.floats
            for kept in one.at_calls:
                across |= kept
        lasting = max((kept.bit_count() for one in walked.values() for kept in one.at_calls), default=0)
        stack = self._spilled(walked.values(), uses)
        stack += sum(self._price(code.names[place], uses) for place in members(floats))
        calling = [block for block, one in walked.items() if one.at_calls]
        entered, early, frame = 0.0, 0, 0.0
        if calling:
            first = self._first(calling, across & ~code.parameters, uses)
            entered, early = self._often[first], (entering[first] & code.integers).bit_count()
            saved = min(lasting, machine.lasting)
            frame = entered * (SAVES * saved + LINKS + ALIGNS * (saved % 2))
        work = sum(one.work for one in walked.values())
        copies = sum(one.copies for one in walked.values())
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
            sum(one.crossing for one in walked.values()),
            max((one.needed for one in walked.values()), default=0),
            sum(one.crowded for one in walked.values()),
            early,
        )

    def _spilled(self, walked: Iterable[_Walked], uses: _Uses) -> float:
        """Return what integers on the stack cost: where too many live at once, the cheapest go there."""
        crowds = {(kept, self._machine.lasting) for one in walked for kept in one.at_calls}
        crowds |= {(live, self._machine.integers) for one in walked for live in one.full}
        over = [(live.bit_count() - there, live, there) for live, there in crowds]
        there_already, cost = 0, 0.0
        for _, live, there in sorted((one for one in over if one[0] > 0), reverse=True):
            left = live & ~there_already
            excess = left.bit_count() - there
            if excess <= 0:
                continue
            prices = sorted((self._price(self._code.names[place], uses), place) for place in members(left))
            for price, place in prices[:excess]:
                there_already |= 1 << place
                cost += price
        return cost

    def _price(self, name: str, uses: _Uses) -> float:
        """Return what it costs to keep a value on the stack."""
        one = self._code.made.get(name)
        puts = (
            PUTS
            if one is None
            else self._often[one.block]
            * (0.0 if one.opcode == "alloca" else REFETCHES if one.opcode == "load" else PUTS)
        )
        return puts + FETCHES * sum(self._often[block] for block in uses.blocks(name))

    def _first(self, calling: Iterable[int], across: int, uses: _Uses) -> int:
        """Return the block where the frame is set up: the last one that dominates all that needs it."""
        needing = set(calling)
        for place in members(across):
            name = self._code.names[place]
            needing.add(self._code.made[name].block)
            needing.update(uses.blocks(name))
        first = reduce(self._flow.common, needing)
        while first in self._looping:
            first = self._flow.parents[first]
        return first


def _addresses(user: Operation, name: str) -> bool:
    """Say whether an instruction uses a value as an address, or computes another address from it."""
    return user.opcode in ("load", "getelementptr") or (user.opcode == "store" and user.stored != name)


def _folds(user: Operation, load: Operation) -> bool:
    """Say whether an instruction can read memory itself instead of a load that it uses."""
    return user.block == load.block and (user.opcode in _FOLDING or user.called == load.result)
