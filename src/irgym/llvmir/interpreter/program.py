"""A runnable module: functions, translated on demand, and globals with their addresses."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from irgym.llvmir.interpreter.constants import UNDEFINED, Constants
from irgym.llvmir.interpreter.layout import Layout, kind_of
from irgym.llvmir.interpreter.memory import KNOWN, POISONED, Region
from irgym.llvmir.interpreter.memory_map import CODE, GLOBALS, MIDDLE, REGION_BITS
from irgym.llvmir.interpreter.numbers import Value, bits_of
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Unsupported
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.modules import LOCAL_LINKAGES, ModuleText, parts_of
from irgym.llvmir.ir.syntax import NAME, listed, spaced
from irgym.llvmir.ir.types import first_type

_GLOBAL = re.compile(rf"@{NAME} = (?P<words>(?:[\w()]+ )*?)(?P<word>global|constant) (?P<rest>.*)")
_ALIAS = re.compile(rf"@{NAME} = (?:[\w()]+ )*?(?P<word>alias|ifunc) (?P<rest>.*)")
_EMPTY = frozenset(("zeroinitializer", "null", "0", "undef", "poison", "none", ""))
_UNKNOWN = 1 << REGION_BITS - 2
"""Size in bytes of an external array that is declared without one."""

_STEP = 16
"""Bytes between the addresses of functions."""

Run = Callable[[list[Value], Any], int]
"""A translated block; takes the values so far and the machine, returns the next block's number or -1."""


@dataclass
class Code:
    """A function, translated block by block.

    Attributes:
        function: The function.
        parameters: The parameters.
        numbers: Index of each value.
        blocks: Translated blocks, each with its number of instructions.
        main: Whether runs record the branches taken.
        like: Another form of the function with equal indices, whose equal blocks are reused.
        muted: An instruction to leave out, as numbers of block and instruction; None for none.
        watched: Results whose operands are recorded.
        zeroed: A result to replace by 0; empty for none.
        base: Number of the first block in records of runs, so that the blocks of several functions differ.
    """

    function: Function
    parameters: tuple[Operand, ...]
    numbers: dict[str, int]
    main: bool = False
    like: "Code | None" = None
    zeroed: str = ""
    muted: tuple[int, int] | None = None
    watched: frozenset[str] = frozenset()
    base: int = 0
    blocks: dict[int, tuple[Run, int]] = field(default_factory=dict[int, tuple[Run, int]])

    def label(self, name: str) -> str:
        """Return the key of a result in records of runs."""
        return f"{self.function.name} {name}" if self.base else name

    def direct(self, name: str) -> bool:
        """Say whether a value is the address of a variable of the function."""
        return name in self.variables

    @cached_property
    def variables(self) -> frozenset[str]:
        """The results that are addresses of variables."""
        return frozenset(made.result for _, made in self.function if made.opcode == "alloca")


@dataclass
class Places:
    """Addresses of globals and functions; modules that share them have equal ones for equal names.

    Attributes:
        addresses: Address by name.
        names: Name by address.
    """

    addresses: dict[str, int] = field(default_factory=dict[str, int])
    names: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True)
class Rules:
    """How closely a program keeps to LLVM's rules; `cse` compares equal code, which needs none of these.

    Attributes:
        exact: Whether variables of the module begin with their initial values unless other modules can write
            them, pointers stay within objects of known size where the code promises it.
        aliasing: Says of two access tags, by name, whether they may access the same memory; None leaves
            aliasing and alignment unchecked.
        library: Library functions by name, with what runs them; empty for the usual ones.
        records: Whether runs record the branches and the comparisons of all functions.
    """

    exact: bool = False
    aliasing: Callable[[str, str], bool] | None = None
    library: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    records: bool = False


