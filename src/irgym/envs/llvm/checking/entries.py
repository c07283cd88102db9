"""Functions and variables by which a module before LLVM's passes is compared with the module after them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.program import Program
from irgym.llvmir.ir.modules import LOCAL_LINKAGES, ModuleText, parts_of
from irgym.llvmir.ir.syntax import globals_in
from irgym.llvmir.ir.types import first_type, last_type

_VARIABLE = re.compile(r"@(?P<name>.+?) = (?P<words>(?:[\w()]+ )*?)(?P<kind>global|constant) (?P<rest>.*)")
_DISCARDABLE = frozenset(("available_externally", "linkonce", "linkonce_odr"))


@dataclass(frozen=True)
class Entry:
    """A function through which code outside enters a module.

    Attributes:
        name: Name in the module before, sigil included.
        other: Name of the function that the module after runs for it; empty if there is none.
        needed: Whether the module after must have it.
    """

    name: str
    other: str
    needed: bool


def entries(before: Program, after: Program) -> list[Entry]:
    """Return the visible functions of a module, and internal ones whose address is taken in both forms."""
    taken = _address_taken(before.module) & _address_taken(after.module)
    found: list[Entry] = []
    for name, function in before.module.functions.items():
        words = {*function.header.partition(f"{name}(")[0].split()}
        if "available_externally" in words:
            continue
        other = after.resolved(name)
        other = other if other in after.module.functions else ""
        internal = bool(words & LOCAL_LINKAGES)
        if not internal and _hidden(after.module, name):
            other = ""
        if internal and (
            name not in taken or not other or not _alike(before.module, name, after.module, other)
        ):
            continue
        found.append(Entry(name, other, not internal and not words & _DISCARDABLE))
    return found


def same_signature(before: ModuleText, after: ModuleText, entry: Entry) -> bool:
    """Say whether the two forms of a function take and return the same types."""
    return _alike(before, entry.name, after, entry.other)


def unchanged(before: ModuleText, after: ModuleText, entry: Entry) -> bool:
    """Say whether a function and all that it needs are the same text in both modules."""
    first, second = before.functions[entry.name], after.functions[entry.other]
    if first.definition != second.definition:
        return False
    needed = (
        module.around(entry.name, function.header, function.lines, whole=True)
        for module, function in ((before, first), (after, second))
    )
    return next(needed) == next(needed)


def reached(module: ModuleText, name: str) -> list[str]:
    """Return the functions that a function mentions, itself first, directly or through other symbols."""
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        known = waiting.pop()
        if known in found:
            continue
        found[known] = None
        function = module.functions.get(known)
        said = "\n".join(function.lines) if function else module.entries.get(known, "").partition(" = ")[2]
        waiting += globals_in(said)
    return [known for known in found if known in module.functions]


def kept(before: Program, after: Program) -> Iterator[str]:
    """Yield the internal variables that both modules have with the same type."""
    for name, line in before.module.entries.items():
        first = _VARIABLE.match(line) if name.startswith("@") else None
        second = _VARIABLE.match(after.module.entries.get(name, "")) if first else None
        if first is None or second is None or not LOCAL_LINKAGES & {*first["words"].split()}:
            continue
        same = first_type(first["rest"]) == first_type(second["rest"])
        if same and first["kind"] == second["kind"] == "global":
            yield name


class Partners:
    """Entries that use the same internal variables, looked up for one entry after the other.

    Args:
        module: The module.
        found: Its entries.
    """

    def __init__(self, module: ModuleText, found: Sequence[Entry]) -> None:
        self._names = [entry.name for entry in found if entry.other]
        self._entries = {entry.name: entry for entry in found}
        self._functions = {
            name: globals_in("\n".join(function.lines)) for name, function in module.functions.items()
        }
        others = {
            name: globals_in(line.partition(" = ")[2])
            for name, line in module.entries.items()
            if name not in self._functions
        }
        self._mentioned = {**others, **self._functions}
        self._users: dict[str, list[str]] = {}
        for name, mentioned in self._mentioned.items():
            for other in mentioned:
                self._users.setdefault(other, []).append(name)
        self._variables = {name for name in others if _is_internal_variable(module.entries[name])}
        self._known: dict[frozenset[str], list[Entry]] = {}

    def of(self, entry: Entry) -> Sequence[Entry]:
        """Return the entries that use an internal variable that an entry uses too, itself included."""
        needed = _closure([entry.name], self._mentioned)
        used = {known for name in needed for known in self._functions.get(name, ())}
        variables = frozenset(self._variables & used)
        if variables not in self._known:
            direct = {name for known in variables for name in self._users[known] if name in self._functions}
            users = _closure(direct, self._users)
            self._known[variables] = [self._entries[name] for name in self._names if name in users]
        return self._known[variables]


def _closure(names: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    """Return names, and all that follows from them directly or indirectly."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += following.get(name, ())
    return found


def _is_internal_variable(line: str) -> bool:
    match = _VARIABLE.match(line)
    return (
        match is not None and match["kind"] == "global" and bool(LOCAL_LINKAGES & {*match["words"].split()})
    )


def _hidden(module: ModuleText, name: str) -> bool:
    """Say whether a module defines a function under a name that other modules do not see."""
    function = module.functions.get(name)
    return function is not None and bool(LOCAL_LINKAGES & {*function.header.partition(f"{name}(")[0].split()})


def _address_taken(module: ModuleText) -> set[str]:
    """Return the functions that are used otherwise than as the callee of a direct call."""
    lines: Iterable[str] = (
        *(line for name, line in module.entries.items() if name.startswith("@")),
        *(line for function in module.functions.values() for line in function.lines if "@" in line),
    )
    found: set[str] = set()
    for line in lines:
        for name in globals_in(line.partition(" = ")[2] if line.startswith("@") else line):
            if name in module.functions and re.search(rf"{re.escape(name)}(?![\w.$(-])", line):
                found.add(name)
    return found


def _alike(before: ModuleText, name: str, after: ModuleText, other: str) -> bool:
    return _signature(before, name) == _signature(after, other)


def _signature(module: ModuleText, name: str) -> tuple[str, ...]:
    returned, parameters = parts_of(module.functions[name].header, name)
    kinds = (Operand.read(text).kind if text != "..." else text for text in parameters)
    return (last_type(returned), *kinds)
