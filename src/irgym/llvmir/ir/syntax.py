"""The syntax of LLVM's text, as LLVM prints it: names, flags, attachments, lists."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

NAME = r'(?:"[^"]*"|[-\w.$]+)'
"""A name after its sigil. LLVM escapes quotes inside quoted names."""

LOCAL = re.compile(rf'"[^"]*"|(?P<name>%{NAME})')
"""Quoted strings, to skip them, or names of local values, blocks and types."""

GLOBAL = re.compile(rf'"[^"]*"|(?P<name>@{NAME})')
"""Quoted strings, to skip them, or names of globals."""

ATTACHED = re.compile(r"(?:, ![-\w.$]+ !\d+)+$")
"""Metadata attachments of an instruction: pairs of a kind and a node."""

RECORD = "#dbg_"
"""Prefix of debug records, which describe variables."""

PLACE = "!dbg "
"""Prefix of the attachment that holds the debug location."""

_LOCATION = re.compile(rf", {PLACE}!\d+")
_SUBPROGRAM = re.compile(r" !dbg !\d+(?= )")
_DECLARED_WITH = re.compile(r"^declare (?:![-\w.$]+ !\d+ )+")

_GROUPED = re.compile(r'["(\[{<]')

FAST = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
"""The flags that `fast` abbreviates."""

_ARITHMETIC = frozenset(FAST) | {"fast"}

FLAGS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("add", "sub", "mul", "shl", "trunc"), frozenset({"nuw", "nsw"})),
    **dict.fromkeys(("udiv", "sdiv", "lshr", "ashr"), frozenset({"exact"})),
    **dict.fromkeys(("zext", "uitofp"), frozenset({"nneg"})),
    **dict.fromkeys(
        ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fcmp", "fptrunc", "fpext", "select", "phi", "call"),
        _ARITHMETIC,
    ),
    "or": frozenset({"disjoint"}),
    "icmp": frozenset({"samesign"}),
    "getelementptr": frozenset({"inbounds", "nusw", "nuw"}),
}
"""For each operation, the flags under which its result may be poison or rounded differently.

From the LLVM Language Reference Manual, release 22.
"""

_IMPLIED: Mapping[str, tuple[str, ...]] = {"fast": FAST, "inbounds": ("inbounds", "nusw")}


def bare(name: str) -> str:
    """Return the name of a function without sigil and quotes, as other tools write it."""
    return name.removeprefix("@").strip('"')


def without_debugging(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a module without debug information, on which no code depends."""
    for line in lines:
        if line.lstrip().startswith(RECORD):
            continue
        if "!" not in line:
            yield line
        elif line.startswith("declare "):
            yield _DECLARED_WITH.sub("declare ", line)
        elif line.startswith("define "):
            yield _SUBPROGRAM.sub("", line)
        else:
            yield ATTACHED.sub(lambda match: _LOCATION.sub("", match[0]), line)


def locals_in(text: str) -> list[str]:
    """Return the names of local values, blocks and types in a text, sigils and repetitions included."""
    return [match["name"] for match in LOCAL.finditer(text) if match["name"]]


def globals_in(text: str) -> list[str]:
    """Return the names of globals in a text, sigils and repetitions included."""
    return [match["name"] for match in GLOBAL.finditer(text) if match["name"]]


def renamed(text: str, name_of: Callable[[str], str]) -> str:
    """Return a text with its local values renamed."""
    return LOCAL.sub(lambda match: name_of(match["name"]) if match["name"] else match[0], text)


def without_flags(opcode: str, text: str) -> tuple[frozenset[str], str]:
    """Split the text after an operation into its flags and the rest.

    Flags that abbreviate others are expanded.
    """
    known = FLAGS.get(opcode, frozenset())
    found: set[str] = set()
    while True:
        word, _, rest = text.partition(" ")
        if word not in known:
            return frozenset(found), text
        found.update(_IMPLIED.get(word, (word,)))
        text = rest


def listed(text: str) -> list[str]:
    """Split a text at commas, except those in brackets or quotes."""
    if not _GROUPED.search(text):
        return [part.strip() for part in text.split(",")]
    return [part.strip() for part in _split(text, ",")]


def spaced(text: str) -> list[str]:
    """Split a text at spaces, except those in brackets or quotes."""
    return [word for word in _split(text, " ") if word]


def _split(text: str, separator: str) -> list[str]:
    """Split a text at each separator outside brackets and quotes."""
    parts: list[str] = []
    depth = begin = 0
    quoted = False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
        elif letter == separator and not depth:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]]
