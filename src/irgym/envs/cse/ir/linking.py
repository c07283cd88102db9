"""Globals, aliases and ifuncs in modules that hold few of the symbols that they were linked with."""

import re

from irgym.envs.cse.ir.syntax import NAME, globals_in, listed

_COMDAT = re.compile(rf", comdat(?:\(\${NAME}\))?(?=(?:, align \d+)?(?:, ![-\w.$]+ !\d+)*(?: #\d+)?$)")
_INDIRECT = re.compile(rf"@{NAME} = (?:[\w()]+ )*?(?P<kind>alias|ifunc) (?P<rest>.*)")


def aliasee(line: str) -> str:
    """Return the symbol behind an alias, sigil included; empty where a line defines no alias."""
    found = _INDIRECT.match(line)
    if found is None or found["kind"] != "alias":
        return ""
    return (globals_in(found["rest"]) or [""])[0]


def unlinked(line: str, name: str, whole: bool) -> str:
    """Return the line that defines a symbol in a module with few others.

    Comdats matter to linkers only, and may name what is not there. An alias of a function needs the
    function's definition, so it is declared where functions are only declared. An ifunc is always declared:
    to resolve it, code would have to run.

    Args:
        line: The line that defines the symbol in its own module.
        name: The symbol, sigil included.
        whole: Whether functions are defined, instead of declared.
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
