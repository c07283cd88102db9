"""Globals, aliases and ifuncs in modules with only a few of the original symbols."""

import re

from irgym.llvmir.ir.syntax import NAME, globals_in, listed

_COMDAT = re.compile(rf", comdat(?:\(\${NAME}\))?(?=(?:, align \d+)?(?:, ![-\w.$]+ !\d+)*(?: #\d+)?$)")
_INDIRECT = re.compile(rf"@{NAME} = (?:[\w()]+ )*?(?P<kind>alias|ifunc) (?P<rest>.*)")


def aliasee(line: str) -> str:
    """Return the symbol to which an alias refers, sigil included; empty if the line defines no alias."""
    found = _INDIRECT.match(line)
    if found is None or found["kind"] != "alias":
        return ""
    return (globals_in(found["rest"]) or [""])[0]


def unlinked(line: str, name: str, whole: bool) -> str:
    """Return the line that defines a symbol in a reduced module.

    Comdats are removed: they matter only to linkers and may name missing symbols. An alias of a function
    needs the function's definition, so it becomes a declaration where functions are only declared. An ifunc
    always becomes a declaration, since resolving it would run code.

    Args:
        line: The line that defines the symbol in the original module.
        name: The symbol, sigil included.
        whole: Whether functions are defined rather than declared.
    """
    if not name.startswith("@"):
        return line
    indirect = _INDIRECT.match(line)
    if indirect is None:
        return _COMDAT.sub("", line)
    kind = listed(indirect["rest"])[0]
    if not kind.endswith(")") or (whole and indirect["kind"] == "alias"):
        return line
    returned, _, taken = kind.partition(" (")
    return f"declare {returned} {name}({taken}"
