"""Expressions of a function before and after a choice, compared down to what they are made of.

What is compared are the lines as they were written. Nothing is taken over from how candidates were found.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from irgym.envs.cse.ir.candidates import COMMUTATIVE
from irgym.envs.cse.ir.effects import Effects
from irgym.envs.cse.ir.function import Function
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import listed, locals_in, renamed
from irgym.envs.cse.proving.memory import Memory

Pair = tuple[str, str]
"""Names of two results: the first after a choice, the second before it."""


class Match(IntEnum):
    """How an expression compares with the one that it takes the place of; the greater, the worse."""

    SAME = 0
    WEAKER = 1
    """The same, less flags and metadata under which the other is poison or rounds otherwise."""
    DIFFERENT = 2


class Pairs:
    """Compares expressions of a function after a choice with those before it.

    Args:
        before: The function as written.
        after: The function with something shared. Its results have the names that they had.
        replaced: The results that are dropped, each with the one that takes its place.
        effects: What instructions do.

    Attributes:
        before: The instruction that makes each result before the choice.
        after: The same after it.
        loads: Loads before the choice that were compared so far, each with the load after it that finds the
            same in memory.
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
        """Compare a result with the one that it takes the place of, operands first."""
        waiting = [(kept, dropped)]
        while waiting:
            pair = waiting[-1]
            missing = (
                [] if pair in self._known else [one for one in self._below(pair) if one not in self._known]
            )
            waiting += missing
            if not missing:
                waiting.pop()
                self._known.setdefault(pair, self._judged(pair))
        return self._known[kept, dropped]

    def leaf(self, instruction: Instruction | None) -> bool:
        """Say whether a value is taken as it is: an argument, or what its operands do not decide."""
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
        """Compare two results whose operands were compared."""
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
        """Say whether two instructions that are alike have the same result wherever operands are the same."""
        if first.result == second.result:
            return True
        if self._effects.loads(first):
            # The one that stays may also run later than the other: it runs anew before its user does.
            names = first.result, second.result
            if not self._memory.holds(*names) and not self._memory.holds(*names[::-1]):
                return False
            self.loads[second.result] = first.result
            return True
        return self._effects.repeats(first) or self._replaced.get(second.result) == first.result

    def _worst(self, mine: Sequence[str], others: Sequence[str]) -> Match:
        return max((self._known[pair] for pair in zip(mine, others, strict=True)), default=Match.SAME)


def operands_of(instruction: Instruction) -> Sequence[str]:
    """Return the names of local values that a result is made of; of a load, those in its address."""
    if instruction.opcode == "load":
        return locals_in(listed(instruction.rest)[1])
    return instruction.operands


def _alike(first: Instruction, second: Instruction) -> bool:
    """Say whether an instruction is another one with other operands, and promises no more."""
    return (
        first.opcode == second.opcode
        and first.flags <= second.flags
        and {*first.promised} <= {*second.promised}
        and _shape(first) == _shape(second)
    )


def _shape(instruction: Instruction) -> tuple[str, ...]:
    """Return an instruction without the names of its operands, whose order may make no difference."""
    parts = listed(renamed(instruction.rest, lambda _: "%"))
    if instruction.opcode == "load":
        return (parts[0], parts[1])
    if instruction.opcode in COMMUTATIVE:
        kind, _, first = parts[0].rpartition(" ")
        return (kind, *sorted((first, *parts[1:])))
    return tuple(parts)


def _made_in(function: Function) -> dict[str, Instruction]:
    return {instruction.result: instruction for _, instruction in function if instruction.result}
