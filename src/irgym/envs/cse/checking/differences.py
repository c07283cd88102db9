"""Differences between the original form of a function and another form of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import renamed


@dataclass(frozen=True)
class Difference:
    """Difference between two forms of a function.

    Attributes:
        dropped: Results that are no longer computed, in order, each with the number of its block.
        changed: Results that are computed differently, likewise.
        effects: Instructions without a result that changed or are gone: numbers of block and instruction. The
            first one of each block stands for all of them.
        unexplained: The first instruction of each block that was added, dropped, moved or changed although
            sharing does not explain it.
    """

    dropped: tuple[tuple[str, int], ...]
    changed: tuple[tuple[str, int], ...]
    effects: tuple[tuple[int, int], ...]
    unexplained: tuple[str, ...]

    @property
    def blocks(self) -> frozenset[int]:
        """All blocks with a difference."""
        results = (*self.dropped, *self.changed)
        return frozenset((*(block for block, _ in self.effects), *(block for _, block in results)))


def difference_of(original: Function, other: Function, replaced: Mapping[str, str]) -> Difference:
    """Return the difference between the original form of a function and another form.

    Args:
        original: The original form.
        other: The other form; its blocks have the same names.
        replaced: The replacement of each dropped result.
    """
    made = {instruction.result: instruction for _, instruction in other if instruction.result}
    dropped: list[tuple[str, int]] = []
    changed: list[tuple[str, int]] = []
    for block, instruction in original:
        if not instruction.result:
            continue
        found = made.get(instruction.result)
        if found is None:
            dropped.append((instruction.result, block))
        elif not _same(instruction, found, replaced):
            changed.append((instruction.result, block))
    effects = [
        (number, place)
        for number, block in enumerate(original.blocks)
        if (place := _first_effect(block.instructions, other.blocks[number].instructions, replaced))
        is not None
    ]
    return Difference(
        tuple(dropped), tuple(changed), tuple(effects), tuple(_unexplained(original, other, replaced))
    )


def _same(original: Instruction, other: Instruction, replaced: Mapping[str, str]) -> bool:
    """Say whether an instruction is the original one, with replaced operands and no additional flags."""
    return (
        original.opcode == other.opcode
        and other.rest in (original.rest, _renamed(original.rest, replaced))
        and other.flags <= original.flags
    )


def _first_effect(
    originals: Sequence[Instruction], others: Sequence[Instruction], replaced: Mapping[str, str]
) -> int | None:
    """Return the place of the first instruction without a result that differs; None if there is none."""
    left = [(place, instruction) for place, instruction in enumerate(originals) if not instruction.result]
    right = [instruction for instruction in others if not instruction.result]
    if len(left) != len(right):
        right += [originals[-1]] * (len(left) - len(right))
    for (place, instruction), other in zip(left, right, strict=False):
        if not _same(instruction, other, replaced):
            return place
    return None if len(left) == len(right) else len(originals) - 1


def _unexplained(original: Function, other: Function, replaced: Mapping[str, str]) -> Iterator[str]:
    """Yield differences that sharing does not explain.

    Sharing drops results, renames operands to their replacements, and removes flags and attachments.
    """
    if [block.name for block in original.blocks] != [block.name for block in other.blocks]:
        yield "other blocks"
        return
    for block, found in zip(original.blocks, other.blocks, strict=True):
        kept = [instruction for instruction in block.instructions if instruction.result not in replaced]
        for instruction, now in zip_longest(kept, found.instructions):
            if instruction is None or now is None or not _explained(instruction, now, replaced):
                yield instruction.text if instruction is not None else "more instructions"
                break


def _explained(original: Instruction, now: Instruction, replaced: Mapping[str, str]) -> bool:
    if original.opcode == "call":  # markers such as `tail` appear only in the text
        return _renamed(original.text, replaced) == now.text
    return (
        original.result == now.result
        and _same(original, now, replaced)
        and {*now.attached} <= {*original.attached}
    )


def _renamed(text: str, replaced: Mapping[str, str]) -> str:
    return renamed(text, lambda name: replaced.get(name, name)) if replaced else text
