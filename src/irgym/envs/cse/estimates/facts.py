"""Facts that decide whether sharing a candidate pays: the work saved, and where its value must be kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from irgym.envs.cse.estimates.liveness import CLASSES, Liveness
from irgym.envs.cse.estimates.uses import USES, use_of
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.candidates import Candidate
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.types import Register, bits_of, type_of

LOAD = 3.0
"""Cost of a load, in simple operations."""

COSTS: Mapping[str, float] = {
    "load": LOAD,
    **dict.fromkeys(("mul", "fadd", "fsub", "fptrunc", "fpext"), 3.0),
    **dict.fromkeys(("fmul", "sitofp", "uitofp", "fptosi", "fptoui"), 4.0),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), 20.0),
    **dict.fromkeys(("fdiv", "frem", "call"), 15.0),
    **dict.fromkeys(("bitcast", "ptrtoint", "inttoptr", "trunc", "freeze", "addrspacecast"), 0.25),
}
"""Costs of operations in simple operations, which cost 1: roughly their latencies."""

_MEMORY = ("load", "store")


@dataclass(frozen=True)
class Facts:
    """Facts about a candidate. Frequencies are per call of the function.

    Attributes:
        register: Register class of its value.
        cost: Cost of computing it once, in simple operations.
        made: How often the leaders, which stay, are computed.
        saved: How often the redundant computations run.
        kept: Blocks in which the value would be live between a leader and the results it replaces.
        pressure: Greatest number of values of its class that are live in these blocks without it.
        across_calls: Whether the value would be live across a call.
        depth_made: Greatest loop depth of the leaders.
        depth_saved: Greatest loop depth of the redundant computations.
        users: Number of instructions that use redundant results.
        folded: Share of these uses that need no separate instruction in any case: addresses of loads and
            stores, and conditions of branches.
        reads: Number of values it reads.
        constants: Number of its operands that are constants.
        uses: Shares of the kinds of use of redundant results, weighted by frequency; see `USES`.
        alive: Share of the redundant computations, weighted by frequency, where the leader is live anyway.
        freed: Mean number of operands that die when a redundant computation is dropped.
        usual: Mean pressure in the blocks, weighted by frequency; `pressure` is the maximum.
        bits: Width of its type.
        within: Places of the candidates that have it as an operand.
        holds: Places of the candidates that are its operands.
    """

    register: Register
    cost: float
    made: float
    saved: float
    kept: frozenset[int]
    pressure: int
    across_calls: bool
    depth_made: int
    depth_saved: int
    users: int
    folded: float
    reads: int
    constants: int
    uses: tuple[float, ...]
    alive: float
    freed: float
    usual: float
    bits: int
    within: tuple[int, ...]
    holds: tuple[int, ...]


class Surroundings:
    """Facts about the candidates of a function.

    Args:
        analysed: The function.
    """

    def __init__(self, analysed: Analysed) -> None:
        self._function = analysed.function
        self._flow = analysed.flow
        self._values = analysed.values
        self._candidates = analysed.candidates
        self._often = {
            number: analysed.frequencies.get(block.name, 0.0)
            for number, block in enumerate(analysed.function.blocks)
        }
        self.liveness = Liveness(analysed.function, analysed.flow)

    @cached_property
    def facts(self) -> tuple[Facts, ...]:
        """Facts about each candidate."""
        return tuple(self._facts(place, candidate) for place, candidate in enumerate(self._candidates))

    @cached_property
    def pressure(self) -> dict[Register, int]:
        """Greatest number of values of each class that are live at once."""
        each = self.liveness.pressure.values()
        return {kind: max((counts[kind] for counts in each), default=0) for kind in CLASSES}

    @cached_property
    def calls(self) -> dict[int, int]:
        """Number of calls in each block; intrinsics do not count."""
        return {
            block: sum(instruction.calls for instruction in self._function.blocks[block].instructions)
            for block in self._flow.order
        }

    @cached_property
    def _users(self) -> dict[str, list[tuple[int, Instruction]]]:
        """The users of each value, each with its block."""
        found: dict[str, list[tuple[int, Instruction]]] = {}
        for block in self._flow.order:
            for instruction in self._function.blocks[block].instructions:
                for name in dict.fromkeys(instruction.operands):
                    found.setdefault(name, []).append((block, instruction))
        return found

    @cached_property
    def _of(self) -> dict[str, int]:
        """The candidate to which each value belongs."""
        return {name: place for place, candidate in enumerate(self._candidates) for name in candidate.members}

    def _facts(self, place: int, candidate: Candidate) -> Facts:
        values, flow = self._values, self._flow
        own = values.made[candidate.leaders[0]]
        register = self.liveness.registers[own.result]
        kept = self._kept(candidate)
        dropped = [name for name, _ in candidate.replaced]
        users = [(name, *use) for name in dropped for use in self._users.get(name, ())]
        often = {block: self._often[block] for block in kept}
        saved = sum(self._often[values.places[name].block] for name in dropped)
        around = {
            self._of[user.result]
            for name in candidate.members
            for _, user in self._users.get(name, ())
            if user.result in self._of
        }
        inside = {
            self._of[operand]
            for name in candidate.members
            for operand in values.made[name].operands
            if operand in self._of
        }
        return Facts(
            register,
            COSTS.get(own.opcode, 1.0),
            sum(self._often[values.places[name].block] for name in candidate.leaders),
            saved,
            kept,
            max(self.liveness.pressure[block].get(register, 0) for block in kept),
            any(self._call_between(*pair) for pair in candidate.replaced),
            max(flow.depths[values.places[name].block] for name in candidate.leaders),
            max(flow.depths[values.places[name].block] for name in dropped),
            len(users),
            sum(_folds(user) for _, _, user in users) / len(users) if users else 0.0,
            len(own.operands),
            len(own.rest.split(",")) - len(own.operands) if own.opcode != "load" else 0,
            self._shares_of(users),
            self._alive(candidate) / saved if saved else 0.0,
            sum(map(self._freed, dropped)) / len(dropped),
            _mean({block: self.liveness.pressure[block].get(register, 0) for block in kept}, often),
            bits_of(type_of(own)),
            tuple(sorted(around - {place})),
            tuple(sorted(inside - {place})),
        )

    def _shares_of(self, users: Sequence[tuple[str, int, Instruction]]) -> tuple[float, ...]:
        found = dict.fromkeys(USES, 0.0)
        for name, block, user in users:
            found[use_of(user, name)] += self._often[block]
        whole = sum(found.values()) or 1.0
        return tuple(share / whole for share in found.values())

    def _alive(self, candidate: Candidate) -> float:
        """Return how often the redundant computations run at which the leader is live anyway."""
        return sum(
            self._often[self._values.places[name].block]
            for name, leader in candidate.replaced
            if leader in self.liveness.entering[self._values.places[name].block]
        )

    def _freed(self, name: str) -> int:
        """Return how many operands of a value have no later use, in its block or after it."""
        place = self._values.places[name]
        behind = self._function.blocks[place.block].instructions[place.index + 1 :]
        needed = {operand for instruction in behind for operand in instruction.operands}
        operands = set(self._values.made[name].operands) & self.liveness.registers.keys()
        return len(operands - needed - self.liveness.leaving[place.block])

    def _kept(self, candidate: Candidate) -> frozenset[int]:
        blocks: set[int] = set()
        for name, leader in candidate.replaced:
            first, second = self._values.places[leader].block, self._values.places[name].block
            blocks |= {first, second}
            if first != second:
                blocks |= self._flow.between(first, second)
        return frozenset(blocks)

    def _call_between(self, name: str, leader: str) -> bool:
        """Say whether there is a call on a path from one computation to another."""
        first, second = self._values.places[leader], self._values.places[name]
        after = self._function.blocks[first.block].instructions[first.index + 1 :]
        before = self._function.blocks[second.block].instructions[: second.index]
        if first.block == second.block:
            return any(instruction.calls for instruction in before[first.index + 1 :])
        if any(instruction.calls for instruction in (*after, *before)):
            return True
        return any(self.calls[block] for block in self._flow.between(first.block, second.block))


def _mean(values: Mapping[int, float], weights: Mapping[int, float]) -> float:
    whole = sum(weights.values())
    return sum(value * weights[key] for key, value in values.items()) / whole if whole else 0.0


def _folds(user: Instruction) -> bool:
    return user.opcode in _MEMORY or user.opcode == "br"
