"""A function of LLVM's IR: blocks of instructions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from irgym.llvmir.ir.instruction import TERMINATORS, Instruction
from irgym.llvmir.ir.modules import parts_of
from irgym.llvmir.ir.syntax import NAME, RECORD

_LABEL = re.compile(rf"({NAME}):")
_COMMENT = re.compile(r"(?:(?<=, )|(?<=\())/\* \([a-z ]+\) \*/ ")
"""Comment of LLVM beside an argument, such as the classes of numbers that it stands for."""

_FURTHER = "   "
"""Indentation of the lines that continue an instruction."""


@dataclass(frozen=True)
class Block:
    """A basic block.

    Attributes:
        name: Name, without sigil.
        label: The label as LLVM prints it, without the comment.
        instructions: In order, the terminator last.
        records: Debug records by the index of the instruction that follows them.
    """

    name: str
    label: str
    instructions: tuple[Instruction, ...]
    records: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Function:
    """A function.

    Attributes:
        name: Name, sigil included.
        header: First line of the definition.
        blocks: In the order of the text, the entry first.
    """

    name: str
    header: str
    blocks: tuple[Block, ...]

    @staticmethod
    def read(name: str, header: str, lines: Sequence[str]) -> "Function":
        """Parse the lines between the braces of a definition.

        Raises:
            ValueError: A block has no end.
        """
        blocks: list[Block] = []
        label, body, records = "", list[Instruction](), dict[int, tuple[str, ...]]()
        first = f"{_unnamed(header, name)}:"
        for line in _whole(lines):
            if named := _LABEL.match(line):
                if label or body:
                    blocks.append(_block(label or first, body, records))
                label, body, records = named[0], [], {}
            elif line.lstrip().startswith(RECORD):
                records[len(body)] = (*records.get(len(body), ()), line.strip())
            else:
                body.append(Instruction.read(_COMMENT.sub("", line.strip())))
        return Function(name, header, (*blocks, _block(label or first, body, records)))

    def __iter__(self) -> Iterator[tuple[int, Instruction]]:
        """Yield each instruction with the number of its block."""
        for number, block in enumerate(self.blocks):
            for instruction in block.instructions:
                yield number, instruction

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each block by its name."""
        return {block.name: number for number, block in enumerate(self.blocks)}

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """Successors of each block, without repetition."""
        return tuple(
            tuple(self.numbers[name] for name in block.instructions[-1].targets) for block in self.blocks
        )


def _unnamed(header: str, name: str) -> int:
    """Return the number that LLVM gives to an entry block without a name: one after the parameters."""
    _, parameters = parts_of(header, name)
    return sum(parameter.rpartition(" ")[2][1:].isdigit() for parameter in parameters)


def _block(label: str, body: Sequence[Instruction], records: Mapping[int, tuple[str, ...]]) -> Block:
    if not body or body[-1].opcode not in TERMINATORS:
        raise ValueError(f"the block {label} does not end in a terminator")
    return Block(label.removesuffix(":").strip('"'), label, tuple(body), records)


def _whole(lines: Sequence[str]) -> Iterator[str]:
    """Yield labels and instructions, each joined to one line, without comments."""
    said = ""
    table = False
    for line in lines:
        stripped = line.strip()
        if not stripped or stripped.startswith(";"):
            continue
        if table or (line.startswith(_FURTHER) and not stripped.startswith(RECORD)):
            said = f"{said} {stripped}"
            table = table and stripped != "]" and not stripped.startswith("],")
            continue
        if said:
            yield said
        said = line.partition(" ;")[0] if not line.startswith(" ") else line
        table = stripped.startswith("switch ") and stripped.endswith("[")
    if said:
        yield said
