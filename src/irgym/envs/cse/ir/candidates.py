"""Classes of equal expressions in a function: what may be shared.

Expressions are equal whose operations are and whose operands are equal in turn; loads, whose addresses are
equal and between which nothing writes memory. An occurrence may be dropped for one that dominates it: that
is executed before, with the same operands.

Flags and metadata under which a result is poison make no difference to equality: `Sharing` weakens all that
a shared expression is made of. Results that may differ although their operands are the same are equal to
nothing: two `freeze` of one poison value, and calls of functions that may freeze one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from irgym.envs.cse.ir.effects import Effects
from irgym.envs.cse.ir.flow import Flow
from irgym.envs.cse.ir.function import Function
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import listed, locals_in, renamed

COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor", "fadd", "fmul"))
"""Operations whose two operands may change places."""


@dataclass(frozen=True)
class Place:
    """Where an instruction is.

    Attributes:
        block: Number of its block.
        index: Its place there.
    """

    block: int
    index: int


@dataclass(frozen=True)
class Candidate:
    """A class of equal expressions, one of which takes the place of others if it is shared.

    Attributes:
        name: The name of the first one's result, without sigil.
        opcode: The operation.
        leaders: Results that stay and are dropped for none, in the order of the flow.
        replaced: Results that are dropped, each with the leader that takes its place.
    """

    name: str
    opcode: str
    leaders: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]

    @property
    def members(self) -> tuple[str, ...]:
        """Results of all occurrences."""
        return (*self.leaders, *(name for name, _ in self.replaced))


class Values:
    """The expressions of a function, and which of them are equal.

    Args:
        function: The function.
        flow: Its flow of control.
        effects: What its instructions do.

    Attributes:
        candidates: The classes of which something can be dropped in another block than its leader's: within a
            block, LLVM's selection of instructions shares what is equal in any case.
        places: Where each result is made.
        made: The instruction that makes each result.
    """

    def __init__(self, function: Function, flow: Flow, effects: Effects) -> None:
        self._flow = flow
        self._writes = [
            [effects.writes(instruction) for instruction in block.instructions] for block in function.blocks
        ]
        self._clobbered: dict[tuple[int, int], bool] = {}
        self.places: dict[str, Place] = {}
        self.made: dict[str, Instruction] = {}
        self._numbers: dict[str, str] = {}
        leaders: dict[str, list[str]] = {}
        replaced: dict[str, list[tuple[str, str]]] = {}
        for block in flow.order:
            for index, instruction in enumerate(function.blocks[block].instructions):
                if not instruction.result:
                    continue
                self.places[instruction.result] = Place(block, index)
                self.made[instruction.result] = instruction
                loads = effects.loads(instruction)
                if not loads and not effects.pure(instruction):
                    continue
                key = self._key(instruction, loads)
                known = leaders.setdefault(key, [])
                leader = next((one for one in known if self._serves(one, instruction.result, loads)), None)
                if leader is None:
                    known.append(instruction.result)
                else:
                    replaced.setdefault(key, []).append((instruction.result, leader))
                # What was loaded is equal only to what was loaded before it; the rest wherever it is.
                equal = leader if loads else known[0]
                if equal is not None and equal != instruction.result and effects.repeats(instruction):
                    self._numbers[instruction.result] = self._number(equal)
        found = (self._candidate(leaders[key], pairs) for key, pairs in replaced.items())
        self.candidates = tuple(one for one in found if one is not None)

    def operands(self, first: str, second: str) -> list[tuple[str, str]]:
        """Return the operands of two equal expressions in pairs that are equal, less those that are the same.

        Args:
            first: The result of an expression.
            second: The result of an equal one.
        """
        mine, others = (self._operands(self.made[name]) for name in (first, second))
        if [self._number(name) for name in mine] != [self._number(name) for name in others]:
            others = others[::-1]  # of an operation whose operands may change places
        return [(one, other) for one, other in zip(mine, others, strict=True) if one != other]

    def _operands(self, instruction: Instruction) -> Sequence[str]:
        loads = instruction.opcode == "load"  # how it is aligned stands beside its address
        return locals_in(listed(instruction.rest)[1]) if loads else instruction.operands

    def _number(self, name: str) -> str:
        return self._numbers.get(name, name)

    def _key(self, instruction: Instruction, loads: bool) -> str:
        """Return a text that is the same for equal expressions."""
        parts = listed(renamed(instruction.rest, self._number))
        if loads:
            return f"load {parts[0]}, {parts[1]}"
        if instruction.opcode == "call":  # what marks it stays as it is written, and must hold for all
            parts += [*sorted(instruction.flags), *instruction.promised]
        if instruction.opcode in COMMUTATIVE and len(parts) == 2:
            kind, _, first = parts[0].rpartition(" ")
            parts = [kind, *sorted((first, parts[1]))]
        return f"{instruction.opcode} {', '.join(parts)}"

    def _serves(self, leader: str, name: str, loads: bool) -> bool:
        """Say whether a result is there, and the same, where another is made."""
        first, second = self.places[leader], self.places[name]
        if first.block == second.block:
            return not (loads and any(self._writes[first.block][first.index + 1 : second.index]))
        return self._flow.dominates(first.block, second.block) and not (
            loads and self._written_between(first, second)
        )

    def _written_between(self, first: Place, second: Place) -> bool:
        """Say whether memory may be written on a way from one place to another in a later block."""
        if any(self._writes[first.block][first.index + 1 :]) or any(
            self._writes[second.block][: second.index]
        ):
            return True
        pair = first.block, second.block
        if pair not in self._clobbered:
            between = self._flow.between(*pair)
            self._clobbered[pair] = any(any(self._writes[block]) for block in between)
        return self._clobbered[pair]

    def _candidate(self, leaders: Sequence[str], replaced: Sequence[tuple[str, str]]) -> Candidate | None:
        crossing = any(self.places[name].block != self.places[leader].block for name, leader in replaced)
        if not crossing:
            return None
        used = {leader for _, leader in replaced}
        first = leaders[0]
        return Candidate(
            first.removeprefix("%").strip('"'),
            self.made[first].opcode,
            tuple(one for one in leaders if one in used),
            tuple(replaced),
        )
