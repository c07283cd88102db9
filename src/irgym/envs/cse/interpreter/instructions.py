"""The Python of instructions that compute a result of their operands alone."""

from collections.abc import Mapping

from irgym.envs.cse.interpreter.layout import Kind, kind_of
from irgym.envs.cse.interpreter.operands import Operand
from irgym.envs.cse.interpreter.poison import Unsupported
from irgym.envs.cse.interpreter.watching import CASES
from irgym.envs.cse.interpreter.writer import Write, Writer, element_of, with_fast_flags
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import listed

_ADDRESS_MASK = (1 << 64) - 1
_SIGNED = frozenset(("slt", "sle", "sgt", "sge"))
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOATING = {"fadd": "({} + {})", "fsub": "({} - {})", "fmul": "({} * {})"}


def _wrapping(writer: Writer, one: Instruction) -> None:
    kind, first, second = writer.two(one.rest)
    name, sign = one.opcode, {"add": "+", "sub": "-", "mul": "*"}[one.opcode]
    flags = " ".join(sorted(one.flags))

    def expression(a: str, b: str, of: Kind) -> str:
        return f"{name}({a}, {b}, {of.mask}, {flags!r})" if flags else f"(({a} {sign} {b}) & {of.mask})"

    writer.result(one, writer.each(kind, expression, first, second))


def _bitwise(writer: Writer, one: Instruction) -> None:
    kind, first, second = writer.two(one.rest)
    sign = {"and": "&", "or": "|", "xor": "^"}[one.opcode]

    def expression(a: str, b: str, _: Kind) -> str:
        return f"disjoint({a}, {b})" if one.flags else f"({a} {sign} {b})"

    writer.result(one, writer.each(kind, expression, first, second))


def _shifting(writer: Writer, one: Instruction) -> None:
    kind, first, second = writer.two(one.rest)
    flags = " ".join(sorted(one.flags)) if one.opcode == "shl" else bool(one.flags)

    def expression(a: str, b: str, of: Kind) -> str:
        return f"{one.opcode}({a}, {b}, {of.bits}, {flags!r})"

    writer.result(one, writer.each(kind, expression, first, second))


def _dividing(writer: Writer, one: Instruction) -> None:
    kind, first, second = writer.two(one.rest)

    def expression(a: str, b: str, of: Kind) -> str:
        return f"divided({one.opcode!r}, {a}, {b}, {of.bits}, {bool(one.flags)})"

    writer.result(one, writer.each(kind, expression, first, second))


def _comparing(writer: Writer, one: Instruction) -> None:
    name, _, rest = one.rest.partition(" ")
    kind, first, second = writer.two(rest)

    def expression(a: str, b: str, of: Kind) -> str:
        sign = 1 << (of.bits - 1)
        own, relation = (f"({a} ^ {sign})", f"({b} ^ {sign})") if name in _SIGNED else (a, b), name[-2:]
        found = f"({own[0]} {_RELATIONS[relation]} {own[1]})"
        return f"same_sign({a}, {b}, {sign}, {found})" if one.flags else found

    if writer.code.main and kind_of(kind):
        writer.line(f"rt.seen[{one.result!r}] = ({first}, {second})")
    writer.result(one, writer.each(kind, expression, first, second))


def _comparing_floats(writer: Writer, one: Instruction) -> None:
    name, _, rest = one.rest.partition(" ")
    kind, first, second = writer.two(rest)
    if writer.code.main and kind_of(kind):
        writer.line(f"rt.seen[{one.result!r}] = ({first}, {second})")

    def expression(a: str, b: str, _: Kind) -> str:
        found = f"compared({name!r}, {a}, {b})"
        return with_fast_flags(one, found, (a, b))

    writer.result(one, writer.each(kind, expression, first, second))


def _floating(writer: Writer, one: Instruction) -> None:
    kind, first, second = writer.two(one.rest)

    def expression(a: str, b: str, of: Kind) -> str:
        if one.opcode in _FLOATING:
            found = _FLOATING[one.opcode].format(a, b)
        else:
            found = f"{'quotient' if one.opcode == 'fdiv' else 'remainder'}({a}, {b})"
        found = f"arithmetic({f'single({found})' if of.size == 4 else found})"
        return with_fast_flags(one, found, (a, b))

    writer.result(one, writer.each(kind, expression, first, second))


def _negating(writer: Writer, one: Instruction) -> None:
    operand = Operand.read(one.rest)
    value = writer.value(operand.kind, operand.value)
    found = writer.each_one(operand.kind, lambda a, _: with_fast_flags(one, f"(-{a})", (a,)), value)
    writer.result(one, found)


