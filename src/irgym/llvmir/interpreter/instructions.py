"""Translation of instructions whose result depends only on their operands."""

from collections.abc import Mapping

from irgym.llvmir.interpreter.layout import Kind, kind_of
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import Unsupported
from irgym.llvmir.interpreter.watching import CASES
from irgym.llvmir.interpreter.writer import Write, Writer, element_of, with_fast_flags
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed

_ADDRESS_MASK = (1 << 64) - 1
_SIGNED = frozenset(("slt", "sle", "sgt", "sge"))
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOATING = {"fadd": "({} + {})", "fsub": "({} - {})", "fmul": "({} * {})"}


def _wrapping(writer: Writer, instruction: Instruction) -> None:
    kind, first, second = writer.two(instruction.rest)
    name, sign = instruction.opcode, {"add": "+", "sub": "-", "mul": "*"}[instruction.opcode]
    flags = " ".join(sorted(instruction.flags))

    def expression(a: str, b: str, of: Kind) -> str:
        return f"{name}({a}, {b}, {of.mask}, {flags!r})" if flags else f"(({a} {sign} {b}) & {of.mask})"

    writer.result(instruction, writer.each(kind, expression, first, second))


def _bitwise(writer: Writer, instruction: Instruction) -> None:
    kind, first, second = writer.two(instruction.rest)
    sign = {"and": "&", "or": "|", "xor": "^"}[instruction.opcode]

    def expression(a: str, b: str, _: Kind) -> str:
        return f"disjoint({a}, {b})" if instruction.flags else f"({a} {sign} {b})"

    writer.result(instruction, writer.each(kind, expression, first, second))


def _shifting(writer: Writer, instruction: Instruction) -> None:
    kind, first, second = writer.two(instruction.rest)
    flags = " ".join(sorted(instruction.flags)) if instruction.opcode == "shl" else bool(instruction.flags)

    def expression(a: str, b: str, of: Kind) -> str:
        return f"{instruction.opcode}({a}, {b}, {of.bits}, {flags!r})"

    writer.result(instruction, writer.each(kind, expression, first, second))


def _dividing(writer: Writer, instruction: Instruction) -> None:
    kind, first, second = writer.two(instruction.rest)

    def expression(a: str, b: str, of: Kind) -> str:
        return f"divided({instruction.opcode!r}, {a}, {b}, {of.bits}, {bool(instruction.flags)})"

    writer.result(instruction, writer.each(kind, expression, first, second))


def _comparing(writer: Writer, instruction: Instruction) -> None:
    name, _, rest = instruction.rest.partition(" ")
    kind, first, second = writer.two(rest)

    def expression(a: str, b: str, of: Kind) -> str:
        sign = 1 << (of.bits - 1)
        left, right = (f"({a} ^ {sign})", f"({b} ^ {sign})") if name in _SIGNED else (a, b)
        found = f"({left} {_RELATIONS[name[-2:]]} {right})"
        return f"same_sign({a}, {b}, {sign}, {found})" if instruction.flags else found

    if writer.code.main and kind_of(kind):
        writer.line(f"rt.seen[{writer.label(instruction.result)!r}] = ({first}, {second})")
    writer.result(instruction, writer.each(kind, expression, first, second))


def _comparing_floats(writer: Writer, instruction: Instruction) -> None:
    name, _, rest = instruction.rest.partition(" ")
    kind, first, second = writer.two(rest)
    if writer.code.main and kind_of(kind):
        writer.line(f"rt.seen[{writer.label(instruction.result)!r}] = ({first}, {second})")

    def expression(a: str, b: str, _: Kind) -> str:
        found = f"compared({name!r}, {a}, {b})"
        return with_fast_flags(instruction, found, (a, b))

    writer.result(instruction, writer.each(kind, expression, first, second))


