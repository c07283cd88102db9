"""The text of a function in which some candidates are shared."""

from collections.abc import Iterable, Sequence
from functools import reduce

from irgym.envs.cse.ir.candidates import Candidate, Values
from irgym.envs.cse.ir.function import Function
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import renamed


class Sharing:
    """Writes a function with any of its candidates shared.

    Lines that no choice changes are kept as they are.

    Args:
        function: The function.
        values: Its expressions.
        candidates: What may be shared.
    """

    def __init__(self, function: Function, values: Values, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        self._lines: list[str | None] = []
        self._line_of: dict[str, int] = {}
        self._users: dict[str, list[int]] = {}
        for block in function.blocks:
            self._lines.append(block.label)
            for instruction in block.instructions:
                line = len(self._lines)
                self._lines.append(f"  {instruction.text}")
                if instruction.result:
                    self._line_of[instruction.result] = line
                for operand in set(instruction.operands):
                    self._users.setdefault(operand, []).append(line)
        self._kept = [{leader: _kept(values, one, leader) for leader in one.leaders} for one in candidates]

    def lines(self, chosen: Iterable[int]) -> list[str]:
        """Return the lines of the function with some candidates shared, by their places."""
        lines = list(self._lines)
        names: dict[str, str] = {}
        for place in chosen:
            names.update(self._candidates[place].replaced)
            for leader, text in self._kept[place].items():
                lines[self._line_of[leader]] = f"  {text}"
        for user in {line for name in names for line in self._users.get(name, ())}:
            line = lines[user]
            if line is not None:
                lines[user] = renamed(line, lambda one: names.get(one, one))
        for name in names:
            lines[self._line_of[name]] = None
        return [line for line in lines if line is not None]


def _kept(values: Values, candidate: Candidate, leader: str) -> str:
    """Return the text of a leader that takes the place of others.

    It may promise no more than each of them does: its flags and attachments are those that all have.
    """
    own = values.made[leader]
    others = [values.made[name] for name, kept in candidate.replaced if kept == leader]
    if own.opcode == "call":
        return own.text
    flags = reduce(lambda found, one: found & one.flags, others, own.flags)
    return own.written(flags, _common([own, *others]))


def _common(instructions: Sequence[Instruction]) -> tuple[str, ...]:
    return tuple(
        one for one in instructions[0].attached if all(one in other.attached for other in instructions[1:])
    )
