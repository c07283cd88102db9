"""The interpreter behind the checks of `cse`, compared with LLVM's machine code.

Random functions of integers and floating-point numbers, with every flag that may make poison, are
interpreted. Where the interpreter finds their behaviour defined, the machine code must return the same bits.
LLVM leaves open the payload of NaN, for which functions return one number, and the sign of zeros under `nsz`
and in `minnum`, which are left out.
"""

import ctypes
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fuzz.fuzzer import Tally
from irgym.envs.cse.compiling.llvm import read
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.machine import Machine
from irgym.llvmir.interpreter.making import ARGUMENTS, SLOTS
from irgym.llvmir.interpreter.poison import POISON, Endless, Undefined
from irgym.llvmir.interpreter.program import Program
from irgym.llvmir.ir.modules import ModuleText

EACH = 20
"""Functions of a seed."""

INPUTS = 24
"""Inputs of a function."""

LENGTH = 14
"""Random instructions of a function."""

WIDTHS = (1, 7, 8, 16, 32, 33, 64)
FLOATS = ("float", "double")
PARAMETERS = ("i64", "i64", "i32", "i8", "double", "float")
BINARY = {
    "add": ("", "nsw", "nuw", "nuw nsw"),
    "sub": ("", "nsw", "nuw", "nuw nsw"),
    "mul": ("", "nsw", "nuw", "nuw nsw"),
    "shl": ("", "nsw", "nuw", "nuw nsw"),
    "lshr": ("", "exact"),
    "ashr": ("", "exact"),
    "udiv": ("", "exact"),
    "sdiv": ("", "exact"),
    "urem": ("",),
    "srem": ("",),
    "and": ("",),
    "or": ("", "disjoint"),
    "xor": ("",),
}
COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_COMPARISONS = (
    "oeq",
    "one",
    "ogt",
    "olt",
    "ole",
    "ord",
    "ueq",
    "une",
    "ugt",
    "ult",
    "uno",
    "true",
    "false",
)
FLAGS = ("", "nnan", "ninf", "nnan ninf")
INTRINSICS = {
    "ctpop": 1,
    "bitreverse": 1,
    "abs": 1,
    "ctlz": 1,
    "cttz": 1,
    "smax": 2,
    "smin": 2,
    "umax": 2,
    "umin": 2,
    "uadd.sat": 2,
    "sadd.sat": 2,
    "usub.sat": 2,
    "ssub.sat": 2,
    "fshl": 3,
    "fshr": 3,
}
WITH_FLAG = frozenset(("abs", "ctlz", "cttz"))
FLOAT_INTRINSICS = ("fabs", "sqrt", "floor", "ceil", "trunc", "copysign")
SPECIAL_INTEGERS = (
    0,
    1,
    2,
    3,
    7,
    8,
    31,
    32,
    63,
    64,
    127,
    128,
    255,
    (1 << 31) - 1,
    1 << 31,
    (1 << 63) - 1,
    1 << 63,
)
SPECIAL_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.5,
    1e-320,
    1e-40,
    3.4e38,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
)


