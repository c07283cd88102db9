"""Translation of instructions with effects: memory accesses, calls, branches."""

import re
from collections.abc import Mapping

from irgym.llvmir.interpreter.calls import Call
from irgym.llvmir.interpreter.intrinsics import Site
from irgym.llvmir.interpreter.layout import Kind, kind_of
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import Unsupported
from irgym.llvmir.interpreter.program import ranges
from irgym.llvmir.interpreter.writer import Write, Writer, with_fast_flags
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import NAME, listed
from irgym.llvmir.ir.types import first_type

_CASE = re.compile(rf"i\d+ (?P<value>-?\d+|true|false), label %(?P<block>{NAME})")
_ALIGN = re.compile(r", align (\d+)")
_ORDERED = re.compile(r"(?:atomic |volatile )*")


def _allocating(writer: Writer, instruction: Instruction) -> None:
    parts = [part for part in listed(instruction.rest) if not part.startswith(("align ", "addrspace"))]
    size = str(writer.program.layout.size(parts[0].removeprefix("inalloca ")))
    if len(parts) > 1:
        size += f" * {writer.operand(parts[1])}"
    writer.result(instruction, f"rt.variable({size})")


def _checked(writer: Writer, instruction: Instruction, place: str, address: str, size: int) -> None:
    """Write the check of an access by alignment and type, which compilers rely on."""
    if writer.program.rules.aliasing is None or writer.code.direct(place.rpartition(" ")[2]):
        return
    tag = next((text[6:] for text in instruction.attached if text.startswith("!tbaa ")), "")
    align = _ALIGN.search(instruction.rest)
    if tag or (align and align[1] != "1"):
        step = int(align[1]) if align else 1
        writer.line(f"rt.checked({address}, {size}, {step}, {tag!r}, {instruction.opcode == 'store'})")


def _loading(writer: Writer, instruction: Instruction) -> None:
    ordered = _ORDERED.match(instruction.rest)
    marks = ordered[0] if ordered else ""
    kind, place = listed(instruction.rest[len(marks) :])[:2]
    address = writer.operand(place.partition(" syncscope")[0] if "atomic" not in marks else _plain(place))
    _checked(writer, instruction, place, address, writer.program.layout.size(kind))
    if marks:
        writer.line(
            f"rt.event({instruction.opcode + ' ' + marks!r}, ({address}, {writer.program.layout.size(kind)}))"
        )
    scalar = kind_of(kind)
    low, high = ranges(writer.program.module.entries, instruction.attached)
    if scalar and scalar.floating:
        name = writer.pooled(scalar)
        writer.result(instruction, f"float_of(rt.memory.load({address}, {name}), {scalar.size})")
    elif scalar:
        promised = Kind(scalar.name, scalar.size, scalar.bits, low & scalar.mask, high & scalar.mask)
        name = writer.pooled(_shared(writer, promised))
        found = f"rt.memory.load({address}, {name})"
        if low != high:
            found = f"in_range({found}, {promised.low}, {promised.high}, {scalar.mask})"
        writer.result(instruction, found)
    else:
        writer.result(instruction, f"rt.loaded({address}, {kind!r})")


def _shared(writer: Writer, kind: Kind) -> Kind:
    """Return the object of this block that is equal to a kind, if any."""
    return next(
        (pooled for pooled in writer.pool.values() if pooled == kind and isinstance(pooled, Kind)), kind
    )


def _plain(place: str) -> str:
    """Return the accessed operand, without the memory ordering."""
    words = place.split(" ")
    return " ".join(words[:2])


def _storing(writer: Writer, instruction: Instruction) -> None:
    ordered = _ORDERED.match(instruction.rest)
    marks = ordered[0] if ordered else ""
    value, place = listed(instruction.rest[len(marks) :])[:2]
    operand = Operand.read(value)
    address = writer.operand(_plain(place) if "atomic" in marks else place)
    scalar = kind_of(operand.kind)
    found = writer.value(operand.kind, operand.value)
    _checked(writer, instruction, place, address, writer.program.layout.size(operand.kind))
    if scalar is None:
        writer.line(f"rt.stored({address}, {operand.kind!r}, {found})")
    else:
        bits = f"bits_of({found}, {scalar.size})" if scalar.floating else found
        name = writer.pooled(_shared(writer, scalar))
        if scalar.name == "ptr":
            writer.line(f"rt.escapes({bits})")
        writer.line(f"rt.memory.store({address}, {name}, {bits})")
    if marks:
        size = writer.program.layout.size(operand.kind)
        writer.line(f"rt.event({instruction.opcode + ' ' + marks!r}, ({address}, {size}, {found}))")


def _fencing(writer: Writer, instruction: Instruction) -> None:
    writer.line(f"rt.event({'fence ' + instruction.rest!r}, ())")


