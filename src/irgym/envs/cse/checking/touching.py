"""What a form of a function computes in another way than the function as written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from irgym.envs.cse.ir.function import Function
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import renamed


@dataclass(frozen=True)
class Touched:
    """The difference of two forms of a function.

    Attributes:
        dropped: Results that are computed no more, in order; each with the number of its block.
        changed: Results that are computed in another way, likewise.
        effects: Instructions without a result that are others, or gone: numbers of block and instruction. The
            first one of each block stands for all of them.
        unexplained: The first instruction of each block that is there, gone, moved or written in another way,
            and not for what is shared.
    """

    dropped: tuple[tuple[str, int], ...]
    changed: tuple[tuple[str, int], ...]
    effects: tuple[tuple[int, int], ...]
    unexplained: tuple[str, ...]

    @property
    def everywhere(self) -> frozenset[int]:
        """All blocks with a difference."""
        results = (*self.dropped, *self.changed)
        return frozenset((*(block for block, _ in self.effects), *(block for _, block in results)))


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
    effects = [
        (number, place)
        for number, block in enumerate(written.blocks)
        if (place := _first_other(block.instructions, other.blocks[number].instructions, replaced))
        is not None
    ]
    return Touched(
        tuple(dropped), tuple(changed), tuple(effects), tuple(_unexplained(written, other, replaced))
    )


def _unexplained(written: Function, other: Function, replaced: Mapping[str, str]) -> Iterator[str]:
    """Yield what differs although nothing shared explains it.

    Sharing drops results, names those that stay in their place, and takes away what they promise.
    """
    if [block.name for block in written.blocks] != [block.name for block in other.blocks]:
        yield "other blocks"
        return
    for block, found in zip(written.blocks, other.blocks, strict=True):
        kept = [one for one in block.instructions if one.result not in replaced]
        for one, now in zip_longest(kept, found.instructions):
            if one is None or now is None or not _explained(one, now, replaced):
                yield one.text if one is not None else "more instructions"
                break


def _explained(one: Instruction, now: Instruction, replaced: Mapping[str, str]) -> bool:
    if one.opcode == "call":  # the marks of calls stand in their texts alone
        return _renamed(one.text, replaced) == now.text
    return (
        (one.result, one.opcode, _renamed(one.rest, replaced)) == (now.result, now.opcode, now.rest)
        and now.flags <= one.flags
        and {*now.attached} <= {*one.attached}
    )


def _same(one: Instruction, other: Instruction, replaced: Mapping[str, str]) -> bool:
    """Say whether two instructions compute the same but for flags and attachments, which only promise."""
    return (
        one.opcode == other.opcode
        and (one.rest == other.rest or _renamed(one.rest, replaced) == other.rest)
        and other.flags <= one.flags
    )


def _first_other(
    written: Sequence[Instruction], others: Sequence[Instruction], replaced: Mapping[str, str]
) -> int | None:
    """Return the place of the first instruction without a result that is another; None if none is."""
    left = [(place, one) for place, one in enumerate(written) if not one.result]
    right = [one for one in others if not one.result]
    if len(left) != len(right):
        right += [written[-1]] * (len(left) - len(right))
    for (place, one), other in zip(left, right, strict=False):
        if (one.opcode, _renamed(one.rest, replaced)) != (other.opcode, other.rest):
            return place
    return None if len(left) == len(right) else len(written) - 1


def _renamed(text: str, replaced: Mapping[str, str]) -> str:
    return renamed(text, lambda name: replaced.get(name, name)) if replaced else text
