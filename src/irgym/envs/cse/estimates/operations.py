"""A function's instructions in the form that estimates walk over: operands as names, results as bits."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.liveness import Liveness, incoming
from irgym.envs.cse.ir.syntax import listed, locals_in

ARITHMETIC = frozenset(("add", "sub", "and", "or", "xor", "shl", "lshr", "ashr", "mul"))
"""Integer operations, whose result takes the place of an operand on x86."""

COMMUTATIVE = frozenset(("add", "and", "or", "xor", "mul"))
"""Those of which either operand may be taken."""

_SCALED = frozenset(("i8", "i16", "i32", "i64", "ptr", "float", "double"))
"""Types of elements that address modes can scale an index by."""

_ARRAY = re.compile(r"\[\d+ x (.+)\]$")


class Operation(NamedTuple):
    """An instruction.

    Attributes:
        result: Name of its result; empty where it has none.
        bit: The bit that stands for the result in sets of values; 0 where there is none.
        opcode: The operation.
        operands: Names of the values that it uses, each once.
        block: Number of its block.
        calls: Whether it calls a function that returns to this one; LLVM makes instructions of its own ones.
        called: Name of the value that it calls; empty where it calls a function by name.
        stored: Name of the value that it stores; empty for constants, and for other operations.
        pair: Both operands as texts, of arithmetic on integers; else empty.
        addressable: Whether an address mode can do what it does, if it computes an address.
        arriving: Of a phi, pairs of a value and the number of the block that it comes from.
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
    """A function's instructions.

    Args:
        analysed: The function.
        liveness: What holds its values.

    Attributes:
        names: Names of the values, by the number of their bit.
        bits: The bit of each value.
        blocks: The instructions of each block that can be reached.
        made: The instruction that makes each value; parameters have none.
        using: The instructions that have each value as an operand.
        by_phis: For each block, the values that phis take from it.
        arriving: For each value, the blocks that phis take it from.
        integers: The set of values in registers for integers.
        others: The set of values in registers for floating-point numbers and vectors.
        parameters: The set of the function's parameters.
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
        self.made = {one.result: one for block in self.blocks.values() for one in block if one.result}
        self.using: dict[str, list[Operation]] = {}
        self.by_phis: dict[int, list[str]] = {block: [] for block in self.blocks}
        self.arriving: dict[str, list[int]] = {}
        for one in chain.from_iterable(self.blocks.values()):
            for name in one.operands:
                self.using.setdefault(name, []).append(one)
            for name, source in one.arriving:
                if name in self.bits and source in self.by_phis:
                    self.by_phis[source].append(name)
                    self.arriving.setdefault(name, []).append(source)
        self.parameters = self._set(name not in self.made for name in self.names)

    def _block(
        self, instructions: Sequence[Instruction], block: int, numbers: Mapping[str, int]
    ) -> tuple[Operation, ...]:
        following = [*(one.opcode for one in instructions[1:]), ""]
        return tuple(map(self._operation, instructions, following, repeat(block), repeat(numbers)))

    def _set(self, held: Iterable[bool]) -> int:
        return sum(1 << place for place, one in enumerate(held) if one)

    def _operation(
        self, one: Instruction, following: str, block: int, numbers: Mapping[str, int]
    ) -> Operation:
        jumps = one.calls and following == "ret" and one.text.partition("call ")[0].endswith("tail ")
        stored = next(iter(locals_in(listed(one.rest)[0])), "") if one.opcode == "store" else ""
        arriving = incoming(one.rest) if one.opcode == "phi" else ()
        return Operation(
            one.result,
            self.bits.get(one.result, 0),
            "call" if one.calls else one.opcode,
            tuple(name for name in dict.fromkeys(one.operands) if name in self.bits),
            block,
            one.calls and not jumps,
            _called(one) if one.calls else "",
            stored if stored in self.bits else "",
            _pair(one),
            one.opcode == "getelementptr" and _addressable(one.rest),
            tuple((value, numbers[source]) for value, source in arriving if source in numbers),
        )


def members(values: int) -> Iterator[int]:
    """Yield the numbers of the bits of a set."""
    while values:
        least = values & -values
        yield least.bit_length() - 1
        values ^= least


def _pair(one: Instruction) -> tuple[str, ...]:
    if one.opcode not in ARITHMETIC:
        return ()
    first, second = listed(one.rest)[:2]
    return first.rpartition(" ")[2], second


def _called(one: Instruction) -> str:
    head = one.rest.partition("(")[0]
    last = head.rpartition(" ")[2]
    return last if last.startswith("%") else ""


def _addressable(rest: str) -> bool:
    """Say whether an address mode can compute what a `getelementptr` does: one index, of a plain element."""
    kind, _, *indices = listed(rest)
    variable = [place for place, one in enumerate(indices) if "%" in one]
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
