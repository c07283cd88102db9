"""The Python of each instruction."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irgym.envs.cse.interpreter.calls import Call
from irgym.envs.cse.interpreter.constants import UNDEFINED
from irgym.envs.cse.interpreter.intrinsics import Site
from irgym.envs.cse.interpreter.layout import Kind, kind_of
from irgym.envs.cse.interpreter.numbers import Value
from irgym.envs.cse.interpreter.operands import Operand
from irgym.envs.cse.interpreter.poison import POISON, Unsupported
from irgym.envs.cse.interpreter.program import Code, Program, ranges
from irgym.envs.cse.interpreter.watching import CASES
from irgym.envs.cse.ir.function import Block
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.syntax import NAME, listed
from irgym.envs.cse.ir.types import first_type

_PHI = re.compile(rf"\[ (?P<value>.+), %(?P<block>{NAME}) \]$")
_CASE = re.compile(rf"i\d+ (?P<value>-?\d+|true|false), label %(?P<block>{NAME})")
_ORDERED = re.compile(r"(?:atomic |volatile )*")
_ADDRESS_MASK = (1 << 64) - 1
_SIGNED = frozenset(("slt", "sle", "sgt", "sge"))
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOATING = {"fadd": "({} + {})", "fsub": "({} - {})", "fmul": "({} * {})"}


class Writer:
    """Writes the Python of a block.

    Args:
        program: The module.
        code: The function.
        block: The block.

    Attributes:
        lines: What is written.
        pool: Objects that it refers to by name.
    """

    def __init__(self, program: Program, code: Code, block: Block) -> None:
        self.program = program
        self.code = code
        self.block = block
        self.number = code.function.numbers[block.name]
        self.lines: list[str] = []
        self.pool: dict[str, Any] = {}
        self._here: set[str] = set()

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(text)

    def result(self, instruction: Instruction, expression: str) -> None:
        """Write that an instruction's result has a value."""
        if not instruction.result:
            self.line(expression)
            return
        place = self.code.numbers[instruction.result]
        self.line(f"v{place} = e[{place}] = {expression}")
        self.seen(instruction.result)

    def seen(self, name: str) -> None:
        """Note that a value is in a local variable from here on."""
        self._here.add(name)

    def pooled(self, value: object) -> str:
        """Return a name for an object."""
        for name, one in self.pool.items():
            if one is value:
                return name
        name = f"k{len(self.pool)}"
        self.pool[name] = value
        return name

    def value(self, kind: str, text: str) -> str:
        """Return the expression of an operand."""
        if text.startswith("%"):
            place = self.code.numbers[text]
            return f"v{place}" if text in self._here else f"e[{place}]"
        found = self.program.constants.value(kind, text)
        if found is POISON:
            return "POISON"
        if isinstance(found, int):
            return str(found)
        if _undefined(found):
            return f"rt.undefined({self.pooled(found)}, {kind!r})"
        return self.pooled(found)

    def operand(self, text: str) -> str:
        """Return the expression of an operand with its type."""
        found = Operand.read(text)
        return self.value(found.kind, found.value)

    def two(self, rest: str) -> tuple[str, str, str]:
        """Return the type of two operands, and their expressions."""
        first, second = listed(rest)[:2]
        operand = Operand.read(first)
        return operand.kind, self.value(operand.kind, operand.value), self.value(operand.kind, second)

    def each(self, kind: str, expression: Callable[[str, str, Kind], str], first: str, second: str) -> str:
        """Return an expression of two operands, one for each element where they are vectors."""
        scalar = kind_of(kind)
        if scalar is not None:
            return expression(first, second, scalar)
        inner = _element(kind)
        return f"tuple([{expression('x', 'y', inner)} for x, y in zip({first}, {second})])"

    def each_one(self, kind: str, expression: Callable[[str, Kind], str], value: str) -> str:
        """Return an expression of one operand, one for each element where it is a vector."""
        scalar = kind_of(kind)
        if scalar is not None:
            return expression(value, scalar)
        inner = _element(kind)
        return f"tuple([{expression('x', inner)} for x in {value}])"

    def goto(self, block: str) -> list[str]:
        """Return the lines that go on with another block."""
        number = self.code.function.numbers[block]
        lines = [f"rt.edges.add(({self.number}, {number}))"] if self.code.main else []
        names: list[str] = []
        values: list[str] = []
        for one in self.code.function.blocks[number].instructions:
            if one.opcode != "phi":
                break
            kind = first_type(one.rest)
            incoming = listed(one.rest[len(kind) :])
            for match in filter(None, map(_PHI.match, incoming)):
                if match["block"].strip('"') == self.block.name:
                    names.append(f"e[{self.code.numbers[one.result]}]")
                    values.append(self.value(kind, match["value"]))
                    break
        if names:
            lines.append(f"{', '.join(names)} = {', '.join(values)}")
        return [*lines, f"return {number}"]