@dataclass
class Writer:
    """Writes a random function.

    Attributes:
        rng: Source of randomness.
        pool: Names of the values so far, by type.
    """

    rng: random.Random
    pool: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    lines: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])

    def function(self, length: int) -> str:
        """Return a module with a single function, `@f`, whose result mixes all its values."""
        for place, kind in enumerate(PARAMETERS):
            self.pool.setdefault(kind, []).append(f"%a{place}")
        steps: tuple[Callable[[], None], ...] = (
            self._binary,
            self._binary,
            self._compared,
            self._resized,
            self._chosen,
            self._called,
            self._float,
            self._float_compared,
            self._float_called,
            self._converted,
        )
        for _ in range(length):
            self.rng.choice(steps)()
        self._returned()
        parameters = ", ".join(f"{kind} %a{place}" for place, kind in enumerate(PARAMETERS))
        body = "\n".join(f"  {line}" for line in self.lines)
        return "\n".join((*sorted(self.declared), f"define i64 @f({parameters}) {{", "entry:", body, "}"))

    def _made(self, kind: str, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.pool.setdefault(kind, []).append(name)
        return name

    def _integer(self) -> str:
        return self.rng.choice([kind for kind in self.pool if kind.startswith("i")])

    def _value(self, kind: str) -> str:
        known = self.pool.get(kind, [])
        if known and self.rng.random() < 0.75:
            return self.rng.choice(known)
        if kind in FLOATS:
            return self.rng.choice(("0.0", "-0.0", "1.0", "-2.5", "0x7FF0000000000000", "0x3FE0000000000000"))
        width = int(kind[1:])
        number = self.rng.choice(SPECIAL_INTEGERS) & ((1 << width) - 1)
        return ("true" if number else "false") if width == 1 else str(number)

    def _binary(self) -> None:
        opcode = self.rng.choice(tuple(BINARY))
        flags = self.rng.choice((*BINARY[opcode], "", "", ""))
        kind = self._integer()
        first, second = self._value(kind), self._value(kind)
        self._made(kind, f"{opcode} {flags} {kind} {first}, {second}".replace("  ", " "))

    def _compared(self) -> None:
        kind = self._integer()
        flags = self.rng.choice(("", "samesign "))
        what = self.rng.choice(COMPARISONS)
        self._made("i1", f"icmp {flags}{what} {kind} {self._value(kind)}, {self._value(kind)}")

    def _resized(self) -> None:
        kind = self._integer()
        width, wanted = int(kind[1:]), self.rng.choice(WIDTHS)
        if wanted == width:
            return
        word = self.rng.choice(
            ("zext", "sext", "zext nneg") if wanted > width else ("trunc", "trunc nsw", "trunc nuw")
        )
        self._made(f"i{wanted}", f"{word} {kind} {self._value(kind)} to i{wanted}")

    def _chosen(self) -> None:
        kind = self.rng.choice(tuple(self.pool))
        values = f"{kind} {self._value(kind)}, {kind} {self._value(kind)}"
        self._made(kind, f"select i1 {self._value('i1')}, {values}")

    def _called(self) -> None:
        kind, name = self._integer(), self.rng.choice(tuple(INTRINSICS))
        kinds = [kind] * INTRINSICS[name]
        arguments = [f"{kind} {self._value(kind)}" for kind in kinds]
        if name in WITH_FLAG:
            kinds.append("i1")
            arguments.append(f"i1 {self.rng.choice(('true', 'false'))}")
        self.declared.add(f"declare {kind} @llvm.{name}.{kind}({', '.join(kinds)})")
        self._made(kind, f"call {kind} @llvm.{name}.{kind}({', '.join(arguments)})")

    def _float(self) -> None:
        kind, opcode = (
            self.rng.choice(FLOATS),
            self.rng.choice(("fadd", "fsub", "fmul", "fdiv", "frem", "fneg")),
        )
        flags = self.rng.choice(FLAGS)
        operands = self._value(kind) if opcode == "fneg" else f"{self._value(kind)}, {self._value(kind)}"
        self._made(kind, f"{opcode} {flags} {kind} {operands}".replace("  ", " "))

    def _float_compared(self) -> None:
        kind, what = self.rng.choice(FLOATS), self.rng.choice(FLOAT_COMPARISONS)
        self._made("i1", f"fcmp {what} {kind} {self._value(kind)}, {self._value(kind)}")

    def _float_called(self) -> None:
        kind, name = self.rng.choice(FLOATS), self.rng.choice(tuple(FLOAT_INTRINSICS))
        suffix = "f32" if kind == "float" else "f64"
        operands = [self._value(kind)]
        if name == "copysign":  # the sign of a NaN that was computed is not defined
            operands.append("%a5" if kind == "float" else "%a4")
        self.declared.add(f"declare {kind} @llvm.{name}.{suffix}({', '.join([kind] * len(operands))})")
        arguments = ", ".join(f"{kind} {operand}" for operand in operands)
        self._made(kind, f"call {kind} @llvm.{name}.{suffix}({arguments})")

    def _converted(self) -> None:
        word = self.rng.choice(("sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc"))
        if word == "fpext":
            self._made("double", f"fpext float {self._value('float')} to double")
        elif word == "fptrunc":
            self._made("float", f"fptrunc double {self._value('double')} to float")
        else:
            whole, fractional = self._integer(), self.rng.choice(FLOATS)
            first, second = (whole, fractional) if word.endswith("tofp") else (fractional, whole)
            self._made(second, f"{word} {first} {self._value(first)} to {second}")

    def _returned(self) -> None:
        """Return a mixture of some values, with one NaN for all NaNs."""
        mixed = "0"
        for kind in list(self.pool):
            bits = {"float": "i32", "double": "i64"}.get(kind, kind)
            for name in self.pool[kind][-4:]:
                value = name
                if kind in FLOATS:
                    lost = self._made("i1", f"fcmp uno {kind} {name}, 0.0")
                    raw = self._made(bits, f"bitcast {kind} {name} to {bits}")
                    value = self._made(bits, f"select i1 {lost}, {bits} 12345, {bits} {raw}")
                if bits != "i64":
                    value = self._made("i64", f"zext {bits} {value} to i64")
                rotated = self._made("i64", f"mul i64 {mixed}, 6364136223846793005")
                mixed = self._made("i64", f"xor i64 {rotated}, {value}")
        self.lines.append(f"ret i64 {mixed}")


@dataclass(frozen=True)
class Given:
    """A world for a function that reads nothing but its arguments."""

    arguments: tuple[int, ...]
    alone: bool = True
    changed: bool = False

    def bits(self, key: int, kind: Kind) -> int:
        """Return the bits of an argument."""
        del kind
        return self.arguments[(key - ARGUMENTS) // SLOTS]

    def writes(self, key: int, pointer: bool) -> bool:
        """Write nothing."""
        del key, pointer
        return False

    def throws(self, key: int) -> bool:
        """Throw nothing."""
        del key
        return False


TYPES: dict[str, Any] = {
    "i64": ctypes.c_uint64,
    "i32": ctypes.c_uint32,
    "i8": ctypes.c_uint8,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
}


def drawn(rng: random.Random) -> tuple[Any, ...]:
    """Return random arguments as ctypes values."""

    def argument(kind: str) -> Any:
        if kind in FLOATS:
            return rng.choice((*SPECIAL_FLOATS, rng.uniform(-100, 100), rng.uniform(-1e9, 1e9)))
        number = rng.choice(
            (rng.choice(SPECIAL_INTEGERS), rng.getrandbits(64), rng.randrange(70), -rng.randrange(70))
        )
        return number & ((1 << int(kind[1:])) - 1)

    return tuple(TYPES[kind](argument(kind)) for kind in PARAMETERS)


def interpreted(text: str, inputs: list[tuple[Any, ...]]) -> Iterator[int | None]:
    """Yield the result of the function for each input; None for undefined behaviour."""
    module = ModuleText.read(text)
    program = Program(module)
    code = program.code("@f")
    for arguments in inputs:
        bits = tuple(int.from_bytes(bytes(value), "little") for value in arguments)
        try:
            result = Machine(program, Given(bits), 10_000).run(code).result
        except (Undefined, Endless):
            yield None
            continue
        yield None if result is POISON else int(result)  # pyright: ignore


def compiled(text: str) -> tuple[Any, Any]:
    """Return the unoptimised machine code of the function, and the engine that owns it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *(TYPES[kind] for kind in PARAMETERS))(
        engine.get_function_address("f")
    ), engine


def run(seed: int) -> Tally:
    """Compare random functions; the cases are their runs."""
    rng, tally = random.Random(seed), Tally()
    for _ in range(EACH):
        text = str(read(Writer(rng).function(LENGTH), "a random function"))
        drawings = [drawn(rng) for _ in range(INPUTS)]
        native, keep = compiled(text)
        for arguments, mine in zip(drawings, interpreted(text, drawings), strict=True):
            result = None if mine is None else native(*arguments)
            outcome = "undefined" if mine is None else "equal" if result == mine else "different"
            values = [argument.value for argument in arguments]
            said = f"{result} in machine code, {mine} in the interpreter, of {values}\n{text}"
            tally.add(outcome, said if outcome == "different" else "")
        del native, keep
    return tally