class Program:
    """A runnable module.

    Args:
        module: The module.
        places: Addresses of globals and functions, which are completed; new ones by default.
        rules: How closely runs keep to LLVM's rules.

    Attributes:
        module: The module.
        layout: Sizes of its types.
        constants: Values of its constants.
        rules: How closely runs keep to LLVM's rules.
    """

    def __init__(self, module: ModuleText, places: Places | None = None, rules: Rules | None = None) -> None:
        self.module = module
        self.layout = Layout(module.entries)
        self.constants = Constants(self.layout, self.address)
        self.rules = rules or Rules()
        places = places or Places()
        self._codes: dict[str, Code] = {}
        self._blocks = 0
        self._addresses = places.addresses
        self._names = places.names
        self._regions: dict[int, Region | None] = {}
        self._as_changed: dict[int, Region | None] = {}
        self._internal: dict[int, bool] = {}

    def code(self, name: str) -> Code:
        """Return a function of the module.

        Raises:
            Unsupported: It cannot be parsed.
        """
        if name not in self._codes:
            text = self.module.functions[name]
            code = self.code_of(text.name, text.header, text.lines, main=self.rules.records)
            code.base = self._blocks
            if self.rules.records:
                code.watched = frozenset(
                    made.result for _, made in code.function if made.opcode in ("icmp", "fcmp")
                )
            self._blocks += len(code.function.blocks)
            self._codes[name] = code
        return self._codes[name]

    def code_of(
        self, name: str, header: str, lines: Sequence[str], main: bool = False, like: Code | None = None
    ) -> Code:
        """Return a function with some lines.

        Args:
            name: Name of the function.
            header: First line of its definition.
            lines: The lines between its braces.
            main: Whether runs record the branches taken.
            like: Another form of the function.

        Raises:
            Unsupported: It cannot be parsed.
        """
        try:
            function = Function.read(name, header, lines)
        except ValueError as error:
            raise Unsupported(str(error)) from error
        _, taken = parts_of(header, name)
        parameters = tuple(Operand.read(text) for text in taken if text != "...")
        results = (instruction.result for _, instruction in function if instruction.result)
        names = dict.fromkeys(
            (*(parameter.value for parameter in parameters), *(like.numbers if like else ()), *results)
        )
        return Code(function, parameters, {value: place for place, value in enumerate(names)}, main, like)

    def address(self, name: str) -> int:
        """Return the address of a global or a function."""
        found = self._addresses.get(name)
        if found is None:
            found = self._addresses[name] = self._new_address(name)
            self._names.setdefault(found, name)
        return found

    def resolved(self, name: str) -> str:
        """Return the name of the function that a name stands for: itself, or what an alias names."""
        seen: set[str] = set()
        while name not in self.module.functions and name not in seen:
            seen.add(name)
            alias = _ALIAS.match(self.module.entries.get(name, ""))
            if alias is None or alias["word"] == "ifunc":
                break
            name = Operand.read(listed(alias["rest"])[1]).value
        return name

    def _new_address(self, name: str) -> int:
        line = self.module.entries.get(name, "")
        if alias := _ALIAS.match(line):
            if alias["word"] == "ifunc":
                return CODE + _STEP * (len(self._addresses) + 1)
            operand = Operand.read(listed(alias["rest"])[1])
            return self.constants.value("ptr", operand.value)
        if not line:
            return CODE + _STEP * (len(self._addresses) + 1)
        number = len(self._addresses)
        if GLOBALS + (number + 1 << REGION_BITS) >= CODE:
            raise Unsupported("so many globals")
        return GLOBALS + (number << REGION_BITS) + MIDDLE

    def named(self, address: int) -> str:
        """Return the name of the function at an address; empty if there is none."""
        return self._names.get(address, "") if address >= CODE else ""

    def global_at(self, address: int) -> str:
        """Return the name of the global whose region contains an address; empty if there is none."""
        return self._names.get((address >> REGION_BITS << REGION_BITS) + MIDDLE, "")

    def internal(self, number: int) -> bool:
        """Say whether a region is that of a global with internal linkage, or of none of this module."""
        known = self._internal.get(number)
        if known is None:
            head = self.module.entries.get(self.global_at(number << REGION_BITS), "").partition(" = ")[2]
            if not head:
                return True
            known = self._internal[number] = bool(LOCAL_LINKAGES & {*spaced(head)[:1]})
        return known

    def region(self, address: int, changed: bool) -> Region | None:
        """Return the region of a global; None if it is unknown.

        Args:
            address: Address of the region.
            changed: Whether variables may have been written since the program began, so that their content is
                random.
        """
        known = self._as_changed if changed else self._regions
        if address not in known:
            known[address] = self._region(self._names.get(address + MIDDLE, ""), changed)
        return known[address]

    def _region(self, name: str, changed: bool) -> Region | None:
        match = _GLOBAL.match(self.module.entries.get(name, ""))
        if match is None:
            return None
        kind = first_type(match["rest"])
        text = listed(match["rest"])[0][len(kind) :].strip()
        constant = match["word"] == "constant"
        size = self.layout.size(kind)
        words = match["words"].split()
        outside = bool({"external", "extern_weak"} & {*words})
        if outside and not size:
            size = _UNKNOWN
        if self.rules.exact:
            random = outside or (changed and not constant and not LOCAL_LINKAGES & {*words})
            zero = text in ("zeroinitializer", "null", "0", "false")
            if not random and (zero or text in _EMPTY):
                return Region(size, constant=constant, zeros=zero)
        else:
            random = outside or (not constant and (changed or text in _EMPTY))
        if random:
            return Region(size, made_up=True, constant=constant)
        content, marks = bytearray(size), bytearray(b"\1" * size)
        if text not in _EMPTY:
            self._put(kind, self.constants.value(kind, text), 0, content, marks)
        return Region(size, (bytes(content), bytes(marks)), constant=constant)

    def _put(self, kind: str, value: Value, place: int, content: bytearray, marks: bytearray) -> None:
        scalar = kind_of(kind)
        if scalar is None:
            for (offset, inner), element in zip(self.layout.fields(kind), value, strict=True):
                self._put(inner, element, place + offset, content, marks)
            return
        if value is POISON or value is UNDEFINED:
            marks[place : place + scalar.size] = bytes([POISONED]) * scalar.size
            return
        bits = bits_of(value, scalar.size) if scalar.floating else value
        content[place : place + scalar.size] = bits.to_bytes(scalar.size, "little")
        marks[place : place + scalar.size] = bytes([KNOWN]) * scalar.size


def ranges(entries: Mapping[str, str], attached: Sequence[str]) -> tuple[int, int]:
    """Return the signed range that a `!range` attachment promises; (0, 0) without one."""
    for attachment in attached:
        if attachment.startswith("!range "):
            numbers = re.findall(r"i\d+ (-?\d+)", entries.get(attachment.split()[1], ""))
            if len(numbers) == 2:
                return int(numbers[0]), int(numbers[1])
    return 0, 0
