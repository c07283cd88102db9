"""Writer of the Python code of a block."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from irgym.llvmir.interpreter.constants import UNDEFINED
from irgym.llvmir.interpreter.layout import Kind, kind_of
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Unsupported
from irgym.llvmir.interpreter.program import Code, Program
from irgym.llvmir.ir.function import Block
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import NAME, listed
from irgym.llvmir.ir.types import first_type

_PHI = re.compile(rf"\[ (?P<value>.+), %(?P<block>{NAME}) \]$")


class Writer:
    """Writes the Python code of a block.

    Args:
        program: The module.
        code: The function.
        block: The block.

    Attributes:
        lines: The lines written so far.
        pool: Objects by the names under which the lines refer to them.
    """

    def __init__(self, program: Program, code: Code, block: Block) -> None:
        self.program = program
        self.code = code
        self.block = block
        self.number = code.function.numbers[block.name]
        self.lines: list[str] = []
        self.pool: dict[str, Any] = {}
        self._here: set[str] = set()

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(text)

    def result(self, instruction: Instruction, expression: str) -> None:
        """Write the assignment of an expression to an instruction's result."""
        if not instruction.result:
            self.line(expression)
            return
        place = self.code.numbers[instruction.result]
        self.line(f"v{place} = e[{place}] = {expression}")
        self.seen(instruction.result)

    def seen(self, name: str) -> None:
        """Note that a value is in a local variable from now on."""
        self._here.add(name)

    def label(self, name: str) -> str:
        """Return the key of a result in records of runs."""
        return self.code.label(name)

    def pooled(self, value: object) -> str:
        """Return a name for an object, adding it to the pool if needed."""
        for name, pooled in self.pool.items():
            if pooled is value:
                return name
        name = f"k{len(self.pool)}"
        self.pool[name] = value
        return name

    def value(self, kind: str, text: str) -> str:
        """Return the expression of an operand."""
        if text.startswith("%"):
            place = self.code.numbers[text]
            return f"v{place}" if text in self._here else f"e[{place}]"
        found = self.program.constants.value(kind, text)
        if found is POISON:
            return "POISON"
        if isinstance(found, int):
            return str(found)
        if _undefined(found):
            return f"rt.undefined({self.pooled(found)}, {kind!r})"
        return self.pooled(found)

    def operand(self, text: str) -> str:
        """Return the expression of an operand with its type."""
        found = Operand.read(text)
        return self.value(found.kind, found.value)

    def two(self, rest: str) -> tuple[str, str, str]:
        """Return the common type of two operands, and their expressions."""
        first, second = listed(rest)[:2]
        operand = Operand.read(first)
        return operand.kind, self.value(operand.kind, operand.value), self.value(operand.kind, second)

    def each(self, kind: str, expression: Callable[[str, str, Kind], str], first: str, second: str) -> str:
        """Return an expression of two operands, element by element for vectors."""
        scalar = kind_of(kind)
        if scalar is not None:
            return expression(first, second, scalar)
        inner = element_of(kind)
        return f"tuple([{expression('x', 'y', inner)} for x, y in zip({first}, {second})])"

    def each_one(self, kind: str, expression: Callable[[str, Kind], str], value: str) -> str:
        """Return an expression of one operand, element by element for vectors."""
        scalar = kind_of(kind)
        if scalar is not None:
            return expression(value, scalar)
        inner = element_of(kind)
        return f"tuple([{expression('x', inner)} for x in {value}])"

    def goto(self, block: str) -> list[str]:
        """Return the lines that jump to another block."""
        number = self.code.function.numbers[block]
        base = self.code.base
        lines = [f"rt.edges.add(({base + self.number}, {base + number}))"] if self.code.main else []
        names: list[str] = []
        values: list[str] = []
        for instruction in self.code.function.blocks[number].instructions:
            if instruction.opcode != "phi":
                break
            kind = first_type(instruction.rest)
            incoming = listed(instruction.rest[len(kind) :])
            for match in filter(None, map(_PHI.match, incoming)):
                if match["block"].strip('"') == self.block.name:
                    names.append(f"e[{self.code.numbers[instruction.result]}]")
                    values.append(self.value(kind, match["value"]))
                    break
        if names:
            lines.append(f"{', '.join(names)} = {', '.join(values)}")
        return [*lines, f"return {number}"]


def _undefined(value: Value) -> bool:
    return value is UNDEFINED or (isinstance(value, tuple) and any(map(_undefined, value)))  # pyright: ignore[reportUnknownArgumentType]


def element_of(kind: str) -> Kind:
    """Return the type of the elements of a vector.

    Raises:
        Unsupported: It is not a vector of scalars.
    """
    inner = kind_of(kind[1:-1].partition(" x ")[2]) if kind.startswith("<") else None
    if inner is None:
        raise Unsupported(f"values of type {kind}")
    return inner


def with_fast_flags(instruction: Instruction, found: str, operands: Sequence[str]) -> str:
    """Return the expression of a result that is poison if a fast-math flag is violated."""
    flags = " ".join(sorted(instruction.flags & {"nnan", "ninf", "nsz"}))
    if not flags:
        return found
    turn = "rt.turned()" if "nsz" in flags else "False"
    return f"fast({found}, ({', '.join(operands)},), {flags!r}, {turn})"


Write = Callable[[Writer, Instruction], None]
"""Writes the code of an instruction."""
