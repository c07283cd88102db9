"""What a form of a function computes in another way than the function as written."""

from collections.abc import Mapping
from dataclasses import dataclass

from irgym.envs.cse.ir.function import Function
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import renamed


@dataclass(frozen=True)
class Touched:
    """The difference of two forms of a function.

    Attributes:
        dropped: Results that are computed no more, in order; each with the number of its block.
        changed: Results that are computed in another way, likewise.
        blocks: Blocks in which something without a result is another.
    """

    dropped: tuple[tuple[str, int], ...]
    changed: tuple[tuple[str, int], ...]
    blocks: tuple[int, ...]

    @property
    def everywhere(self) -> frozenset[int]:
        """All blocks with a difference."""
        return frozenset((*self.blocks, *(block for _, block in (*self.dropped, *self.changed))))


def touched(written: Function, other: Function, replaced: Mapping[str, str]) -> Touched:
    """Return how a form of a function differs from the function as written.

    Args:
        written: The function as written.
        other: The other form; its blocks have the same names.
        replaced: Results that are dropped, each with the one that takes its place.
    """
    made = {one.result: one for _, one in other if one.result}
    dropped: list[tuple[str, int]] = []
    changed: list[tuple[str, int]] = []
    for block, one in written:
        if not one.result:
            continue
        found = made.get(one.result)
        if found is None:
            dropped.append((one.result, block))
        elif not _same(one, found, replaced):
            changed.append((one.result, block))
    blocks = [
        number
        for number, block in enumerate(written.blocks)
        if _without_results(block.instructions, replaced)
        != _without_results(other.blocks[number].instructions, {})
    ]
    return Touched(tuple(dropped), tuple(changed), tuple(blocks))


def _same(one: Instruction, other: Instruction, replaced: Mapping[str, str]) -> bool:
    """Say whether two instructions compute the same but for flags and attachments, which only promise."""
    return one.opcode == other.opcode and (
        one.rest == other.rest or _renamed(one.rest, replaced) == other.rest
    ) and other.flags <= one.flags


def _without_results(instructions: tuple[Instruction, ...], replaced: Mapping[str, str]) -> list[str]:
    return [f"{one.opcode} {_renamed(one.rest, replaced)}" for one in instructions if not one.result]


def _renamed(text: str, replaced: Mapping[str, str]) -> str:
    return renamed(text, lambda name: replaced.get(name, name)) if replaced else text