def _converting(writer: Writer, one: Instruction) -> None:
    source, _, kind = one.rest.rpartition(" to ")
    operand = Operand.read(source)
    value = writer.value(operand.kind, operand.value)
    flags = " ".join(sorted(one.flags))
    new = kind_of(kind) or element_of(kind)
    if one.opcode == "bitcast":
        writer.result(one, _bitcast(writer, operand.kind, kind, value))
        return

    def expression(a: str, old: Kind) -> str:
        sign = 1 << (old.bits - 1)
        match one.opcode:
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
                return with_fast_flags(one, f"single({a})", (a,))
            case "fpext":
                return with_fast_flags(one, f"(+{a})", (a,))
            case "fptoui" | "fptosi":
                return f"to_integer({a}, {new.bits}, {one.opcode == 'fptosi'})"
            case "uitofp":
                a = f"non_negative({a}, {sign})" if "nneg" in flags else a
                return f"to_float({a}, {new.size == 4})"
            case "sitofp":
                return f"to_float(signed({a}, {sign}), {new.size == 4})"
            case other:
                raise Unsupported(f"the operation {other}")

    writer.result(one, writer.each_one(operand.kind, expression, value))


def _bitcast(writer: Writer, old: str, new: str, value: str) -> str:
    first, second = kind_of(old), kind_of(new)
    if first and second:
        if first.floating == second.floating:
            return value
        name = "bits_of" if first.floating else "float_of"
        return f"{name}({value}, {first.size})"
    return f"rt.recast({value}, {old!r}, {new!r})"


def _choosing(writer: Writer, one: Instruction) -> None:
    condition, first, second = map(Operand.read, listed(one.rest))
    decision = writer.value(condition.kind, condition.value)
    values = [writer.value(other.kind, other.value) for other in (first, second)]
    if condition.kind.startswith("<"):
        found = f"tuple([chosen(c, x, y) for c, x, y in zip({decision}, {values[0]}, {values[1]})])"
    else:
        found = f"chosen({decision}, {values[0]}, {values[1]})"
    kind = kind_of(first.kind)
    writer.result(one, with_fast_flags(one, found, values) if kind and kind.floating else found)


def _freezing(writer: Writer, one: Instruction) -> None:
    writer.result(one, f"frozen({writer.operand(one.rest)})")


def _addressing(writer: Writer, one: Instruction) -> None:
    parts = listed(one.rest)
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
    found = f"(({' + '.join([start, *terms, str(offset)])}) & {_ADDRESS_MASK})"
    if one.flags & {"inbounds", "nusw"}:
        found = f"within({start}, {found})"
    writer.result(one, found)


def _extracting(writer: Writer, one: Instruction) -> None:
    first, *places = listed(one.rest)
    if one.opcode == "extractelement":
        writer.result(one, f"element({writer.operand(first)}, {writer.operand(places[0])})")
    else:
        writer.result(one, f"{writer.operand(first)}{''.join(f'[{place}]' for place in places)}")


def _inserting(writer: Writer, one: Instruction) -> None:
    whole, value, *places = listed(one.rest)
    where = writer.operand(places[0]) if one.opcode == "insertelement" else ", ".join(places)
    writer.result(one, f"inserted({writer.operand(whole)}, {writer.operand(value)}, ({where},))")


def _shuffling(writer: Writer, one: Instruction) -> None:
    first, second, mask = map(Operand.read, listed(one.rest))
    places = writer.program.constants.value(mask.kind, mask.value)
    if any(not isinstance(place, int) for place in places):
        places = tuple(place if isinstance(place, int) else -1 for place in places)
    both = [writer.value(other.kind, other.value) for other in (first, second)]
    writer.result(one, f"shuffled({both[0]}, {both[1]}, {places!r})")


def watch(writer: Writer, one: Instruction) -> None:
    """Write that the operands of an instruction are looked at."""
    if one.opcode not in CASES:
        return
    rest = (
        one.rest.partition(" ")[2]
        if one.opcode in ("icmp", "fcmp")
        else one.rest.rpartition(" to ")[0] or one.rest
    )
    first, *others = listed(rest)
    operand = Operand.read(first)
    kind = kind_of(operand.kind)
    if kind is not None:
        values = [writer.value(operand.kind, text) for text in (operand.value, *others[:1])]
        result = writer.value("", one.result)
        writer.line(f"rt.watch({one.result!r}, ({', '.join(values)},), {result}, {1 << (kind.bits - 1)})")


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
"""By operation, what writes it."""
