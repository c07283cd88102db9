"""Random functions full of flags, and choices in them, run on all inputs by an interpreter.

Functions compute on four-bit numbers, so that all inputs are tried. A choice may change a poison result, but
no other, and no proof may be refuted.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from fuzz.fuzzer import Tally
from irgym.envs.cse.checking.proving.pairs import Pairs
from irgym.envs.cse.checking.proving.proofs import Proofs, proved
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.syntax import listed

EACH = 8
"""Functions of a seed."""

CHOICES = 3
"""Choices in a function."""

BITS = 4
SIZE = 1 << BITS
ARGUMENTS = ("%a", "%b")

Value = int | None
"""A number; None is poison."""

FLAGS: Mapping[str, tuple[str, ...]] = {
    "add": ("nuw", "nsw"),
    "sub": ("nuw", "nsw"),
    "mul": ("nuw", "nsw"),
    "shl": ("nuw", "nsw"),
    "lshr": ("exact",),
    "ashr": ("exact",),
    "or": ("disjoint",),
    "and": (),
    "xor": (),
    "icmp": ("samesign",),
}
COMMUTATIVE = ("add", "mul", "or", "and", "xor")


def drawn(rng: np.random.Generator) -> str:
    """Return a function whose second block repeats the first with other flags."""
    first: list[str] = []
    second: list[str] = []
    names: list[tuple[str, str]] = [(name, name) for name in ARGUMENTS]
    for number in range(int(rng.integers(2, 7))):
        opcode = str(rng.choice([*FLAGS]))
        left, right = (names[int(rng.integers(len(names)))] for _ in range(2))
        constant = str(int(rng.integers(-8, 8)))
        if rng.random() < 0.3:
            right = constant, constant
        for place, lines in enumerate((first, second)):
            flags = [flag for flag in FLAGS[opcode] if rng.random() < 0.5]
            operands = [left[place], right[place]]
            if place and opcode in COMMUTATIVE and rng.random() < 0.3:
                operands.reverse()
            name = f"%{'xy'[place]}{number}"
            if opcode == "icmp":
                head = " ".join(["icmp", *flags, "slt"])
                lines.append(f"  {name}.c = {head} i{BITS} {operands[0]}, {operands[1]}")
                lines.append(f"  {name} = zext i1 {name}.c to i{BITS}")
            else:
                head = " ".join([opcode, *flags])
                lines.append(f"  {name} = {head} i{BITS} {operands[0]}, {operands[1]}")
        names.append((f"%x{number}", f"%y{number}"))
    for name, lines in (("x", first), ("y", second)):
        # What is frozen shows whether poison reached it; what is left shows all else.
        lines.append(f"  %{name}f = freeze i{BITS} {names[-1]['xy'.index(name)]}")
    return "\n".join(
        [
            f"define void @f(i{BITS} %a, i{BITS} %b, i1 %c) {{",
            "entry:",
            *first,
            "  br i1 %c, label %then, label %end",
            "then:",
            *second,
            "  br label %end",
            "end:",
            "  ret void",
            "}",
        ]
    )


def results(lines: Sequence[Instruction], inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Return the result of each instruction."""
    known = dict(inputs)
    for line in lines:
        if line.result and line.opcode != "freeze":
            known[line.result] = _computed(line, known)
    return known


def _computed(line: Instruction, known: Mapping[str, Value]) -> Value:
    if line.opcode == "zext":
        return _of(line.rest.split(" ")[1], known)
    first, second = (_of(part.rpartition(" ")[2], known) for part in listed(line.rest))
    if first is None or second is None:
        return None
    signed = [number - SIZE if number >= SIZE // 2 else number for number in (first, second)]
    if line.opcode == "icmp":
        differ = (signed[0] < 0) != (signed[1] < 0)
        return None if "samesign" in line.flags and differ else int(signed[0] < signed[1])
    return _arithmetic(line.opcode, line.flags, first, second, signed)


def _arithmetic(opcode: str, flags: frozenset[str], first: int, second: int, signed: Sequence[int]) -> Value:
    """Return the result of an operation, after the LLVM Language Reference Manual."""
    if opcode in ("shl", "lshr", "ashr"):
        if second >= BITS:
            return None
        if opcode == "shl":
            exact, exact_signed = first << second, signed[0] << second
        else:
            exact = exact_signed = (first if opcode == "lshr" else signed[0]) >> second
            if "exact" in flags and first & ((1 << second) - 1):
                return None
            return exact % SIZE
    elif opcode in ("and", "or", "xor"):
        if "disjoint" in flags and first & second:
            return None
        return {"and": first & second, "or": first | second, "xor": first ^ second}[opcode]
    else:
        operation = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[opcode]
        exact, exact_signed = operation(first, second), operation(*signed)
    if "nuw" in flags and not 0 <= exact < SIZE:
        return None
    if "nsw" in flags and not -SIZE // 2 <= exact_signed < SIZE // 2:
        return None
    return exact % SIZE


def _of(text: str, known: Mapping[str, Value]) -> Value:
    return known[text] if text.startswith("%") else int(text) % SIZE


def wrong(function: Analysed, chosen: Sequence[int]) -> str:
    """Return a result that a choice makes wrong, and an input that shows it; empty if there is none."""
    replaced = dict(pair for place in chosen for pair in function.candidates[place].replaced)
    before = [instruction for _, instruction in function.function]
    after_text = Function.read("@f", function.function.header, function.sharing.lines(chosen))
    after = [instruction for _, instruction in after_text]
    for numbers in product(range(SIZE), repeat=len(ARGUMENTS)):
        inputs: dict[str, Value] = dict(zip(ARGUMENTS, numbers, strict=True))
        first, second = results(before, inputs), results(after, inputs)
        for name, value in first.items():
            if value is not None and second[replaced.get(name, name)] != value:
                return f"{name} on {numbers}: {value} became {second[replaced.get(name, name)]}"
    return ""


def proofs(module: ModuleText, function: Analysed, chosen: Sequence[int]) -> Proofs:
    """Return the proofs of a choice."""
    replaced = dict(pair for place in chosen for pair in function.candidates[place].replaced)
    header = function.function.header
    after = Function.read("@f", header, function.sharing.lines(chosen))
    return proved(Pairs(function.function, after, replaced, Effects(module, header)), replaced, 64)


def run(seed: int) -> Tally:
    """Try choices in some functions."""
    rng, tally = np.random.default_rng(seed), Tally()
    for _ in range(EACH):
        text = drawn(rng)
        module = ModuleText.read(text)
        function = analysed(module, "@f")
        for _ in range(CHOICES):
            chosen = [place for place in range(len(function.candidates)) if rng.random() < 0.5]
            said = proofs(module, function, chosen)
            fault = wrong(function, chosen) or (f"refuted: {said.refuted}" if said.refuted else "")
            names = " ".join(function.candidates[place].name for place in chosen)
            tally.add("wrong" if fault else "right", fault and f"sharing {names}: {fault}\n{text}")
            tally.notes.update({"pairs": said.pairs, "proved by comparison": said.same})
            tally.notes.update({"proved by z3": said.solved, "executed only": said.open})
    return tally
