"""Modules of LLVM's IR as text, and extraction of functions with only the symbols they need."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from irgym.llvmir.ir.linking import unlinked
from irgym.llvmir.ir.syntax import NAME, listed, without_debugging

_DEFINED = re.compile(rf"(@{NAME})\(")
_COMDAT = re.compile(rf" comdat(?:\(\${NAME}\))?(?= )")
_LABELLED = re.compile(rf"blockaddress\((@{NAME}), ")
_GROUP = re.compile(r"#\d+")
_NEEDED = re.compile(rf'(?P<name>[@%$]{NAME})|(?P<number>[#!]\d+)|"[^"]*"')
_ENTRY = re.compile(rf"(?P<name>[@%$]{NAME}|attributes #\d+|!\d+) = ")

LINKAGES = frozenset(
    (
        *("private", "internal", "available_externally", "linkonce", "weak", "common", "appending"),
        *("extern_weak", "linkonce_odr", "weak_odr", "external"),
    )
)
"""Linkage types."""

_SEEN = frozenset(("dso_local", "dso_preemptable", "hidden", "protected", "default"))

LOCAL_LINKAGES = frozenset(("private", "internal"))
"""Linkage types of symbols that are invisible outside the module."""


@dataclass(frozen=True)
class FunctionText:
    """A function as LLVM prints it.

    Attributes:
        name: Name, sigil included.
        header: First line of the definition.
        lines: The lines between the braces.
    """

    name: str
    header: str
    lines: tuple[str, ...]

    @cached_property
    def definition(self) -> str:
        """The definition as it stands in the module."""
        return "\n".join([self.header, *self.lines, "}"])

    @cached_property
    def declaration(self) -> str:
        """The matching declaration, for modules without the definition."""
        words = self.header.partition(f"{self.name}(")[0].split(" ")
        near = "dso_local " if LOCAL_LINKAGES & {*words} or "dso_local" in words else ""
        returned, parameters, behind = _in_parts(self.header, self.name)
        taken = ", ".join(map(_unnamed, parameters))
        return f"declare {near}{returned} {self.name}({taken}) {' '.join(_GROUP.findall(behind))}".rstrip()


@dataclass(frozen=True)
class ModuleText:
    """A module as LLVM prints it.

    Attributes:
        functions: Defined functions by name.
        entries: Definitions of types, globals, attributes, metadata and comdats by name, each a line.
        declared: Declarations of functions by name, each a line.
        target: Lines that name the target, and module-level assembly.
        labelled: Functions with address-taken blocks, as computed gotos have.
        inferred: For declared functions, what another form of the module says of them: its declaration and
            the attributes that it names. LLVM adds attributes to functions of the C library.
    """

    functions: Mapping[str, FunctionText]
    entries: Mapping[str, str]
    declared: Mapping[str, str]
    target: tuple[str, ...]
    labelled: frozenset[str] = frozenset()
    inferred: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def read(text: str, debugging: bool = False) -> "ModuleText":
        """Parse a module that LLVM printed.

        Args:
            text: The text.
            debugging: Whether to keep debug information. It changes no code, but every copy of a function
                would drag in most of the module's metadata.
        """
        functions: dict[str, FunctionText] = {}
        entries: dict[str, str] = {}
        declared: dict[str, str] = {}
        target: list[str] = []
        header, body = "", list[str]()
        for line in text.splitlines() if debugging else without_debugging(text.splitlines()):
            if header:
                if line == "}":
                    functions[_name_of(header)] = FunctionText(_name_of(header), header, tuple(body))
                    header, body = "", []
                else:
                    body.append(line)
            elif line.startswith("define "):
                header = line
            elif line.startswith("declare "):
                declared[_name_of(line)] = line
            elif line.startswith(("target ", "module asm ")):
                target.append(line)
            elif entry := _ENTRY.match(line):
                entries[entry["name"].removeprefix("attributes ")] = line
        return ModuleText(functions, entries, declared, tuple(target), frozenset(_LABELLED.findall(text)))

    def attributes(self, text: str) -> str:
        """Return the attributes of the attribute groups that a text names, as text."""
        return " ".join(self.entries.get(group, "") for group in _GROUP.findall(text))

    def informed(self, other: "ModuleText") -> "ModuleText":
        """Return the module with what another form of it says of the functions that both declare."""
        said = {
            name: f"{line} {other.attributes(line)}"
            for name, line in other.declared.items()
            if name in self.declared
        }
        return replace(self, inferred=said)

    def around(self, name: str, header: str, lines: Iterable[str], whole: bool = False) -> list[str]:
        """Return the lines of the module that a function needs, directly or through other lines.

        Args:
            name: Name of the function, sigil included.
            header: First line of its definition.
            lines: The lines between its braces.
            whole: Whether other functions are defined, so that it can run, rather than declared.
        """
        found: dict[str, str] = {}
        waiting = _names_in("\n".join([header, *lines]))
        while waiting:
            needed = waiting.pop()
            if needed == name or needed in found:
                continue
            line = self._line_of(needed, whole)
            if line is not None:
                found[needed] = line
                waiting += _names_in(line)
        return [*self.target, *(found[needed] for needed in sorted(found))]

    def _line_of(self, name: str, whole: bool) -> str | None:
        if name in self.functions:
            function = self.functions[name]
            return _copied(function.definition) if whole else function.declaration
        if name in self.entries:
            return unlinked(self.entries[name], name, whole)
        return self.declared.get(name)


def with_bodies(module: str, bodies: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a module with new bodies for some functions.

    Args:
        module: The text of the module, as LLVM printed it.
        bodies: The new lines between the braces, by the first line of the function's
            definition.

    Raises:
        ValueError: The module has no such line.
    """
    found: list[str] = []
    left = dict(bodies)
    dropping = False
    for line in module.splitlines():
        dropping = dropping and line != "}"
        if not dropping:
            found.append(line)
        if line in left:
            found += left.pop(line)
            dropping = True
    if left:
        raise ValueError(f"the module has no function that begins with {next(iter(left))}")
    return "\n".join([*found, ""])


