"""Translation of LLVM's blocks to Python functions.

A block becomes a function of the list of values so far and of the machine. It returns the number of the next
block, or -1 after `ret`. Values defined in a block are local variables of the Python function.
"""

from typing import Any, cast

from irgym.llvmir.interpreter import numbers
from irgym.llvmir.interpreter.effects import ACTING
from irgym.llvmir.interpreter.instructions import COMPUTING, watch
from irgym.llvmir.interpreter.poison import POISON, Endless, Left, Undefined, Unsupported, Unwound
from irgym.llvmir.interpreter.program import Code, Program, Run
from irgym.llvmir.interpreter.writer import Writer
from irgym.llvmir.ir.function import Block
from irgym.llvmir.ir.instruction import Instruction

NAMES: dict[str, Any] = {
    **{name: function for name, function in vars(numbers).items() if callable(function)},
    "POISON": POISON,
    "Undefined": Undefined,
    "Unsupported": Unsupported,
    "Unwound": Unwound,
    "Left": Left,
    "Endless": Endless,
}
"""Names available to translated blocks."""


def translated(program: Program, code: Code, number: int) -> tuple[Run, int]:
    """Return a translated block, cached, and its number of instructions."""
    found = code.blocks.get(number)
    if found is None:
        block = code.function.blocks[number]
        if code.like is not None and _equal(code, code.like, number):
            found = translated(program, code.like, number)
        else:
            found = _translated(program, code, block), len(block.instructions)
        code.blocks[number] = found
    return found


def _translated(program: Program, code: Code, block: Block) -> Run:
    writer = Writer(program, code, block)
    for place, instruction in enumerate(block.instructions):
        if (writer.number, place) == code.muted:
            continue
        before = len(writer.lines)
        try:
            _write(writer, instruction)
            if instruction.result in code.watched:
                watch(writer, instruction)
            if instruction.result and instruction.result == code.zeroed:
                writer.result(instruction, f"zeroed({writer.value('', instruction.result)})")
        except Unsupported as error:
            del writer.lines[before:]  # a branch may be written in part
            writer.line(f"raise Unsupported({str(error)!r})")
            break
    body = "\n ".join(writer.lines)
    space = {**NAMES, **writer.pool}
    exec(compile(f"def run(e, rt):\n {body}\n", "<block>", "exec"), space)
    return cast(Run, space["run"])


def _write(writer: Writer, instruction: Instruction) -> None:
    write = COMPUTING.get(instruction.opcode) or ACTING.get(instruction.opcode)
    if write is None:
        raise Unsupported(f"the operation {instruction.opcode}")
    try:
        write(writer, instruction)
    except (ValueError, IndexError, KeyError, AssertionError) as error:
        raise Unsupported(f"the instruction {instruction.text}") from error


def _equal(code: Code, other: Code, number: int) -> bool:
    """Say whether a block is the same in two forms of a function, the phis of its successors included."""
    blocks, others = code.function.blocks, other.function.blocks
    if code.muted is not None and code.muted[0] == number:
        return False
    special = {code.zeroed, *(code.watched ^ other.watched)} - {""}
    if any(instruction.result in special for instruction in blocks[number].instructions):
        return False
    if number >= len(others) or len(blocks) != len(others) or code.main != other.main:
        return False
    behind = (number, *code.function.successors[number])
    return blocks[number].instructions == others[number].instructions and all(
        blocks[place].name == others[place].name and _phis(blocks[place]) == _phis(others[place])
        for place in behind
    )


def _phis(block: Block) -> list[Instruction]:
    return [instruction for instruction in block.instructions if instruction.opcode == "phi"]