def _floating(writer: Writer, instruction: Instruction) -> None:
    kind, first, second = writer.two(instruction.rest)

    def expression(a: str, b: str, of: Kind) -> str:
        if instruction.opcode in _FLOATING:
            found = _FLOATING[instruction.opcode].format(a, b)
        else:
            found = f"{'quotient' if instruction.opcode == 'fdiv' else 'remainder'}({a}, {b})"
        found = f"arithmetic({f'single({found})' if of.size == 4 else found})"
        return with_fast_flags(instruction, found, (a, b))

    writer.result(instruction, writer.each(kind, expression, first, second))


def _negating(writer: Writer, instruction: Instruction) -> None:
    operand = Operand.read(instruction.rest)
    value = writer.value(operand.kind, operand.value)
    found = writer.each_one(operand.kind, lambda a, _: with_fast_flags(instruction, f"(-{a})", (a,)), value)
    writer.result(instruction, found)


def _converting(writer: Writer, instruction: Instruction) -> None:
    source, _, kind = instruction.rest.rpartition(" to ")
    operand = Operand.read(source)
    value = writer.value(operand.kind, operand.value)
    flags = " ".join(sorted(instruction.flags))
    new = kind_of(kind) or element_of(kind)
    if instruction.opcode == "bitcast":
        writer.result(instruction, _bitcast(writer, operand.kind, kind, value))
        return

    def expression(a: str, old: Kind) -> str:
        sign = 1 << (old.bits - 1)
        match instruction.opcode:
            case "trunc":
                if flags:
                    return f"truncated({a}, {new.bits}, {old.bits}, {flags!r})"
                return f"({a} & {new.mask})"
            case "zext":
                return f"non_negative({a}, {sign})" if flags else f"(+{a})"
            case "sext":
                return f"((({a} ^ {sign}) - {sign}) & {new.mask})"
            case "ptrtoint" | "ptrtoaddr" | "inttoptr":
                return f"({a} & {new.mask})"
            case "fptrunc":
                return with_fast_flags(instruction, f"single({a})", (a,))
            case "fpext":
                return with_fast_flags(instruction, f"(+{a})", (a,))
            case "fptoui" | "fptosi":
                return f"to_integer({a}, {new.bits}, {instruction.opcode == 'fptosi'})"
            case "uitofp":
                a = f"non_negative({a}, {sign})" if "nneg" in flags else a
                return f"to_float({a}, {new.size == 4})"
            case "sitofp":
                return f"to_float(signed({a}, {sign}), {new.size == 4})"
            case other:
                raise Unsupported(f"the operation {other}")

    writer.result(instruction, writer.each_one(operand.kind, expression, value))


def _bitcast(writer: Writer, old: str, new: str, value: str) -> str:
    first, second = kind_of(old), kind_of(new)
    if first and second:
        if first.floating == second.floating:
            return value
        name = "bits_of" if first.floating else "float_of"
        return f"{name}({value}, {first.size})"
    return f"rt.recast({value}, {old!r}, {new!r})"


def _choosing(writer: Writer, instruction: Instruction) -> None:
    condition, first, second = map(Operand.read, listed(instruction.rest))
    decision = writer.value(condition.kind, condition.value)
    values = [writer.value(other.kind, other.value) for other in (first, second)]
    if condition.kind.startswith("<"):
        found = f"tuple([chosen(c, x, y) for c, x, y in zip({decision}, {values[0]}, {values[1]})])"
    else:
        found = f"chosen({decision}, {values[0]}, {values[1]})"
    kind = kind_of(first.kind)
    writer.result(
        instruction, with_fast_flags(instruction, found, values) if kind and kind.floating else found
    )


def _freezing(writer: Writer, instruction: Instruction) -> None:
    writer.result(instruction, f"frozen({writer.operand(instruction.rest)})")