def _exchanging(writer: Writer, instruction: Instruction) -> None:
    rest = instruction.rest.removeprefix("weak ").removeprefix("volatile ")
    place, old, new = listed(rest)[:3]
    operand = Operand.read(old)
    scalar = kind_of(operand.kind)
    if scalar is None or scalar.floating:
        raise Unsupported(f"cmpxchg of {operand.kind}")
    second = Operand.read(" ".join(new.split(" ")[:2]))
    values = f"{writer.value(operand.kind, operand.value)}, {writer.value(second.kind, second.value)}"
    writer.result(instruction, f"rt.exchanged({writer.operand(place)}, {writer.pooled(scalar)}, {values})")


def _modifying(writer: Writer, instruction: Instruction) -> None:
    words = instruction.rest.removeprefix("volatile ")
    name, _, rest = words.partition(" ")
    place, value = listed(rest)[:2]
    operand = Operand.read(" ".join(value.split(" ")[:2]))
    scalar = kind_of(operand.kind)
    if scalar is None or scalar.floating:
        raise Unsupported(f"atomicrmw of {operand.kind}")
    other = writer.value(operand.kind, operand.value)
    writer.result(
        instruction, f"rt.modified({name!r}, {writer.operand(place)}, {writer.pooled(scalar)}, {other})"
    )


def _calling(writer: Writer, instruction: Instruction) -> None:
    call = Call.read(instruction.rest, writer.program.module)
    values = [writer.value(other.kind, other.value) for other in call.operands]
    if call.callee.startswith("%"):
        values.insert(0, writer.value("ptr", call.callee))
    taken = "".join(f"{value}, " for value in values)
    defined = call.callee in writer.program.module.functions
    name = writer.pooled(Site(call, None) if defined else Site.of(call, writer.program.rules.library))
    if instruction.opcode == "call":
        found = f"rt.call({name}, ({taken}))"
        kind = kind_of(call.returns)
        floating = bool(kind and kind.floating)
        writer.result(
            instruction,
            with_fast_flags(instruction, found, values) if instruction.flags and floating else found,
        )
        return
    normal, unwind = call.targets[-2:]
    writer.line("try:")
    writer.result(instruction, f"rt.call({name}, ({taken}), True)")
    writer.lines[-1] = f"  {writer.lines[-1]}"
    writer.line("except Unwound:")
    writer.lines += [f"  {text}" for text in writer.goto(unwind)]
    writer.lines += writer.goto(normal)


def _landing(writer: Writer, instruction: Instruction) -> None:
    writer.result(instruction, f"rt.landed({first_type(instruction.rest)!r})")


def _resuming(writer: Writer, _: Instruction) -> None:
    writer.line("rt.unwinds()")


def _branching(writer: Writer, instruction: Instruction) -> None:
    parts = listed(instruction.rest)
    if len(parts) == 1:
        writer.lines += writer.goto(instruction.targets[0])
        return
    labels = [part.removeprefix("label %").strip('"') for part in parts[1:]]
    writer.line(f"if {writer.operand(parts[0])}:")
    writer.lines += [f"  {text}" for text in writer.goto(labels[0])]
    writer.lines += writer.goto(labels[1])


def _switching(writer: Writer, instruction: Instruction) -> None:
    head, _, cases = instruction.rest.partition("[")
    value, default = listed(head.strip())
    operand = Operand.read(value)
    found = writer.value(operand.kind, operand.value)
    if writer.code.main:
        writer.line(f"rt.seen['switch {writer.code.base + writer.number}'] = ({found}, {found})")
    writer.line(f"c = decided({found})")
    for match in _CASE.finditer(cases):
        case = writer.program.constants.value(operand.kind, match["value"])
        writer.line(f"if c == {case}:")
        writer.lines += [f"  {text}" for text in writer.goto(match["block"].strip('"'))]
    writer.lines += writer.goto(default.removeprefix("label %").strip('"'))


def _returning(writer: Writer, instruction: Instruction) -> None:
    writer.line(f"rt.result = {'None' if instruction.rest == 'void' else writer.operand(instruction.rest)}")
    writer.line("return -1")


def _unreachable(writer: Writer, _: Instruction) -> None:
    writer.line("raise Undefined('unreachable code')")


def _skipping(writer: Writer, instruction: Instruction) -> None:
    place = writer.code.numbers[instruction.result]
    writer.line(f"v{place} = e[{place}]")  # set by the predecessor
    writer.seen(instruction.result)


ACTING: Mapping[str, Write] = {
    **dict.fromkeys(("call", "invoke"), _calling),
    "alloca": _allocating,
    "load": _loading,
    "store": _storing,
    "fence": _fencing,
    "cmpxchg": _exchanging,
    "atomicrmw": _modifying,
    "landingpad": _landing,
    "resume": _resuming,
    "br": _branching,
    "switch": _switching,
    "ret": _returning,
    "unreachable": _unreachable,
    "phi": _skipping,
}
"""Translations by operation."""
