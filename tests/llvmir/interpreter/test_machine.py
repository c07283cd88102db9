"""The interpreter computes what LLVM's machine code does, and tracks poison."""

import ctypes
from dataclasses import dataclass, field

import pytest

from irgym.envs.cse.compiling import llvm
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.machine import Machine
from irgym.llvmir.interpreter.making import ARGUMENTS, SLOTS
from irgym.llvmir.interpreter.poison import POISON, Undefined
from irgym.llvmir.interpreter.program import Program
from irgym.llvmir.interpreter.traces import Differs, Trace
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.worlds.numbers import boundary, mixed


@dataclass
class Fixed:
    """A world with given values; all others are 0."""

    values: dict[int, int] = field(default_factory=dict)
    alone: bool = False
    changed: bool = False

    def bits(self, key: int, kind: Kind) -> int:
        return self.values.get(key, 0)

    def writes(self, key: int, pointer: bool) -> bool:
        return True

    def throws(self, key: int) -> bool:
        return False


def run(text: str, *arguments: int, reference: Trace | None = None) -> Trace:
    module = ModuleText.read(str(llvm.read(text, "test")))
    function = module.functions["@f"]
    program = Program(module)
    code = program.code_of("@f", function.header, function.lines, main=True)
    world = Fixed({ARGUMENTS + place * SLOTS: value for place, value in enumerate(arguments)})
    return Machine(program, world, 1000, reference).run(code)


def function(kind: str, expression: str, result: str = "") -> str:
    return f"""define {result or kind} @f({kind} %a, {kind} %b) {{
e:
  %r = {expression}
  ret {result or kind} %r
}}
declare {{i32, i1}} @llvm.sadd.with.overflow.i32(i32, i32)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.abs.i32(i32, i1)
declare i32 @llvm.usub.sat.i32(i32, i32)
declare i32 @llvm.bswap.i32(i32)
declare i32 @llvm.ctlz.i32(i32, i1)
"""


OPERATIONS = [
    *(f"{name} i32 %a, %b" for name in ("add", "sub", "mul", "and", "or", "xor")),
    *(f"{name} i32 %a, %b" for name in ("udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr")),
    "call i32 @llvm.fshl.i32(i32 %a, i32 %b, i32 %b)",
    "call i32 @llvm.smax.i32(i32 %a, i32 %b)",
    "call i32 @llvm.abs.i32(i32 %a, i1 false)",
    "call i32 @llvm.usub.sat.i32(i32 %a, i32 %b)",
    "call i32 @llvm.bswap.i32(i32 %a)",
    "call i32 @llvm.ctlz.i32(i32 %a, i1 false)",
    "select i1 true, i32 %a, i32 %b",
]
RELATIONS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


@pytest.mark.parametrize("expression", OPERATIONS + [f"icmp {name} i32 %a, %b" for name in RELATIONS])
def test_integers_are_computed_as_machine_code_does(expression: str):
    result = "i1" if expression.startswith("icmp") else "i32"
    text = function("i32", expression, result)
    binding = llvm.binding()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(llvm.read(text, "test"), machine)
    engine.finalize_object()
    returned = ctypes.c_bool if result == "i1" else ctypes.c_uint32
    native = ctypes.CFUNCTYPE(returned, ctypes.c_uint32, ctypes.c_uint32)(engine.get_function_address("f"))
    module = ModuleText.read(str(llvm.read(text, "test")))
    program = Program(module)
    code = program.code("@f")
    defined = 0
    for number in range(60):
        a, b = (boundary(mixed(number, place), 32) & 0xFFFFFFFF for place in (1, 2))
        world = Fixed({ARGUMENTS: a, ARGUMENTS + SLOTS: b})
        try:
            found = Machine(program, world, 100).run(code).result
        except Undefined:
            continue
        if found is not POISON:
            defined += 1
            assert found == native(a, b), (a, b)
    assert defined > 10


@pytest.mark.parametrize(
    ("expression", "a", "b"),
    [
        ("add nsw i32 %a, %b", 2**31 - 1, 1),
        ("sub nuw i32 %a, %b", 0, 1),
        ("mul nsw i32 %a, %b", 2**31, 2**32 - 1),
        ("shl i32 %a, %b", 1, 32),
        ("lshr exact i32 %a, %b", 1, 1),
        ("sdiv exact i32 %a, %b", 7, 2),
        ("or disjoint i32 %a, %b", 3, 1),
    ],
)
def test_flags_that_do_not_hold_make_poison(expression: str, a: int, b: int):
    assert run(function("i32", expression), a, b).result is POISON
    assert run(function("i32", expression), 8, 2 if "shl" not in expression else 1).result is not POISON


def test_divisions_by_zero_and_overflows_are_undefined():
    for a, b in ((1, 0), (2**31, 2**32 - 1)):
        with pytest.raises(Undefined):
            run(function("i32", "sdiv i32 %a, %b"), a, b)


CALLS = """
declare void @note(i32)
define i32 @f(ptr %p, i32 %x) {{
e:
{body}
}}
"""
RIGHT = """  %old = load i32, ptr %p
  store i32 %x, ptr %p
  call void @note(i32 %x)
  %new = load i32, ptr %p
  %r = add i32 %old, %new
  ret i32 %r"""


@pytest.mark.parametrize(
    "wrong",
    [
        RIGHT.replace("%new = load i32, ptr %p", "%new = add i32 %x, 0"),
        RIGHT.replace(
            "  store i32 %x, ptr %p\n  call void @note(i32 %x)",
            "  call void @note(i32 %x)\n  store i32 %x, ptr %p",
        ),
        RIGHT.replace("@note(i32 %x)", "@note(i32 %old)"),
        RIGHT.replace("load i32", "load volatile i32"),
        RIGHT.replace("  call void @note(i32 %x)\n", ""),
    ],
    ids=["load over call", "store past call", "argument", "volatile", "call left out"],
)
def test_calls_see_memory_and_write_it(wrong: str):
    pointer = 5 << 36 | 1 << 35
    written = run(CALLS.format(body=RIGHT), pointer, 77)
    run(CALLS.format(body=RIGHT), pointer, 77, reference=written)
    with pytest.raises(Differs):
        run(CALLS.format(body=wrong), pointer, 77, reference=written)


@pytest.mark.parametrize("operation", ["fadd", "fsub", "fmul", "fdiv", "frem"])
@pytest.mark.parametrize("kind", ["double", "float"])
def test_arithmetic_returns_the_same_nan_for_all(operation: str, kind: str):
    """Python's NaN has the sign of either operand, depending on how often the line has run."""
    whole, bits = ("i64", 64) if kind == "double" else ("i32", 32)
    text = f"""define {whole} @f({kind} %a, {kind} %b) {{
e:
  %r = {operation} {kind} %a, %b
  %s = bitcast {kind} %r to {whole}
  ret {whole} %s
}}"""
    plus = 0x7FF8 << 48 if bits == 64 else 0x7FC0 << 16
    minus = plus | 1 << (bits - 1)
    found = {run(text, *pair).result for pair in ((plus, minus), (minus, plus), (minus, minus), (plus, 0))}
    assert found == {plus}