def _addressing(writer: Writer, instruction: Instruction) -> None:
    parts = listed(instruction.rest)
    kind, base = parts[0], Operand.read(parts[1])
    if base.kind != "ptr":
        raise Unsupported("vectors of addresses")
    terms: list[str] = []
    offset = 0
    for number, place in enumerate(map(Operand.read, parts[2:])):
        scalar = kind_of(place.kind)
        if scalar is None:
            raise Unsupported("vectors of addresses")
        if not place.value.startswith("%"):
            value = writer.program.constants.value(place.kind, place.value)
            value -= (value >> (scalar.bits - 1)) << scalar.bits
            if number:
                step, kind = writer.program.constants.step(kind, value)
            else:
                step = value * writer.program.layout.size(kind)
            offset += step
            continue
        step, inner = writer.program.constants.step(kind, 1) if number else (0, kind)
        size = writer.program.layout.size(inner)
        kind = inner if number else kind
        sign = 1 << (scalar.bits - 1)
        value = writer.value(place.kind, place.value)
        terms.append(f"(({value} ^ {sign}) - {sign}) * {size}")
    start = writer.value("ptr", base.value)
    found = f"({' + '.join([start, *terms, str(offset)])})"
    exact = writer.program.rules.exact
    if exact and "inbounds" in instruction.flags:
        found = f"rt.inside({start}, {found})"
    elif instruction.flags & {"inbounds", "nusw"}:
        found = f"within({start}, {found})"
    else:
        found = f"({found} & {_ADDRESS_MASK})"
    if exact and "nuw" in instruction.flags and terms:
        found = f"upwards({start}, {found})"
    writer.result(instruction, found)


def _extracting(writer: Writer, instruction: Instruction) -> None:
    first, *places = listed(instruction.rest)
    if instruction.opcode == "extractelement":
        writer.result(instruction, f"element({writer.operand(first)}, {writer.operand(places[0])})")
    else:
        writer.result(instruction, f"{writer.operand(first)}{''.join(f'[{place}]' for place in places)}")


def _inserting(writer: Writer, instruction: Instruction) -> None:
    whole, value, *places = listed(instruction.rest)
    where = writer.operand(places[0]) if instruction.opcode == "insertelement" else ", ".join(places)
    writer.result(instruction, f"inserted({writer.operand(whole)}, {writer.operand(value)}, ({where},))")


def _shuffling(writer: Writer, instruction: Instruction) -> None:
    first, second, mask = map(Operand.read, listed(instruction.rest))
    places = writer.program.constants.value(mask.kind, mask.value)
    if any(not isinstance(place, int) for place in places):
        places = tuple(place if isinstance(place, int) else -1 for place in places)
    both = [writer.value(other.kind, other.value) for other in (first, second)]
    writer.result(instruction, f"shuffled({both[0]}, {both[1]}, {places!r})")


def watch(writer: Writer, instruction: Instruction) -> None:
    """Write code that records the operands of an instruction."""
    if instruction.opcode not in CASES:
        return
    rest = (
        instruction.rest.partition(" ")[2]
        if instruction.opcode in ("icmp", "fcmp")
        else instruction.rest.rpartition(" to ")[0] or instruction.rest
    )
    first, *others = listed(rest)
    operand = Operand.read(first)
    kind = kind_of(operand.kind)
    if kind is not None:
        values = [writer.value(operand.kind, text) for text in (operand.value, *others[:1])]
        result = writer.value("", instruction.result)
        key = writer.label(instruction.result)
        writer.line(f"rt.watch({key!r}, ({', '.join(values)},), {result}, {1 << (kind.bits - 1)})")


COMPUTING: Mapping[str, Write] = {
    **dict.fromkeys(("add", "sub", "mul"), _wrapping),
    **dict.fromkeys(("and", "or", "xor"), _bitwise),
    **dict.fromkeys(("shl", "lshr", "ashr"), _shifting),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), _dividing),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fdiv", "frem"), _floating),
    **dict.fromkeys(("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi"), _converting),
    **dict.fromkeys(("uitofp", "sitofp", "ptrtoint", "ptrtoaddr", "inttoptr", "bitcast"), _converting),
    **dict.fromkeys(("extractelement", "extractvalue"), _extracting),
    **dict.fromkeys(("insertelement", "insertvalue"), _inserting),
    "fneg": _negating,
    "icmp": _comparing,
    "fcmp": _comparing_floats,
    "select": _choosing,
    "freeze": _freezing,
    "getelementptr": _addressing,
    "shufflevector": _shuffling,
}
"""Translations by operation."""