def _undefined(value: Value) -> bool:
    return value is UNDEFINED or (isinstance(value, tuple) and any(map(_undefined, value)))  # pyright: ignore[reportUnknownArgumentType]


def _element(kind: str) -> Kind:
    inner = kind_of(kind[1:-1].partition(" x ")[2]) if kind.startswith("<") else None
    if inner is None:
        raise Unsupported(f"values of type {kind}")
    return inner


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
        return _fast(one, found, (a, b))

    writer.result(one, writer.each(kind, expression, first, second))


def _fast(one: Instruction, found: str, operands: Sequence[str]) -> str:
    flags = " ".join(sorted(one.flags & {"nnan", "ninf", "nsz"}))
    if not flags:
        return found
    turn = "rt.turned()" if "nsz" in flags else "False"
    return f"fast({found}, ({', '.join(operands)},), {flags!r}, {turn})"


def _floating(writer: Writer, one: Instruction) -> None:
    kind, first, second = writer.two(one.rest)

    def expression(a: str, b: str, of: Kind) -> str:
        if one.opcode in _FLOATING:
            found = _FLOATING[one.opcode].format(a, b)
        else:
            found = f"{'quotient' if one.opcode == 'fdiv' else 'remainder'}({a}, {b})"
        return _fast(one, f"single({found})" if of.size == 4 else found, (a, b))

    writer.result(one, writer.each(kind, expression, first, second))


def _negating(writer: Writer, one: Instruction) -> None:
    operand = Operand.read(one.rest)
    value = writer.value(operand.kind, operand.value)
    found = writer.each_one(operand.kind, lambda a, _: _fast(one, f"(-{a})", (a,)), value)
    writer.result(one, found)


def _converting(writer: Writer, one: Instruction) -> None:
    source, _, kind = one.rest.rpartition(" to ")
    operand = Operand.read(source)
    value = writer.value(operand.kind, operand.value)
    flags = " ".join(sorted(one.flags))
    new = kind_of(kind) or _element(kind)
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
                return _fast(one, f"single({a})", (a,))
            case "fpext":
                return _fast(one, f"(+{a})", (a,))
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
    writer.result(one, _fast(one, found, values) if kind and kind.floating else found)


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
    if one.opcode == "insertelement":
        where = f"({writer.operand(places[0])},)"
    else:
        where = f"({', '.join(places)},)"
    writer.result(one, f"inserted({writer.operand(whole)}, {writer.operand(value)}, {where})")


def _shuffling(writer: Writer, one: Instruction) -> None:
    first, second, mask = map(Operand.read, listed(one.rest))
    places = writer.program.constants.value(mask.kind, mask.value)
    if any(not isinstance(place, int) for place in places):
        places = tuple(place if isinstance(place, int) else -1 for place in places)
    both = [writer.value(other.kind, other.value) for other in (first, second)]
    writer.result(one, f"shuffled({both[0]}, {both[1]}, {places!r})")


