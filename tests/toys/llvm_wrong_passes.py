"""Wrong passes: rewrites of one line of LLVM's IR that change what a function does."""

import re
from collections.abc import Callable, Mapping

_LOOSER = {"slt": "sle", "sgt": "sge", "ult": "ule", "ugt": "uge", "sle": "slt", "sge": "sgt", "ule": "ult"}
_LOOSER |= {"uge": "ugt", "olt": "ole", "ogt": "oge", "ole": "olt", "oge": "ogt"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "slt": "sge", "sgt": "sle", "ult": "uge", "ugt": "ule", "oeq": "une"}
_OTHER_SIGN = {"slt": "ult", "sgt": "ugt", "ult": "slt", "ugt": "sgt", "sge": "uge", "sle": "ule"}
_OTHER = {"add": "sub", "sub": "add", "mul": "add", "and": "or", "or": "xor", "xor": "or", "shl": "lshr"}
_OTHER |= {"lshr": "shl", "fadd": "fsub", "fsub": "fadd", "fmul": "fdiv", "fdiv": "fmul", "sdiv": "srem"}
_OTHER |= {"udiv": "urem", "urem": "udiv", "srem": "sdiv"}
_FLAGS = r"(?:nuw |nsw |exact |disjoint |nneg |samesign )*"

Rewrite = Callable[[str], str | None]


def _dropped(line: str) -> str | None:
    return "" if line.startswith("  store ") else None


def _uncalled(line: str) -> str | None:
    return "" if re.match(r"  call void @(?!llvm\.(?:lifetime|assume))", line) else None


def _swapped(line: str) -> str | None:
    found = re.match(
        rf"(  \S+ = (?:sub|shl|lshr|[us]div|[us]rem|fsub|fdiv) {_FLAGS}\S+) ([^,]+), ([^,]+)$", line
    )
    return f"{found[1]} {found[3]}, {found[2]}" if found and found[2] != found[3] else None


def _predicate(others: Mapping[str, str]) -> Rewrite:
    def rewrite(line: str) -> str | None:
        found = re.match(rf"(  \S+ = [if]cmp {_FLAGS})(\w+)( .*)", line)
        return f"{found[1]}{others[found[2]]}{found[3]}" if found and found[2] in others else None

    return rewrite


def _constant(line: str) -> str | None:
    found = re.match(r"(  \S+ = (?:add|sub|mul|and|or|xor|shl|lshr|icmp) .*, )(-?\d+)$", line)
    return f"{found[1]}{int(found[2]) + 1}" if found else None


def _targets(line: str) -> str | None:
    found = re.match(r"  br i1 (\S+), label (\S+), label ([^,]+)(.*)", line)
    return f"  br i1 {found[1]}, label {found[3]}, label {found[2]}{found[4]}" if found else None


def _incoming(line: str) -> str | None:
    """Replace the last incoming value of a phi, which is mostly that of another iteration, by the first."""
    found = re.match(r"(  \S+ = phi \S+ \[ )([^,]+)(, \S+ \], .*\[ )([^,]+)(, \S+ \])$", line)
    return f"{found[1]}{found[2]}{found[3]}{found[2]}{found[5]}" if found and found[2] != found[4] else None


def _begun_later(line: str) -> str | None:
    found = re.match(r"(  \S+ = phi i\d+ (?:\[ \S+ \S+ \], )*\[ )(0|1)(, .*)", line)
    return f"{found[1]}{int(found[2]) + 1}{found[3]}" if found else None


def _operation(line: str) -> str | None:
    found = re.match(rf"(  \S+ = )(\w+) {_FLAGS}(.*)", line)
    return f"{found[1]}{_OTHER[found[2]]} {found[3]}" if found and found[2] in _OTHER else None


def _choice(line: str) -> str | None:
    found = re.match(r"(  \S+ = select i1 [^,]+), ([^,]+), ([^,]+)$", line)
    return f"{found[1]}, {found[3]}, {found[2]}" if found else None


