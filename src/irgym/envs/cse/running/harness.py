"""A function made into a program of its own: what it takes, what it calls and its globals are made up.

The idea is micro-execution (Godefroid, ICSE 2014): nothing but a function's code is needed to run it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irgym.envs.cse.ir.modules import ModuleText, parts_of, visible
from irgym.envs.cse.ir.syntax import GLOBAL, NAME, bare
from irgym.envs.cse.ir.types import first_type, last_type
from irgym.envs.cse.running.externals import called_as_it_is
from irgym.envs.cse.running.kinds import scalars
from irgym.envs.cse.running.memory import SIZE, Memory
from irgym.envs.cse.running.watching import MEMSET, called_in, helpers, watched

ENTRY = "irgym.enter"
"""The function that takes nothing and calls the one in question."""

STEP = 64
"""Bytes for each argument."""

ROOM = 100
"""Instructions that functions stand behind where they are elsewhere."""

STACK = 0x5A, 0xA5
"""Bytes that the stack is filled with, in one run and another."""

_FILLER = """
define internal void @irgym.fill(i8 %byte) noinline {
  %room = alloca [65536 x i8]
  call void @llvm.memset.p0.i64(ptr %room, i8 %byte, i64 65536, i1 true)
  ret void
}
"""

_GLOBAL = re.compile(rf"(?P<name>@{NAME}) = (?:[\w()]+ )*?(?:global|constant) (?P<rest>.*)")
_EMPTY = re.compile(r"zeroinitializer|null|0|undef|poison|")
_COUNTS = re.compile(r"\[(\d+) x ")
_NUMBERS = re.compile(r" icmp .*, (-?\d+)$|^    i\d+ (-?\d+), label ")
_LARGEST = 1 << 16


@dataclass(frozen=True)
class External:
    """A function that is made up.

    Attributes:
        name: Its name, without sigil.
        takes: Kinds of its arguments; None for those of other types.
        returns: Places and kinds of what it returns.
        pure: Whether it returns the same for the same arguments, and may be called less often.
        returning: Whether it returns at all.
    """

    name: str
    takes: tuple[str | None, ...]
    returns: tuple[tuple[int, str], ...]
    pure: bool
    returning: bool


@dataclass(frozen=True)
class Addresses:
    """What stands at which address in all processes.

    Attributes:
        arguments: What the function takes.
        result: What it returns.
        marks: A byte for each byte of memory; see `helpers`.
        asked: The function that is called for what is read.
        passed: What functions that are made up take and return.
        external: The function that is called for these; it takes their number.
    """

    arguments: int
    result: int
    marks: int
    asked: int
    passed: int
    external: int


class Harness:
    """Writes modules in which a function can be run.

    Args:
        module: The module of the function.
        name: Its name, sigil included.
        header: The line that begins its definition.
        memory: Memory, of which globals are given objects.
        addresses: What stands where.
        externals: Functions that are made up, to which more are added; calls tell their places here.
        alone: Whether all that it calls is made up, instead of what is declared only.
    """

    def __init__(
        self,
        module: ModuleText,
        name: str,
        header: str,
        memory: Memory,
        addresses: Addresses,
        externals: list[External],
        alone: bool,
    ) -> None:
        self._module = module
        self._name = name
        self._header = header
        self._memory = memory
        self._at = addresses
        self._externals = externals
        self._alone = alone
        self._lifted: dict[str, int] = {}

    def text(self, lines: Sequence[str], asks: bool = False, elsewhere: bool = False) -> str:
        """Return a module with the function, and with one that calls it.

        Args:
            lines: The lines of the function.
            asks: Whether loads and stores are told.
            elsewhere: Whether functions are at other addresses than otherwise, and another byte all over the
                stack, which is found by what reads before it writes.
        """
        called = called_in(lines)
        found: list[str] = []
        functions = [(visible(self._header, self._name), tuple(lines)), self._entry(called, STACK[elsewhere])]
        for text in self._module.around(self._name, self._header, lines, whole=not self._alone):
            if text.startswith("define "):
                header, *body = text.split("\n")
                functions.append((header, tuple(body[:-1])))
            elif text.startswith("declare "):
                found.append(self._declared(text))
            elif not self._lifts(text):
                found.append(text)
        if elsewhere:
            found.append(_room())
        for header, body in functions:
            calls = called_in(body) | called
            found += [header, *(watched(body, calls) if asks else body), "}"]
        whole = "\n".join([*found, _FILLER])
        if MEMSET not in whole:
            whole += MEMSET + "(ptr, i8, i64, i1 immarg)\n"
        if self._lifted:
            whole = GLOBAL.sub(lambda match: self._at_its_address(match[0]), whole)
        if not asks:
            return whole
        return whole + helpers(self._memory.address, SIZE, self._at.marks, self._at.asked)

    def _entry(self, called: Mapping[str, str], stack: int) -> tuple[str, tuple[str, ...]]:
        head, taken = parts_of(self._header, self._name)
        returned = last_type(head)
        loads = [f"  call void @irgym.fill(i8 {stack})"]
        passed: list[str] = []
        types: list[str] = []
        for number, one in enumerate(taken):
            if one == "...":
                types.append(one)
                continue
            kind = first_type(one)
            types.append(kind)
            text, _, name = one.rpartition(" ")
            own = name if name in called else f"%irgym.p{number}"
            loads.append(f"  {own} = load {kind}, ptr {_pointer(self._at.arguments + STEP * number)}")
            passed.append(f"{text} {own}")
        if "..." in types:
            head = f"{head} ({', '.join(types)})"
        call = f"call {head} {self._name}({', '.join(passed)})"
        if returned != "void":
            store = f"  store {returned} %irgym.r, ptr {_pointer(self._at.result)}"
            body = (*loads, f"  %irgym.r = {call}", store, "  ret void")
        else:
            body = (*loads, f"  {call}", "  ret void")
        return f"define void @{ENTRY}() {{", body

    def _declared(self, line: str) -> str:
        """Return a declaration, or the definition of the function that is made up instead."""
        name = "@" + line.partition("@")[2].partition("(")[0]
        if called_as_it_is(bare(name)):
            return line
        head, taken = parts_of(line, name)
        returned = last_type(head)
        said = self._module.attributes(line)
        kinds = [scalars(first_type(one)) for one in taken if one != "..."]
        external = External(
            bare(name),
            tuple(one[0][1] if one and len(one) == 1 else None for one in kinds),
            tuple(scalars(returned) or ()),
            "memory(none)" in said or "memory(read)" in said or "memory(argmem: read)" in said,
            "noreturn" not in said,
        )
        if external not in self._externals:
            self._externals.append(external)
        named = [one if one == "..." else f"{one} %p{number}" for number, one in enumerate(taken)]
        body = [f"define {head} {name}({', '.join(named)}) {{"]
        for number, one in enumerate(taken):
            if one != "..." and external.takes[number]:
                place = _pointer(self._at.passed + STEP * number)
                body.append(f"  store {first_type(one)} %p{number}, ptr {place}")
        place = self._externals.index(external)
        body.append(f"  call void {_pointer(self._at.external)}(i32 {place})")
        if returned == "void":
            body.append("  ret void")
        else:
            body.append(f"  %r = load {returned}, ptr {_pointer(self._at.passed)}")
            body.append(f"  ret {returned} %r")
        return "\n".join([*body, "}"])

    def _lifts(self, line: str) -> bool:
        """Say whether a line defines a global that memory holds instead: one that is empty or elsewhere."""
        found = _GLOBAL.match(line)
        if found is None:
            return False
        kind = first_type(found["rest"])
        value = found["rest"][len(kind) :].strip().partition(",")[0].strip()
        if found["rest"][len(kind) :].startswith(","):
            value = ""
        if not _EMPTY.fullmatch(value):
            return False
        if found["name"] not in self._lifted:
            size = 64
            for one in _COUNTS.findall(kind):
                size *= int(one)
            address = self._memory.given(size=size) if size <= _LARGEST else None
            if address is None:
                return False
            self._lifted[found["name"]] = address
        return True

    def _at_its_address(self, name: str) -> str:
        return _pointer(self._lifted[name]) if name in self._lifted else name


def _pointer(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def _room() -> str:
    """Return a function that nothing calls, for others to stand behind it."""
    store = f"  store volatile i64 0, ptr {_pointer(STEP)}"
    return "\n".join(["define void @irgym.room() {", *[store] * ROOM, "  ret void", "}"])


def known_in(lines: Iterable[str]) -> list[int]:
    """Return the whole numbers that a function compares with, in order."""
    found = {int(one[1] or one[2]) for line in lines for one in _NUMBERS.finditer(line)}
    return sorted(found)