def _allocating(writer: Writer, one: Instruction) -> None:
    parts = [part for part in listed(one.rest) if not part.startswith(("align ", "addrspace"))]
    size = str(writer.program.layout.size(parts[0].removeprefix("inalloca ")))
    if len(parts) > 1:
        size += f" * {writer.operand(parts[1])}"
    writer.result(one, f"rt.variable({size})")


def _loading(writer: Writer, one: Instruction) -> None:
    ordered = _ORDERED.match(one.rest)
    marks = ordered[0] if ordered else ""
    kind, place = listed(one.rest[len(marks) :])[:2]
    address = writer.operand(place.partition(" syncscope")[0] if "atomic" not in marks else _plain(place))
    if marks:
        writer.line(
            f"rt.event({one.opcode + ' ' + marks!r}, ({address}, {writer.program.layout.size(kind)}))"
        )
    scalar = kind_of(kind)
    low, high = ranges(writer.program.module.entries, one.attached)
    if scalar and scalar.floating:
        name = writer.pooled(scalar)
        writer.result(one, f"float_of(rt.memory.load({address}, {name}), {scalar.size})")
    elif scalar:
        promised = Kind(scalar.name, scalar.size, scalar.bits, low & scalar.mask, high & scalar.mask)
        name = writer.pooled(_shared(writer, promised))
        found = f"rt.memory.load({address}, {name})"
        if low != high:
            found = f"in_range({found}, {promised.low}, {promised.high}, {scalar.mask})"
        writer.result(one, found)
    else:
        writer.result(one, f"rt.loaded({address}, {kind!r})")


def _shared(writer: Writer, kind: Kind) -> Kind:
    """Return the object that stands for a kind in this block."""
    return next((one for one in writer.pool.values() if one == kind and isinstance(one, Kind)), kind)


def _plain(place: str) -> str:
    """Return what is accessed, without what orders the access."""
    words = place.split(" ")
    return " ".join(words[:2])


def _storing(writer: Writer, one: Instruction) -> None:
    ordered = _ORDERED.match(one.rest)
    marks = ordered[0] if ordered else ""
    value, place = listed(one.rest[len(marks) :])[:2]
    operand = Operand.read(value)
    address = writer.operand(_plain(place) if "atomic" in marks else place)
    scalar = kind_of(operand.kind)
    found = writer.value(operand.kind, operand.value)
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
        writer.line(f"rt.event({one.opcode + ' ' + marks!r}, ({address}, {size}))")


def _fencing(writer: Writer, one: Instruction) -> None:
    writer.line(f"rt.event({'fence ' + one.rest!r}, ())")


def _exchanging(writer: Writer, one: Instruction) -> None:
    rest = one.rest.removeprefix("weak ").removeprefix("volatile ")
    place, old, new = listed(rest)[:3]
    operand = Operand.read(old)
    scalar = kind_of(operand.kind)
    if scalar is None or scalar.floating:
        raise Unsupported(f"cmpxchg of {operand.kind}")
    second = Operand.read(" ".join(new.split(" ")[:2]))
    values = f"{writer.value(operand.kind, operand.value)}, {writer.value(second.kind, second.value)}"
    writer.result(one, f"rt.exchanged({writer.operand(place)}, {writer.pooled(scalar)}, {values})")


def _modifying(writer: Writer, one: Instruction) -> None:
    words = one.rest.removeprefix("volatile ")
    name, _, rest = words.partition(" ")
    place, value = listed(rest)[:2]
    operand = Operand.read(" ".join(value.split(" ")[:2]))
    scalar = kind_of(operand.kind)
    if scalar is None or scalar.floating:
        raise Unsupported(f"atomicrmw of {operand.kind}")
    other = writer.value(operand.kind, operand.value)
    writer.result(one, f"rt.modified({name!r}, {writer.operand(place)}, {writer.pooled(scalar)}, {other})")


