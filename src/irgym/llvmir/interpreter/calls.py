"""Parsing of calls, and of the attributes of callees."""

import re
from dataclasses import dataclass, replace

from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.operands import Operand, closing
from irgym.llvmir.interpreter.poison import Unsupported
from irgym.llvmir.ir.modules import ModuleText, parts_of
from irgym.llvmir.ir.syntax import NAME, listed, spaced

_CALLEE = re.compile(rf"(?P<name>[@%]{NAME})\(")
_MEMORY = re.compile(r"\bmemory\(([^)]*)\)")
_ATTRIBUTE = re.compile(r"[a-z_]+")
_DEBUG = re.compile(r" ?!\w+ ![\w]+")

ASSEMBLY = "asm"
"""Prefix of the callee of inline assembly."""


@dataclass(frozen=True)
class Access:
    """Memory that a function may access.

    Attributes:
        reads_arguments: Whether it may read memory through pointer arguments.
        writes_arguments: Whether it may write memory through pointer arguments.
        reads_rest: Whether it may read other memory.
        writes_rest: Whether it may write other memory.
        hidden: Whether it may access memory that the program cannot see (`inaccessiblemem`).
        writes_hidden: Whether it may write such memory.
        writes_errno: Whether it may write `errno`, where it may not write all other memory.
    """

    reads_arguments: bool = True
    writes_arguments: bool = True
    reads_rest: bool = True
    writes_rest: bool = True
    hidden: bool = True
    writes_hidden: bool = True
    writes_errno: bool = False

    @property
    def writes(self) -> bool:
        """Whether it may write memory."""
        return self.writes_arguments or self.writes_rest or self.writes_hidden or self.writes_errno

    def writes_other(self, kind: Kind) -> bool:
        """Say whether it may write a value in memory to which no argument points: `errno` is an `int`."""
        return self.writes_rest or (self.writes_errno and kind.name == "i32")

    @property
    def none(self) -> bool:
        """Whether it accesses no memory."""
        return not (
            self.reads_arguments
            or self.writes_arguments
            or self.reads_rest
            or self.writes_rest
            or self.hidden
            or self.writes_errno
        )

    @staticmethod
    def read(text: str) -> "Access":
        """Return the accesses that all `memory(...)` attributes in a text allow."""
        found = Access()
        for inside in _MEMORY.findall(text):
            found = found.both(_access(inside))
        return found

    def both(self, other: "Access") -> "Access":
        """Return the accesses that both allow."""
        return Access(
            self.reads_arguments and other.reads_arguments,
            self.writes_arguments and other.writes_arguments,
            self.reads_rest and other.reads_rest,
            self.writes_rest and other.writes_rest,
            self.hidden and other.hidden,
            self.writes_hidden and other.writes_hidden,
            (self.writes_errno or self.writes_rest) and (other.writes_errno or other.writes_rest),
        )


def _access(inside: str) -> Access:
    default, places = "none", dict[str, str]()
    for part in inside.split(","):
        place, _, access = part.strip().rpartition(": ")
        if place:
            places[place] = access
        else:
            default = access
    arguments = places.get("argmem", default)
    errno = places.get("errnomem", default)
    hidden = places.get("inaccessiblemem", default)
    return Access(
        "read" in arguments,
        "write" in arguments,
        "read" in default,
        "write" in default,
        hidden != "none",
        "write" in hidden,
        "write" in errno,
    )


@dataclass(frozen=True)
class Call:
    """A call.

    Attributes:
        callee: The called function or pointer; for inline assembly, its text.
        returns: Type of the result.
        operands: The arguments.
        words: Attributes of the call, of its result and of the callee.
        access: Memory that it may access.
        targets: For `invoke`, the blocks for a return and for an exception.
    """

    callee: str
    returns: str
    operands: tuple[Operand, ...]
    words: frozenset[str]
    access: Access
    targets: tuple[str, ...]

    @property
    def pure(self) -> bool:
        """Whether the result depends only on the arguments, so that calls may be dropped or repeated."""
        return self.access.none and {"nounwind", "willreturn"} <= self.words

    @property
    def quiet(self) -> bool:
        """Whether it only returns a result, so that it may be dropped, or done once instead of repeatedly."""
        return not self.access.writes and {"nounwind", "willreturn"} <= self.words

    @staticmethod
    def read(rest: str, module: ModuleText) -> "Call":
        """Parse the text of a call after its operation.

        Raises:
            Unsupported: The interpreter does not support this form.
        """
        words = spaced(rest)
        place = next((number for number, word in enumerate(words) if _CALLEE.match(word)), None)
        if place is None:
            return _assembly(words, rest)
        callee = _name(words[place])
        opening = len(callee)
        taken = words[place][opening + 1 : closing(words[place], opening)]
        head = [word for word in words[:place] if not word.startswith("(")]
        operands = tuple(
            Operand.read(argument)
            for argument in listed(taken)
            if argument and not argument.startswith("metadata ")
        )
        direct = f"{' '.join(head[:-1])} {' '.join(words[place + 1 :])} {module.attributes(rest)}"
        declared = declaration(module, callee)
        inferred = module.inferred.get(callee, "")
        said = f"{direct} {declared} {module.attributes(declared)} {inferred}"
        access = Access.read(f"{direct} {module.attributes(declared)} {inferred}")
        operands = _promised(operands, callee, declared, inferred)
        if "speculatable" in said and callee.startswith("@llvm."):
            access = access.both(_access("none"))
        labels = tuple(word.strip('%",') for word in words[place + 1 :] if word.startswith("%"))
        return Call(callee, head[-1], operands, frozenset(_ATTRIBUTE.findall(said)), access, labels)


def declaration(module: ModuleText, name: str) -> str:
    """Return the declaration or the definition's first line of a function, without debug attachments."""
    function = module.functions.get(name)
    line = function.header if function else module.declared.get(name, "")
    head, sign, rest = line.partition(f"{name}(")
    return f"{_DEBUG.sub('', head)}{sign}{rest}"


def _promised(operands: tuple[Operand, ...], name: str, *declared: str) -> tuple[Operand, ...]:
    """Return operands with the attributes that declarations of the callee give its parameters."""
    for line in declared:
        if f"{name}(" not in line or ("(ptr" not in line and ", ptr" not in line):
            continue
        parameters = [Operand.read(text) for text in parts_of(line, name)[1] if text != "..."]
        more = [parameter.attributes for parameter in parameters]
        more += [()] * (len(operands) - len(more))
        operands = tuple(
            replace(operand, attributes=(*operand.attributes, *attributes)) if attributes else operand
            for operand, attributes in zip(operands, more, strict=False)
        )
    return operands


def _name(word: str) -> str:
    match = _CALLEE.match(word)
    assert match is not None
    return match["name"]


def _assembly(words: list[str], rest: str) -> Call:
    if ASSEMBLY not in words:
        raise Unsupported("a call of a constant")
    place = words.index(ASSEMBLY)
    last = next(number for number, word in enumerate(words) if number > place and '"(' in word)
    opening = words[last].rindex('"(') + 1
    taken = words[last][opening + 1 : closing(words[last], opening)]
    operands = tuple(Operand.read(argument) for argument in listed(taken) if argument)
    text = " ".join([*words[place:last], words[last][:opening]])
    writes = "sideeffect" in words or "~{memory}" in text or "*" in text
    access = Access() if writes else _access("none")
    said = {"nounwind", "willreturn"} if not writes else set[str]()
    return Call(text, words[place - 1], operands, frozenset(said), access, ())
