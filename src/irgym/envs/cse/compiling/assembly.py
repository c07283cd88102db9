"""Parsing of LLVM's verbose assembly: the instructions of each function, and their IR blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BEGIN = re.compile(r"-- Begin function (\S+)")
_END = "-- End function"
_LABEL = re.compile(r"\.?L\w+:")
_UNLABELLED = "%bb."
_BLOCK = re.compile(r'(?:#|//) %("[^"]*"|[-\w.$]+)\s*$')


@dataclass(frozen=True)
class Line:
    """A machine instruction.

    Attributes:
        block: Name of its IR block; empty if LLVM created the block.
        mnemonic: The instruction.
        operands: Operands as printed.
        remark: LLVM's comment on it, such as `4-byte Spill`.
    """

    block: str
    mnemonic: str
    operands: str
    remark: str


def functions_of(text: str, remark: str) -> Iterator[tuple[str, list[Line]]]:
    """Yield the functions of an assembly text, each with its instructions in order.

    Args:
        text: LLVM's output, comments included.
        remark: Prefix of comments.
    """
    name, block, lines = "", "", list[Line]()
    for line in text.splitlines():
        code, _, said = line.partition(remark)
        said = said.strip()
        if begun := _BEGIN.search(said):
            name, block, lines = begun[1], "", []
        elif said == _END:
            yield name, lines
            name = ""
        elif not name:
            continue
        elif _LABEL.match(code) or said.startswith(_UNLABELLED):
            named = _BLOCK.search(line)
            block = named[1].strip('"') if named else ""
        elif (stripped := code.strip()) and not stripped.startswith(".") and not stripped.endswith(":"):
            mnemonic, _, operands = stripped.partition("\t")
            lines.append(Line(block, mnemonic, operands.strip(), said))
