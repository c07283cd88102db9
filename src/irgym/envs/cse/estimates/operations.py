"""Instructions of a function in the form that estimates walk over: operands as names, results as bits."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from irgym.envs.cse.estimates.liveness import Liveness, incoming
from irgym.envs.cse.ir.analysis import Analysed
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed, locals_in

ARITHMETIC = frozenset(("add", "sub", "and", "or", "xor", "shl", "lshr", "ashr", "mul"))
"""Integer operations whose result overwrites an operand on x86."""

COMMUTATIVE = frozenset(("add", "and", "or", "xor", "mul"))
"""Integer operations that may overwrite either operand."""

_SCALED = frozenset(("i8", "i16", "i32", "i64", "ptr", "float", "double"))
"""Element types whose size an addressing mode can scale an index by."""

_ARRAY = re.compile(r"\[\d+ x (.+)\]$")


class Operation(NamedTuple):
    """An instruction.

    Attributes:
        result: Name of the result; empty if there is none.
        bit: Bit of the result in sets of values; 0 if there is no result.
        opcode: The operation.
        operands: Names of the used values, each once.
        block: Number of the block.
        calls: Whether it is a call that returns here; intrinsics and tail calls are none.
        called: Name of the called pointer; empty for direct calls.
        stored: Name of the stored value; empty for constants and for other operations.
        pair: Both operands of integer arithmetic as texts; empty for other operations.
        addressable: Whether it computes an address that an addressing mode can compute.
        arriving: Incoming values of a phi, each with the number of its predecessor block.
    """

    result: str
    bit: int
    opcode: str
    operands: tuple[str, ...]
    block: int
    calls: bool
    called: str
    stored: str
    pair: tuple[str, ...]
    addressable: bool
    arriving: tuple[tuple[str, int], ...]


class Operations:
    """Instructions of a function, and the maps between values, definitions and uses.

    Args:
        analysed: The function.
        liveness: Register classes of its values.

    Attributes:
        names: Names of the values by bit number.
        bits: The bit of each value.
        blocks: The instructions of each reachable block.
        made: The instruction that defines each value; parameters have none.
        using: The instructions that use each value.
        by_phis: The values that phis of the successors take from each block.
        arriving: The predecessor blocks from which phis take each value.
        integers: Set of the values in integer registers.
        others: Set of the values in floating-point and vector registers.
        parameters: Set of the parameters.
    """

    def __init__(self, analysed: Analysed, liveness: Liveness) -> None:
        function = analysed.function
        registers = liveness.registers
        self.names = tuple(registers)
        self.bits = {name: 1 << place for place, name in enumerate(self.names)}
        self.integers = self._set(registers[name] == "integer" for name in self.names)
        self.others = self._set(registers[name] in ("float", "vector") for name in self.names)
        self.blocks = {
            block: self._block(function.blocks[block].instructions, block, function.numbers)
            for block in analysed.flow.order
        }
        self.made = {
            operation.result: operation
            for block in self.blocks.values()
            for operation in block
            if operation.result
        }
        self.using: dict[str, list[Operation]] = {}
        self.by_phis: dict[int, list[str]] = {block: [] for block in self.blocks}
        self.arriving: dict[str, list[int]] = {}
        for operation in chain.from_iterable(self.blocks.values()):
            for name in operation.operands:
                self.using.setdefault(name, []).append(operation)
            for name, source in operation.arriving:
                if name in self.bits and source in self.by_phis:
                    self.by_phis[source].append(name)
                    self.arriving.setdefault(name, []).append(source)
        self.parameters = self._set(name not in self.made for name in self.names)

    def _block(
        self, instructions: Sequence[Instruction], block: int, numbers: Mapping[str, int]
    ) -> tuple[Operation, ...]:
        following = [*(instruction.opcode for instruction in instructions[1:]), ""]
        return tuple(map(self._operation, instructions, following, repeat(block), repeat(numbers)))

    def _set(self, held: Iterable[bool]) -> int:
        return sum(1 << place for place, member in enumerate(held) if member)

    def _operation(
        self, instruction: Instruction, following: str, block: int, numbers: Mapping[str, int]
    ) -> Operation:
        jumps = (
            instruction.calls
            and following == "ret"
            and instruction.text.partition("call ")[0].endswith("tail ")
        )
        stored = (
            next(iter(locals_in(listed(instruction.rest)[0])), "") if instruction.opcode == "store" else ""
        )
        arriving = incoming(instruction.rest) if instruction.opcode == "phi" else ()
        return Operation(
            instruction.result,
            self.bits.get(instruction.result, 0),
            "call" if instruction.calls else instruction.opcode,
            tuple(name for name in dict.fromkeys(instruction.operands) if name in self.bits),
            block,
            instruction.calls and not jumps,
            _called(instruction) if instruction.calls else "",
            stored if stored in self.bits else "",
            _pair(instruction),
            instruction.opcode == "getelementptr" and _addressable(instruction.rest),
            tuple((value, numbers[source]) for value, source in arriving if source in numbers),
        )


def members(values: int) -> Iterator[int]:
    """Yield the bit numbers of a set of values."""
    while values:
        least = values & -values
        yield least.bit_length() - 1
        values ^= least


def _pair(instruction: Instruction) -> tuple[str, ...]:
    if instruction.opcode not in ARITHMETIC:
        return ()
    first, second = listed(instruction.rest)[:2]
    return first.rpartition(" ")[2], second


def _called(instruction: Instruction) -> str:
    head = instruction.rest.partition("(")[0]
    last = head.rpartition(" ")[2]
    return last if last.startswith("%") else ""


def _addressable(rest: str) -> bool:
    """Say whether an addressing mode can compute a `getelementptr`: one variable index, a scalar element."""
    kind, _, *indices = listed(rest)
    variable = [place for place, index in enumerate(indices) if "%" in index]
    if not variable:
        return True
    if len(variable) > 1:
        return False
    for _ in range(variable[0]):
        array = _ARRAY.match(kind)
        if array is None:
            return False
        kind = array[1]
    return kind in _SCALED
