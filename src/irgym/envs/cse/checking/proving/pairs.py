"""Comparison of a function's expressions before and after a choice, operands included.

The comparison reads the text of both forms, and shares no results with the search for candidates.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from irgym.envs.cse.checking.proving.memory import Memory
from irgym.envs.cse.ir.candidates import COMMUTATIVE
from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed, locals_in, renamed

Pair = tuple[str, str]
"""Names of two results: the first after the choice, the second before it."""


class Match(IntEnum):
    """Comparison of an expression with the one it replaces; greater is worse."""

    SAME = 0
    WEAKER = 1
    """The same, without flags or metadata under which the other is poison or rounded differently."""
    DIFFERENT = 2


class Pairs:
    """Compares expressions of a function after a choice with those before it.

    Args:
        before: The original function.
        after: The function under the choice; results keep their names.
        replaced: The replacement of each dropped result.
        effects: Side effects of instructions.

    Attributes:
        before: The instruction that defines each result before the choice.
        after: The instruction that defines each result after the choice.
        loads: Loads before the choice that were compared so far, each with an equal load after it.
    """

    def __init__(
        self, before: Function, after: Function, replaced: Mapping[str, str], effects: Effects
    ) -> None:
        self.before = _made_in(before)
        self.after = _made_in(after)
        self.loads: dict[str, str] = {}
        self._replaced = replaced
        self._effects = effects
        self._memory = Memory(before, effects)
        self._known: dict[Pair, Match] = {}

    def compare(self, kept: str, dropped: str) -> Match:
        """Compare a result with the one it replaces, operands first."""
        waiting = [(kept, dropped)]
        while waiting:
            pair = waiting[-1]
            missing = (
                []
                if pair in self._known
                else [operands for operands in self._below(pair) if operands not in self._known]
            )
            waiting += missing
            if not missing:
                waiting.pop()
                self._known.setdefault(pair, self._judged(pair))
        return self._known[kept, dropped]

    def leaf(self, instruction: Instruction | None) -> bool:
        """Say whether a value is a leaf: a parameter, or a result that its operands do not determine."""
        return instruction is None or not (
            self._effects.loads(instruction) or self._effects.pure(instruction)
        )

    def _below(self, pair: Pair) -> Sequence[Pair]:
        """Return the pairs of operands on which a comparison depends."""
        first, second = self.after.get(pair[0]), self.before.get(pair[1])
        if first is None or second is None or self.leaf(first) or not _alike(first, second):
            return ()
        mine, others = operands_of(first), operands_of(second)
        pairs = list(zip(mine, others, strict=True))
        if first.opcode in COMMUTATIVE and mine != others:
            pairs += zip(mine, others[::-1], strict=True)
        return pairs

    def _judged(self, pair: Pair) -> Match:
        """Compare two results whose operands are compared already."""
        first, second = self.after.get(pair[0]), self.before.get(pair[1])
        if first is None or second is None or self.leaf(first):
            return Match.SAME if pair[0] == pair[1] else Match.DIFFERENT
        if not _alike(first, second) or not self._answers(first, second):
            return Match.DIFFERENT
        same = first.flags == second.flags and {*first.promised} == {*second.promised}
        mine, others = operands_of(first), operands_of(second)
        below = self._worst(mine, others)
        if first.opcode in COMMUTATIVE and mine != others:
            below = min(below, self._worst(mine, others[::-1]))
        return max(below, Match.SAME if same else Match.WEAKER)

    def _answers(self, first: Instruction, second: Instruction) -> bool:
        """Say whether two similar instructions have equal results for equal operands."""
        if first.result == second.result:
            return True
        if self._effects.loads(first):
            # The remaining load may also come second in the text: in a loop, it runs again before its user.
            names = first.result, second.result
            if not self._memory.holds(*names) and not self._memory.holds(*names[::-1]):
                return False
            self.loads[second.result] = first.result
            return True
        return self._effects.repeats(first) or self._replaced.get(second.result) == first.result

    def _worst(self, mine: Sequence[str], others: Sequence[str]) -> Match:
        return max((self._known[pair] for pair in zip(mine, others, strict=True)), default=Match.SAME)


def operands_of(instruction: Instruction) -> Sequence[str]:
    """Return the names of an instruction's operands; of a load, those in its address."""
    if instruction.opcode == "load":
        return locals_in(listed(instruction.rest)[1])
    return instruction.operands


def _alike(first: Instruction, second: Instruction) -> bool:
    """Say whether two instructions differ in operands alone, and the first has no more flags or metadata."""
    return (
        first.opcode == second.opcode
        and first.flags <= second.flags
        and {*first.promised} <= {*second.promised}
        and _shape(first) == _shape(second)
    )


def _shape(instruction: Instruction) -> tuple[str, ...]:
    """Return an instruction's text without operand names, normalised for commutative operations."""
    parts = listed(renamed(instruction.rest, lambda _: "%"))
    if instruction.opcode == "load":
        return (parts[0], parts[1])
    if instruction.opcode in COMMUTATIVE:
        kind, _, first = parts[0].rpartition(" ")
        return (kind, *sorted((first, *parts[1:])))
    return tuple(parts)


def _made_in(function: Function) -> dict[str, Instruction]:
    return {instruction.result: instruction for _, instruction in function if instruction.result}
