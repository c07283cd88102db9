"""Writes the Python of a block of LLVM's IR."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from irgym.envs.cse.interpreter.constants import UNDEFINED
from irgym.envs.cse.interpreter.layout import Kind, kind_of
from irgym.envs.cse.interpreter.numbers import Value
from irgym.envs.cse.interpreter.operands import Operand
from irgym.envs.cse.interpreter.poison import POISON, Unsupported
from irgym.envs.cse.interpreter.program import Code, Program
from irgym.envs.cse.ir.function import Block
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import NAME, listed
from irgym.envs.cse.ir.types import first_type

_PHI = re.compile(rf"\[ (?P<value>.+), %(?P<block>{NAME}) \]$")


class Writer:
    """Writes the Python of a block.

    Args:
        program: The module.
        code: The function.
        block: The block.

    Attributes:
        lines: What is written.
        pool: Objects that it refers to by name.
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
        """Write that an instruction's result has a value."""
        if not instruction.result:
            self.line(expression)
            return
        place = self.code.numbers[instruction.result]
        self.line(f"v{place} = e[{place}] = {expression}")
        self.seen(instruction.result)

    def seen(self, name: str) -> None:
        """Note that a value is in a local variable from here on."""
        self._here.add(name)

    def pooled(self, value: object) -> str:
        """Return a name for an object."""
        for name, one in self.pool.items():
            if one is value:
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
        """Return the type of two operands, and their expressions."""
        first, second = listed(rest)[:2]
        operand = Operand.read(first)
        return operand.kind, self.value(operand.kind, operand.value), self.value(operand.kind, second)

    def each(self, kind: str, expression: Callable[[str, str, Kind], str], first: str, second: str) -> str:
        """Return an expression of two operands, one for each element where they are vectors."""
        scalar = kind_of(kind)
        if scalar is not None:
            return expression(first, second, scalar)
        inner = element_of(kind)
        return f"tuple([{expression('x', 'y', inner)} for x, y in zip({first}, {second})])"

    def each_one(self, kind: str, expression: Callable[[str, Kind], str], value: str) -> str:
        """Return an expression of one operand, one for each element where it is a vector."""
        scalar = kind_of(kind)
        if scalar is not None:
            return expression(value, scalar)
        inner = element_of(kind)
        return f"tuple([{expression('x', inner)} for x in {value}])"

    def goto(self, block: str) -> list[str]:
        """Return the lines that go on with another block."""
        number = self.code.function.numbers[block]
        lines = [f"rt.edges.add(({self.number}, {number}))"] if self.code.main else []
        names: list[str] = []
        values: list[str] = []
        for one in self.code.function.blocks[number].instructions:
            if one.opcode != "phi":
                break
            kind = first_type(one.rest)
            incoming = listed(one.rest[len(kind) :])
            for match in filter(None, map(_PHI.match, incoming)):
                if match["block"].strip('"') == self.block.name:
                    names.append(f"e[{self.code.numbers[one.result]}]")
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
        Unsupported: It is no vector of numbers.
    """
    inner = kind_of(kind[1:-1].partition(" x ")[2]) if kind.startswith("<") else None
    if inner is None:
        raise Unsupported(f"values of type {kind}")
    return inner


def with_fast_flags(one: Instruction, found: str, operands: Sequence[str]) -> str:
    """Return the expression of a result that is poison where the fast-math flags do not hold."""
    flags = " ".join(sorted(one.flags & {"nnan", "ninf", "nsz"}))
    if not flags:
        return found
    turn = "rt.turned()" if "nsz" in flags else "False"
    return f"fast({found}, ({', '.join(operands)},), {flags!r}, {turn})"


Write = Callable[[Writer, Instruction], None]
"""Writes an instruction."""