def _narrowed(line: str) -> str | None:
    found = re.match(r"  (\S+) = load i(16|32|64), (ptr [^,]+),.*", line)
    return (
        f"  {found[1]}.n = load i8, {found[3]}\n  {found[1]} = zext i8 {found[1]}.n to i{found[2]}"
        if found
        else None
    )


def _widened(line: str) -> str | None:
    found = re.match(r"  (\S+) = load i(8|16|32), (ptr [^,]+),.*", line)
    if not found:
        return None
    wide = 2 * int(found[2])
    shifted = f"  {found[1]}.s = lshr i{wide} {found[1]}.w, {found[2]}"
    return (
        f"  {found[1]}.w = load i{wide}, {found[3]}, align 1\n{shifted}\n"
        f"  {found[1]} = trunc i{wide} {found[1]}.s to i{found[2]}"
    )


def _index(line: str) -> str | None:
    found = re.match(r"(  \S+ = getelementptr .*, i64 )(\S+)$", line)
    if not found:
        return None
    if not found[2].startswith("%"):
        return f"{found[1]}{int(found[2]) + 1}"
    name = line.split()[0]
    return f"  {name}.i = add i64 {found[2]}, 1\n{found[1]}{name}.i"


def _truncated(line: str) -> str | None:
    found = re.match(rf"  (\S+) = ((?:add|mul|sub|xor|or) {_FLAGS}i(32|64) .*)", line)
    return f"  {found[1]}.n = {found[2]}\n  {found[1]} = and i{found[3]} {found[1]}.n, 15" if found else None


def _extension(line: str) -> str | None:
    found = re.match(r"(  \S+ = )(zext|sext) (?:nneg )?(.*)", line)
    return f"{found[1]}{'zext' if found[2] == 'sext' else 'sext'} {found[3]}" if found else None


def _promised(line: str) -> str | None:
    """Promise that a result does not overflow, as a pass may only where it proves it."""
    found = re.match(r"(  \S+ = (?:add|sub|mul|shl)) (?!nuw|nsw)(.*)", line)
    return f"{found[1]} nuw nsw {found[2]}" if found else None


def _unchecked(line: str) -> str | None:
    """Take the first way of a branch in all cases."""
    found = re.match(r"  br i1 \S+, label (\S+), label ([^,]+)(.*)", line)
    return f"  br i1 true, label {found[1]}, label {found[2]}{found[3]}" if found else None


WRONG: Mapping[str, Rewrite] = {
    "drop a store": _dropped,
    "drop a call": _uncalled,
    "swap operands": _swapped,
    "loosen a comparison": _predicate(_LOOSER),
    "negate a comparison": _predicate(_OPPOSITE),
    "compare with the other sign": _predicate(_OTHER_SIGN),
    "change a constant": _constant,
    "swap branch targets": _targets,
    "drop a check": _unchecked,
    "replace an incoming value": _incoming,
    "skip the first iteration": _begun_later,
    "another operation": _operation,
    "swap the choices of a select": _choice,
    "narrow a load": _narrowed,
    "widen a load": _widened,
    "wrong index": _index,
    "truncate a value": _truncated,
    "extend with the other sign": _extension,
    "promise no overflow": _promised,
}
"""Rewrites of a line by name; they return None for lines to which they do not apply."""


def places(text: str, function: str, name: str) -> list[int]:
    """Return the numbers of the lines of a function to which a rewrite applies."""
    lines = text.splitlines()
    begin = next(
        place for place, line in enumerate(lines) if line.startswith("define") and f"@{function}(" in line
    )
    end = lines.index("}", begin)
    return [place for place in range(begin, end) if WRONG[name](lines[place]) is not None]


def rewritten(text: str, place: int, name: str) -> str:
    """Return a module with one line rewritten."""
    lines = text.splitlines()
    lines[place] = WRONG[name](lines[place]) or ""
    return "\n".join([*lines, ""])
