"""Classes of equal expressions in a function: the candidates for sharing.

Two expressions are equal if they have the same operation and equal operands; two loads, if their addresses
are equal and nothing writes memory in between. An occurrence is redundant if an equal one dominates it.

Flags and metadata under which a result is poison do not affect equality: `Sharing` weakens the leader and its
operands. Results that may differ for the same operands are equal to nothing else: two `freeze` of a poison
value, and two calls of a function that may contain a `freeze`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from irgym.envs.cse.ir.flow import Flow
from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed, locals_in, renamed

COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor", "fadd", "fmul"))
"""Commutative operations."""


@dataclass(frozen=True)
class Place:
    """The position of an instruction.

    Attributes:
        block: Number of the block.
        index: Index in the block.
    """

    block: int
    index: int


@dataclass(frozen=True)
class Candidate:
    """A class of equal expressions; sharing it replaces the redundant ones by leaders.

    Attributes:
        name: Name of the first result, without sigil.
        opcode: The operation.
        leaders: Results that stay and replace others, in reverse postorder.
        replaced: Redundant results, each with the leader that replaces it.
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
    """The expressions of a function, numbered by value.

    Args:
        function: The function.
        flow: Its control flow.
        effects: Side effects of its instructions.

    Attributes:
        candidates: The classes with a redundant result in another block than its leader; within a block,
            LLVM's instruction selection shares equal expressions in any case.
        places: Position of each result.
        made: The instruction that defines each result.
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
                leader = next(
                    (earlier for earlier in known if self._serves(earlier, instruction.result, loads)), None
                )
                if leader is None:
                    known.append(instruction.result)
                else:
                    replaced.setdefault(key, []).append((instruction.result, leader))
                # A load equals only the load that reaches it; other expressions equal each other anywhere.
                equal = leader if loads else known[0]
                if equal is not None and equal != instruction.result and effects.repeats(instruction):
                    self._numbers[instruction.result] = self._number(equal)
        found = (self._candidate(leaders[key], pairs) for key, pairs in replaced.items())
        self.candidates = tuple(candidate for candidate in found if candidate is not None)

    def operands(self, first: str, second: str) -> list[tuple[str, str]]:
        """Return the pairs of equal operands of two equal expressions, without pairs of the same name.

        Args:
            first: The result of an expression.
            second: The result of an equal one.
        """
        mine, others = (self._operands(self.made[name]) for name in (first, second))
        if [self._number(name) for name in mine] != [self._number(name) for name in others]:
            others = others[::-1]  # the operation is commutative
        return [
            (first_operand, other)
            for first_operand, other in zip(mine, others, strict=True)
            if first_operand != other
        ]

    def _operands(self, instruction: Instruction) -> Sequence[str]:
        loads = instruction.opcode == "load"  # the text after the address holds the alignment
        return locals_in(listed(instruction.rest)[1]) if loads else instruction.operands

    def _number(self, name: str) -> str:
        return self._numbers.get(name, name)

    def _key(self, instruction: Instruction, loads: bool) -> str:
        """Return a key that equal expressions have in common."""
        parts = listed(renamed(instruction.rest, self._number))
        if loads:
            return f"load {parts[0]}, {parts[1]}"
        if instruction.opcode == "call":  # calls keep their flags and attachments, so these must be equal
            parts += [*sorted(instruction.flags), *instruction.promised]
        if instruction.opcode in COMMUTATIVE and len(parts) == 2:
            kind, _, first = parts[0].rpartition(" ")
            parts = [kind, *sorted((first, parts[1]))]
        return f"{instruction.opcode} {', '.join(parts)}"

    def _serves(self, leader: str, name: str, loads: bool) -> bool:
        """Say whether the result `leader` is available, and unchanged, where `name` is computed."""
        first, second = self.places[leader], self.places[name]
        if first.block == second.block:
            return not (loads and any(self._writes[first.block][first.index + 1 : second.index]))
        return self._flow.dominates(first.block, second.block) and not (
            loads and self._written_between(first, second)
        )

    def _written_between(self, first: Place, second: Place) -> bool:
        """Say whether memory may be written on a path from one place to another in a later block."""
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
            tuple(leader for leader in leaders if leader in used),
            tuple(replaced),
        )
