"""Assembly as LLVM prints it with remarks: the instructions of each function, and from which block."""

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
    """An instruction of a processor.

    Attributes:
        block: The block of IR that it is from; empty where the block is LLVM's own.
        mnemonic: The instruction.
        operands: As they are written.
        remark: What LLVM remarks on it, such as `4-byte Spill`.
    """

    block: str
    mnemonic: str
    operands: str
    remark: str


def functions_of(text: str, remark: str) -> Iterator[tuple[str, list[Line]]]:
    """Yield the functions of an assembly text: name, and instructions in order.

    Args:
        text: What LLVM printed, remarks included.
        remark: What remarks begin with.
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
