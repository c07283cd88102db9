"""The text of a function under a choice of shared candidates."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from irgym.envs.cse.ir.candidates import Candidate, Values
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import PLACE, locals_in, renamed


class Sharing:
    """Writes a function under any choice.

    A leader may be poison, or be rounded differently, only where the result it replaces may. So the leader
    loses the flags and metadata that the replaced result does not have, and so do its operands, recursively.
    Lines that no choice changes are kept unmodified.

    Args:
        function: The function.
        values: Its expressions.
        candidates: The candidates.
    """

    def __init__(self, function: Function, values: Values, candidates: Sequence[Candidate]) -> None:
        self._values = values
        self._candidates = candidates
        self._operands: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._lines: list[str | None] = []
        self._line_of: dict[str, int] = {}
        self._users: dict[str, list[int]] = {}
        for block in function.blocks:
            self._lines.append(block.label)
            for place, instruction in enumerate(block.instructions):
                for record in block.records.get(place, ()):
                    self._add(f"    {record}", locals_in(record))
                if instruction.result:
                    self._line_of[instruction.result] = len(self._lines)
                self._add(f"  {instruction.text}", instruction.operands)

    def _add(self, line: str, operands: Iterable[str]) -> None:
        for operand in set(operands):
            self._users.setdefault(operand, []).append(len(self._lines))
        self._lines.append(line)

    def lines(self, chosen: Iterable[int]) -> list[str]:
        """Return the lines of the function, given the places of the shared candidates."""
        lines = list(self._lines)
        names: dict[str, str] = {}
        for place in chosen:
            names.update(self._candidates[place].replaced)
        for kept, text in self._weakened(names).items():
            lines[self._line_of[kept]] = f"  {text}"
        for user in {line for name in names for line in self._users.get(name, ())}:
            line = lines[user]
            if line is not None:
                lines[user] = renamed(line, lambda operand: names.get(operand, operand))
        for name in names:
            lines[self._line_of[name]] = None
        return [line for line in lines if line is not None]

    def _weakened(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the weakened texts of results that lose flags or metadata, before operands are renamed.

        Args:
            names: The replacement of each dropped result.
        """
        served: dict[str, list[str]] = {}
        seen: set[tuple[str, str]] = set()
        waiting = [(leader, name) for name, leader in names.items()]
        while waiting:
            first, other = waiting.pop()
            pair = names.get(first, first), other
            if pair[0] == other or pair in seen:
                continue
            seen.add(pair)
            served.setdefault(pair[0], []).append(other)
            waiting += self._operands_of(pair)
        return {kept: _promising(self._values.made, kept, others) for kept, others in served.items()}

    def _operands_of(self, pair: tuple[str, str]) -> list[tuple[str, str]]:
        if pair not in self._operands:
            self._operands[pair] = self._values.operands(*pair)
        return self._operands[pair]


def _promising(made: Mapping[str, Instruction], kept: str, others: Sequence[str]) -> str:
    """Return the text of a result with only the flags and metadata that all results in `others` have."""
    leader = made[kept]
    if leader.opcode == "call":  # equal calls have equal flags and metadata
        return leader.text
    flags = reduce(lambda found, name: found & made[name].flags, others, leader.flags)
    attached = tuple(
        pair
        for pair in leader.attached
        if pair.startswith(PLACE) or all(pair in made[name].attached for name in others)
    )
    unchanged = (flags, attached) == (leader.flags, leader.attached)
    return leader.text if unchanged else leader.written(flags, attached)