def header_of_copy(name: str, header: str, copy: str) -> str:
    """Return the first line of the definition of a function's copy, with external linkage.

    Args:
        name: Name of the function, sigil included.
        header: First line of its definition.
        copy: Name of the copy, sigil included.
    """
    head = header.removeprefix("define ")
    place = head.index(f"{name}(")
    words = [word for word in head[:place].split() if word not in LINKAGES]
    return " ".join(["define", *words, copy + _COMDAT.sub("", head[place + len(name) :])])


def visible(header: str, name: str) -> str:
    """Return the first line of a function's definition with external linkage."""
    return header_of_copy(name, header, name)


def parts_of(line: str, name: str) -> tuple[str, list[str]]:
    """Return the result and the parameters of a function as texts, attributes included.

    Args:
        line: The declaration, or the first line of the definition.
        name: Name of the function, sigil included.
    """
    returned, parameters, _ = _in_parts(line, name)
    return returned, parameters


def _in_parts(line: str, name: str) -> tuple[str, list[str], str]:
    """Return the result without linkage, the parameters, and the text after the parameters."""
    opening = line.index(f"{name}(") + len(name)
    closing = _closing(line, opening)
    words = line[: opening - len(name)].split()[1:]
    returned = " ".join(word for word in words if word not in LINKAGES and word not in _SEEN)
    return (
        returned,
        [parameter for parameter in listed(line[opening + 1 : closing]) if parameter],
        line[closing + 1 :],
    )


def _copied(definition: str) -> str:
    """Return a function's definition in a form that another module can hold and emit."""
    header, end, rest = definition.partition("\n")
    return _COMDAT.sub("", header).replace("define available_externally ", "define ") + end + rest


def _names_in(text: str) -> list[str]:
    return [match[0] for match in _NEEDED.finditer(text) if match["name"] or match["number"]]


def _name_of(line: str) -> str:
    """Return the name of the function in a definition or declaration."""
    found = _DEFINED.search(line)
    if found is None:
        raise ValueError(f"LLVM printed a function without a name: {line}")
    return found[1]


def _closing(text: str, opening: int) -> int:
    """Return the place of the matching closing bracket."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    raise ValueError(f"LLVM printed a bracket that nothing closes: {text}")


def _unnamed(parameter: str) -> str:
    """Return a parameter's type and attributes without its name, the last word if there is one."""
    head, _, last = parameter.rpartition(" ")
    return head if head and last.startswith("%") else parameter
