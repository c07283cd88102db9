"""Functions that tell what they read and write: a call stands before each load and store."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import NAME, listed
from irgym.envs.cse.ir.types import first_type
from irgym.envs.cse.running.kinds import SIZES, scalars

_CALLED = re.compile(rf"(?P<head>[^@%]*)(?P<name>%{NAME})\(")
_ORDER = re.compile(r"(?:atomic |volatile )*")
MEMSET = "declare void @llvm.memset.p0.i64"
"""How the declaration begins that helpers need."""

_LOOK = """
define internal void @irgym.{name}(ptr %place, i32 %kind, i64 %size) noinline {{
  %address = ptrtoint ptr %place to i64
  %offset = sub i64 %address, {memory}
  %inside = icmp ult i64 %offset, {bytes}
  br i1 %inside, label %look, label %done
look:
  %marks = getelementptr i8, ptr inttoptr (i64 {marks} to ptr), i64 %offset
  {body}
  br label %done
done:
  ret void
}}
"""
_READ = """%mark = load i8, ptr %marks
  %new = icmp eq i8 %mark, 0
  br i1 %new, label %ask, label %done
ask:
  call void inttoptr (i64 {asked} to ptr)(i64 %offset, i32 %kind)"""
_WROTE = "call void @llvm.memset.p0.i64(ptr %marks, i8 1, i64 %size, i1 false)"

KINDS = tuple(SIZES)
"""The kinds of values, by the numbers that calls tell."""


def helpers(memory: int, size: int, marks: int, asked: int) -> str:
    """Return the definitions of what watched functions call, beside `MEMSET`.

    Args:
        memory: Where the memory begins in which accesses are told.
        size: How many bytes it has.
        marks: Where the marks begin, one byte for each byte of memory; what is marked is not told.
        asked: Address of the function that is called for what is read and has no mark; it takes the place in
            memory, and the number of the kind.
    """
    where = {"memory": memory, "bytes": size, "marks": marks}
    read = _LOOK.format(name="read", body=_READ.format(asked=asked), **where)
    wrote = _LOOK.format(name="wrote", body=_WROTE, **where)
    return "\n".join([read, wrote])


def watched(lines: Sequence[str], called: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a function with a call before each load and store.

    Args:
        lines: The lines between its braces.
        called: The values that are called, and their kinds.
    """
    fresh = count()
    for line in lines:
        if line.startswith("  ") and (" load " in line or "  store " in line):
            yield from _told(Instruction.read(line.strip()), called, fresh)
        yield line


def called_in(lines: Iterable[str]) -> dict[str, str]:
    """Return the values that some lines call, with their kinds."""
    found: dict[str, str] = {}
    for line in lines:
        if (call := line.partition("call ")[2]) and (name := _CALLED.match(call)):
            words = name["head"].partition("(")[0].split()
            returned = next((one for one in words if one in ("float", "double", "ptr")), "integer")
            found[name["name"]] = f"code {returned}"
    return found


def _told(instruction: Instruction, called: Mapping[str, str], fresh: Iterator[int]) -> Iterator[str]:
    loads = instruction.opcode == "load"
    parts = listed(_ORDER.sub("", instruction.rest, count=1))
    if not parts[1].startswith("ptr "):  # in an address space of its own
        return
    place = parts[1].removeprefix("ptr ")
    if "atomic" in instruction.rest:
        place = place.partition(" ")[0]
    values = scalars(first_type(parts[0])) or ()
    for offset, kind in values:
        at = place
        if offset:
            at = f"%irgym.{next(fresh)}"
            yield f"  {at} = getelementptr i8, ptr {place}, i64 {offset}"
        known = called.get(instruction.result, kind) if kind == "ptr" else kind
        told = f"(ptr {at}, i32 {KINDS.index(known)}, i64 {SIZES[kind]})"
        yield f"  call void @irgym.{'read' if loads else 'wrote'}{told}"