def _calling(writer: Writer, one: Instruction) -> None:
    call = Call.read(one.rest, writer.program.module)
    values = [writer.value(other.kind, other.value) for other in call.operands]
    if call.callee.startswith("%"):
        values.insert(0, writer.value("ptr", call.callee))
    taken = "".join(f"{value}, " for value in values)
    name = writer.pooled(Site.of(call))
    if one.opcode == "call":
        found = f"rt.call({name}, ({taken}))"
        kind = kind_of(call.returns)
        floating = bool(kind and kind.floating)
        writer.result(one, _fast(one, found, values) if one.flags and floating else found)
        return
    normal, unwind = call.targets[-2:]
    writer.line("try:")
    writer.result(one, f"rt.call({name}, ({taken}), True)")
    writer.lines[-1] = f"  {writer.lines[-1]}"
    writer.line("except Unwound:")
    writer.lines += [f"  {text}" for text in writer.goto(unwind)]
    writer.lines += writer.goto(normal)


def _landing(writer: Writer, one: Instruction) -> None:
    writer.result(one, f"rt.landed({first_type(one.rest)!r})")


def _resuming(writer: Writer, _: Instruction) -> None:
    writer.line("rt.unwinds()")


def _branching(writer: Writer, one: Instruction) -> None:
    parts = listed(one.rest)
    if len(parts) == 1:
        writer.lines += writer.goto(one.targets[0])
        return
    labels = [part.removeprefix("label %").strip('"') for part in parts[1:]]
    writer.line(f"if {writer.operand(parts[0])}:")
    writer.lines += [f"  {text}" for text in writer.goto(labels[0])]
    writer.lines += writer.goto(labels[1])


def _switching(writer: Writer, one: Instruction) -> None:
    head, _, cases = one.rest.partition("[")
    value, default = listed(head.strip())
    operand = Operand.read(value)
    found = writer.value(operand.kind, operand.value)
    if writer.code.main:
        writer.line(f"rt.seen['switch {writer.number}'] = ({found}, {found})")
    writer.line(f"c = decided({found})")
    for match in _CASE.finditer(cases):
        case = writer.program.constants.value(operand.kind, match["value"])
        writer.line(f"if c == {case}:")
        writer.lines += [f"  {text}" for text in writer.goto(match["block"].strip('"'))]
    writer.lines += writer.goto(default.removeprefix("label %").strip('"'))


def _returning(writer: Writer, one: Instruction) -> None:
    writer.line(f"rt.result = {'None' if one.rest == 'void' else writer.operand(one.rest)}")
    writer.line("return -1")


def _unreachable(writer: Writer, _: Instruction) -> None:
    writer.line("raise Undefined('unreachable code')")


def _skipping(writer: Writer, one: Instruction) -> None:
    place = writer.code.numbers[one.result]
    writer.line(f"v{place} = e[{place}]")  # whoever comes here has set it
    writer.seen(one.result)


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


Write = Callable[[Writer, Instruction], None]

WRITERS: Mapping[str, Write] = {
    **dict.fromkeys(("add", "sub", "mul"), _wrapping),
    **dict.fromkeys(("and", "or", "xor"), _bitwise),
    **dict.fromkeys(("shl", "lshr", "ashr"), _shifting),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), _dividing),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fdiv", "frem"), _floating),
    **dict.fromkeys(("trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi"), _converting),
    **dict.fromkeys(("uitofp", "sitofp", "ptrtoint", "ptrtoaddr", "inttoptr", "bitcast"), _converting),
    **dict.fromkeys(("call", "invoke"), _calling),
    **dict.fromkeys(("extractelement", "extractvalue"), _extracting),
    **dict.fromkeys(("insertelement", "insertvalue"), _inserting),
    "fneg": _negating,
    "icmp": _comparing,
    "fcmp": _comparing_floats,
    "select": _choosing,
    "freeze": _freezing,
    "getelementptr": _addressing,
    "shufflevector": _shuffling,
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
"""By operation, what writes it."""
