"""Expressions as bit-vector terms of z3: the value, and the condition under which it is poison.

Memory and floating-point arithmetic are uninterpreted functions, which only return equal results for equal
arguments. Leaves may be poison, but never undef.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irgym.envs.cse.checking.proving.arithmetic import ARITHMETIC, COMPARED, resized
from irgym.envs.cse.checking.proving.lanes import UnsupportedError, bits_of_lanes, elements_of
from irgym.envs.cse.checking.proving.pairs import operands_of
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.syntax import listed
from irgym.llvmir.ir.types import CASTS, first_type, type_of

_REWRITES = frozenset(("nsz", "arcp", "contract", "afn", "reassoc"))
"""Flags under which a result may be rounded differently; the other arithmetic flags make it poison."""

_STRICT = (
    "smax",
    "smin",
    "umax",
    "umin",
    "abs",
    "ctpop",
    "ctlz",
    "cttz",
    "bswap",
    "bitreverse",
    "fshl",
    "fshr",
)
_STRICT_PREFIXES = tuple(f"@llvm.{name}." for name in _STRICT)
"""Intrinsics whose result is poison if an argument is."""


@dataclass(frozen=True)
class Scalar:
    """A scalar: z3 terms for its bits and for whether it is poison."""

    bits: Any
    poison: Any


Value = tuple[Scalar, ...]
"""The scalars of a value."""


class Terms:
    """Translates the expressions of a function.

    Args:
        z3: The module `z3`.
        made: The instruction that defines each result.
        leaf: Says whether a result is a leaf.
        memory: For a load, the result of an equal load, whose memory state it shares.
        pointer: Width of a pointer in bits.
        chosen: Returns the value of a frozen poison; by default an unknown value.

    Attributes:
        loose: Whether a term contains uninterpreted functions, so that a counterexample may be spurious.
    """

    def __init__(
        self,
        z3: Any,
        made: Mapping[str, Instruction],
        leaf: Callable[[Instruction | None], bool],
        memory: Mapping[str, str],
        pointer: int,
        chosen: Callable[[str], Value] | None = None,
    ) -> None:
        self.loose = False
        self._z3 = z3
        self._made = made
        self._leaf = leaf
        self._memory = memory
        self._pointer = pointer
        self._chosen = chosen
        self._known: dict[str, Value] = {}

    def of(self, name: str) -> Value:
        """Return the terms of a result.

        Raises:
            UnsupportedError: It depends on an expression without translation.
        """
        waiting = [name]
        while waiting:
            current = waiting[-1]
            instruction = self._made[current]
            missing = [
                other
                for other in operands_of(instruction)
                if other not in self._known and not self._leaf(self._made.get(other))
            ]
            waiting += missing
            if not missing:
                waiting.pop()
                self._known[current] = self._promising(instruction, self._value(instruction))
        return self._known[name]

    def _value(self, instruction: Instruction) -> Value:
        parts = listed(instruction.rest)
        match instruction.opcode:
            case "load":
                return self._loaded(instruction, parts)
            case "select":
                return self._selected(*map(self._typed, parts))
            case "freeze":
                return self._frozen(instruction, parts[0])
            case "getelementptr":
                return self._address(instruction, parts)
            case "call":
                return self._returned(instruction)
            case "extractvalue":
                return self._extracted(parts)
            case "icmp":
                relation, _, first = parts[0].partition(" ")
                return self._compared(relation, instruction.flags, first, parts[1])
            case opcode if opcode in CASTS:
                return self._converted(instruction)
            case opcode if opcode in ARITHMETIC:
                return self._computed(instruction, parts)
            case opcode if opcode in ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fcmp"):
                return self._rounded(instruction, parts)
            case opcode:
                raise UnsupportedError(f"the operation {opcode}")

    def _typed(self, text: str) -> Value:
        """Return the terms of an operand with its type."""
        kind = first_type(text)
        return self._operand(kind, text[len(kind) :].strip())

    def _operand(self, kind: str, text: str) -> Value:
        z3 = self._z3
        if text.startswith("%"):
            return self._known[text] if text in self._known else self._named(text, kind)
        widths = bits_of_lanes(kind, self._pointer)
        no = z3.BoolVal(False)
        if text == "poison":
            return tuple(Scalar(z3.BitVecVal(0, width), z3.BoolVal(True)) for width in widths)
        if text in ("zeroinitializer", "null", "false", "true"):
            return tuple(Scalar(z3.BitVecVal(int(text == "true"), width), no) for width in widths)
        if text.lstrip("-").isdigit():
            return (Scalar(z3.BitVecVal(int(text), widths[0]), no),)
        if text.startswith("splat ("):
            return self._typed(text.removeprefix("splat (").removesuffix(")")) * len(widths)
        if text.startswith("<") and kind.startswith("<"):
            return sum((self._typed(element) for element in listed(text[1:-1])), start=())
        if "undef" in text or "poison" in text or text.startswith("addrspace("):
            raise UnsupportedError(f"the operand {text}")
        # An address, a constant expression or a floating-point number: equal texts are equal values.
        return tuple(
            Scalar(z3.BitVec(f"{kind} {text} {place}", width), no) for place, width in enumerate(widths)
        )

    def _named(self, name: str, kind: str) -> Value:
        z3 = self._z3
        return tuple(
            Scalar(z3.BitVec(f"{name} {place}", width), z3.Bool(f"{name} {place} poison"))
            for place, width in enumerate(bits_of_lanes(kind, self._pointer))
        )

    def _loaded(self, load: Instruction, parts: Sequence[str]) -> Value:
        """Return the value at an address; the name of a load stands for the memory state."""
        widths = bits_of_lanes(parts[0], self._pointer)
        memory = self._memory.get(load.result, load.result)
        return self._unknown(f"load {parts[0]} {memory}", load.flags, self._typed(parts[1]), widths)

    def _selected(self, condition: Value, yes: Value, no: Value) -> Value:
        z3 = self._z3
        conditions = condition * len(yes) if len(condition) == 1 else condition
        return tuple(
            Scalar(
                z3.If(test.bits == 1, first.bits, second.bits),
                z3.Or(test.poison, z3.If(test.bits == 1, first.poison, second.poison)),
            )
            for test, first, second in zip(conditions, yes, no, strict=True)
        )

    def _frozen(self, instruction: Instruction, operand: str) -> Value:
        z3 = self._z3
        name, choose = instruction.result, self._chosen
        chosen = choose(name) if choose else self._named(name, first_type(operand))
        return tuple(
            Scalar(z3.If(scalar.poison, any_.bits, scalar.bits), z3.BoolVal(False))
            for scalar, any_ in zip(self._typed(operand), chosen, strict=True)
        )

    def _extracted(self, parts: Sequence[str]) -> Value:
        if len(parts) != 2:
            raise UnsupportedError("a nested extractvalue")
        place, kinds = int(parts[1]), elements_of(first_type(parts[0]))
        counts = [len(bits_of_lanes(kind, self._pointer)) for kind in kinds]
        begin = sum(counts[:place])
        return self._typed(parts[0])[begin : begin + counts[place]]

    def _compared(self, relation: str, flags: frozenset[str], first: str, second: str) -> Value:
        kind, z3 = first_type(first), self._z3
        pairs = zip(self._typed(first), self._operand(kind, second), strict=True)
        found: list[Scalar] = []
        for left, right in pairs:
            poison = [left.poison, right.poison]
            if "samesign" in flags:
                poison.append((left.bits < 0) != (right.bits < 0))
            holds = COMPARED[relation](z3, left.bits, right.bits)
            found.append(Scalar(z3.If(holds, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)), z3.Or(poison)))
        return tuple(found)

    def _computed(self, instruction: Instruction, parts: Sequence[str]) -> Value:
        kind, operation = first_type(parts[0]), ARITHMETIC[instruction.opcode]
        found: list[Scalar] = []
        for first, other in zip(self._typed(parts[0]), self._operand(kind, parts[1]), strict=True):
            bits, poison = operation(self._z3, instruction.flags, first.bits, other.bits)
            found.append(Scalar(bits, self._z3.Or([first.poison, other.poison, *poison])))
        return tuple(found)

    def _converted(self, instruction: Instruction) -> Value:
        operand, _, kind = instruction.rest.rpartition(" to ")
        taken, widths = self._typed(operand), bits_of_lanes(kind, self._pointer)
        if len(taken) != len(widths):
            raise UnsupportedError("a conversion of a vector to another number of elements")
        found: list[Scalar] = []
        for scalar, width in zip(taken, widths, strict=True):
            whole = resized(self._z3, instruction, scalar.bits, width)
            if whole is None:
                name = f"{instruction.opcode} {first_type(operand)} to {kind}"
                found += self._unknown(name, instruction.flags, (scalar,), (width,))
            else:
                found.append(Scalar(whole[0], self._z3.Or([scalar.poison, *whole[1]])))
        return tuple(found)

    def _rounded(self, instruction: Instruction, parts: Sequence[str]) -> Value:
        relation = ""
        if instruction.opcode == "fcmp":
            relation, _, first = parts[0].partition(" ")
            parts = [first, *parts[1:]]
        kind = first_type(parts[0])
        others = [self._operand(kind, text) for text in parts[1:]]
        found: list[Scalar] = []
        for scalars in zip(self._typed(parts[0]), *others, strict=True):
            width = 1 if relation else scalars[0].bits.size()
            name = f"{instruction.opcode} {relation} {kind}"
            found += self._unknown(name, instruction.flags, scalars, (width,))
        return tuple(found)

    def _address(self, instruction: Instruction, parts: Sequence[str]) -> Value:
        taken = [self._typed(part) for part in parts[1:]]
        if any(len(value) != 1 for value in taken):
            raise UnsupportedError("vectors of addresses")
        name = f"getelementptr {parts[0]} {' '.join(map(first_type, parts[1:]))}"
        return self._unknown(name, instruction.flags, [value[0] for value in taken], (self._pointer,))

    def _returned(self, call: Instruction) -> Value:
        kind = _result_of(call)
        head, _, rest = call.rest.partition(f"{call.callee}(")
        if not call.callee or rest.endswith("]"):
            raise UnsupportedError("an indirect call, or a call with operand bundles")
        taken: list[Scalar] = []
        shape = [head, call.callee]
        for argument in listed(rest[: rest.rindex(")")]):
            words = argument.rpartition(" ")
            if words[2].startswith("%"):
                taken += self._operand(first_type(argument), words[2])
            shape.append(words[0] if words[2].startswith("%") else argument)
        name = f"{' '.join(shape)} {rest[rest.rindex(')') :]}"
        widths = bits_of_lanes(kind, self._pointer)
        if call.callee.startswith(_STRICT_PREFIXES):
            return self._unknown(name, call.flags, taken, widths)
        # The effect of poison on it is unknown: poison is an argument like any other.
        return self._unknown(name, call.flags, list(map(self._with_poison, taken)), widths)

    def _with_poison(self, scalar: Scalar) -> Scalar:
        """Encode poison in a scalar: the first bit marks poison, and the other bits are zeros then."""
        z3 = self._z3
        mark = z3.If(scalar.poison, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        bits = z3.If(scalar.poison, z3.BitVecVal(0, scalar.bits.size()), scalar.bits)
        return Scalar(z3.Concat(mark, bits), z3.BoolVal(False))

    def _unknown(
        self, name: str, flags: frozenset[str], taken: Sequence[Scalar], widths: Sequence[int]
    ) -> Value:
        """Return the results of an uninterpreted function."""
        z3 = self._z3
        self.loose = True
        sorts = [scalar.bits.sort() for scalar in taken]
        bits = [scalar.bits for scalar in taken]
        rewritten = " ".join(sorted(flags & _REWRITES))
        promised = [
            z3.Function(f"{name} {promise} poison", *sorts, z3.BoolSort())(*bits)
            for promise in ("", *sorted(flags - _REWRITES))
        ]
        poison = z3.Or([*(scalar.poison for scalar in taken), *promised])
        return tuple(
            Scalar(z3.Function(f"{name} {rewritten} {place}", *sorts, z3.BitVecSort(width))(*bits), poison)
            for place, width in enumerate(widths)
        )

    def _promising(self, instruction: Instruction, value: Value) -> Value:
        """Return a value that is also poison where a promise of its metadata does not hold."""
        z3 = self._z3
        for promise in instruction.promised:
            self.loose = True
            value = tuple(
                Scalar(
                    scalar.bits,
                    z3.Or(
                        scalar.poison,
                        z3.Function(f"{promise} broken", scalar.bits.sort(), z3.BoolSort())(scalar.bits),
                    ),
                )
                for scalar in value
            )
        return value


def _result_of(call: Instruction) -> str:
    head = call.rest.partition(call.callee)[0].strip()
    if head.endswith("}"):
        return head[head.index("{") :]
    return type_of(call)
