"""What tells whether sharing a candidate pays: what it saves, how long its value must be kept, and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.candidates import Candidate
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.liveness import CLASSES, Liveness
from irgym.envs.cse.ir.types import Register, bits_of, type_of
from irgym.envs.cse.ir.uses import USES, use_of

LOAD = 3.0
"""What a load costs, in simple operations."""

COSTS: Mapping[str, float] = {
    "load": LOAD,
    **dict.fromkeys(("mul", "fadd", "fsub", "fptrunc", "fpext"), 3.0),
    **dict.fromkeys(("fmul", "sitofp", "uitofp", "fptosi", "fptoui"), 4.0),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), 20.0),
    **dict.fromkeys(("fdiv", "frem", "call"), 15.0),
    **dict.fromkeys(("bitcast", "ptrtoint", "inttoptr", "trunc", "freeze", "addrspacecast"), 0.25),
}
"""What operations cost, in simple ones, which cost 1: about their latencies."""

_MEMORY = ("load", "store")


@dataclass(frozen=True)
class Facts:
    """What is known of a candidate.

    Attributes:
        register: What holds its value.
        cost: What computing it once costs, in simple operations.
        made: How often a call of the function computes it where it stays.
        saved: How often it computes what would be dropped.
        kept: Blocks in which the value would be live from one computation to those it takes the place of.
        pressure: The most values of its class that are live at once in these blocks without it.
        across_calls: Whether it would have to outlive a call.
        depth_made: In how many loops it is computed, at most, where it stays.
        depth_saved: The same where it is dropped.
        users: How many instructions use what would be dropped.
        folded: The share of these uses that need no instruction of their own in any case: addresses of loads
            and stores, and conditions of branches.
        reads: How many values it reads.
        constants: How many of its operands are constants.
        uses: The share of each kind of use of what would be dropped, by how often they run; see `USES`.
        alive: The share of what would be dropped, likewise, where the value that stays is live anyway.
        freed: How many operands need not be kept any more where one computation is dropped.
        usual: The mean of what `pressure` is the greatest of, by how often the blocks run.
        bits: Width of its type.
        within: Candidates that have it as an operand, by their places.
        holds: Candidates that are operands of it.
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
    """A function, seen from its candidates.

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
        """What is known of each candidate."""
        return tuple(self._facts(place, one) for place, one in enumerate(self._candidates))

    @cached_property
    def pressure(self) -> dict[Register, int]:
        """The most values of each class that are live at once."""
        each = self.liveness.pressure.values()
        return {kind: max((one[kind] for one in each), default=0) for kind in CLASSES}

    @cached_property
    def calls(self) -> dict[int, int]:
        """How many calls of real functions each block has."""
        return {
            block: sum(one.calls for one in self._function.blocks[block].instructions)
            for block in self._flow.order
        }

    @cached_property
    def _users(self) -> dict[str, list[tuple[int, Instruction]]]:
        """The instructions that use each value, and their blocks."""
        found: dict[str, list[tuple[int, Instruction]]] = {}
        for block in self._flow.order:
            for instruction in self._function.blocks[block].instructions:
                for name in dict.fromkeys(instruction.operands):
                    found.setdefault(name, []).append((block, instruction))
        return found

    @cached_property
    def _of(self) -> dict[str, int]:
        """The candidate that each value is an occurrence of."""
        return {name: place for place, one in enumerate(self._candidates) for name in one.members}

    def _facts(self, place: int, candidate: Candidate) -> Facts:
        values, flow = self._values, self._flow
        own = values.made[candidate.leaders[0]]
        register = self.liveness.registers[own.result]
        kept = self._kept(candidate)
        dropped = [name for name, _ in candidate.replaced]
        users = [(name, *use) for name in dropped for use in self._users.get(name, ())]
        often = {one: self._often[one] for one in kept}
        saved = sum(self._often[values.places[name].block] for name in dropped)
        around = {
            self._of[one.result]
            for name in candidate.members
            for _, one in self._users.get(name, ())
            if one.result in self._of
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
            max(self.liveness.pressure[one].get(register, 0) for one in kept),
            any(self._call_between(*pair) for pair in candidate.replaced),
            max(flow.depths[values.places[name].block] for name in candidate.leaders),
            max(flow.depths[values.places[name].block] for name in dropped),
            len(users),
            sum(_folds(one) for _, _, one in users) / len(users) if users else 0.0,
            len(own.operands),
            len(own.rest.split(",")) - len(own.operands) if own.opcode != "load" else 0,
            self._shares_of(users),
            self._alive(candidate) / saved if saved else 0.0,
            sum(map(self._freed, dropped)) / len(dropped),
            _mean({one: self.liveness.pressure[one].get(register, 0) for one in kept}, often),
            bits_of(type_of(own)),
            tuple(sorted(around - {place})),
            tuple(sorted(inside - {place})),
        )

    def _shares_of(self, users: Sequence[tuple[str, int, Instruction]]) -> tuple[float, ...]:
        found = dict.fromkeys(USES, 0.0)
        for name, block, user in users:
            found[use_of(user, name)] += self._often[block]
        whole = sum(found.values()) or 1.0
        return tuple(one / whole for one in found.values())

    def _alive(self, candidate: Candidate) -> float:
        """Return how often a call drops a computation where the value that stays is live anyway."""
        return sum(
            self._often[self._values.places[name].block]
            for name, leader in candidate.replaced
            if leader in self.liveness.entering[self._values.places[name].block]
        )

    def _freed(self, name: str) -> int:
        """Return how many operands of a value nothing behind it in its block, or after that, needs."""
        place = self._values.places[name]
        behind = self._function.blocks[place.block].instructions[place.index + 1 :]
        needed = {one for instruction in behind for one in instruction.operands}
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
        """Say whether there is a call on a way from one computation to another."""
        first, second = self._values.places[leader], self._values.places[name]
        after = self._function.blocks[first.block].instructions[first.index + 1 :]
        before = self._function.blocks[second.block].instructions[: second.index]
        if first.block == second.block:
            return any(one.calls for one in before[first.index + 1 :])
        if any(one.calls for one in (*after, *before)):
            return True
        return any(self.calls[one] for one in self._flow.between(first.block, second.block))


def _mean(values: Mapping[int, float], weights: Mapping[int, float]) -> float:
    whole = sum(weights.values())
    return sum(one * weights[key] for key, one in values.items()) / whole if whole else 0.0


def _folds(user: Instruction) -> bool:
    return user.opcode in _MEMORY or user.opcode == "br"
