"""Hostile programs as text and bytecode: C, LLVM's IR, MLIR, HLO, protocol buffers, and URIs."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from fuzz.hostile.case import Maker, Opening, tune


def _file(
    name: str, content: Callable[[str], str | bytes], *, refused: bool = True, function: str = ""
) -> Maker:
    """Return a maker of a file, which is tuned."""

    def make(folder: Path, payload: str) -> Opening:
        made = content(payload)
        (folder / name).write_bytes(made.encode() if isinstance(made, str) else made)
        return tune(f"{folder / name}{function}", refused=refused)

    return make


def _fixed(name: str, content: str | bytes, *, refused: bool = True, function: str = "") -> Maker:
    return _file(name, lambda _: content, refused=refused, function=function)


def _fifo(name: str) -> Maker:
    def make(folder: Path, _: str) -> Opening:
        os.mkfifo(folder / name)
        return tune(folder / name, refused=True)

    return make


def _sparse(name: str) -> Maker:
    def make(folder: Path, _: str) -> Opening:
        with (folder / name).open("wb") as file:
            file.truncate(100 << 30)
        return tune(folder / name, refused=True)

    return make


def _linked(name: str, target: str) -> Maker:
    def make(folder: Path, _: str) -> Opening:
        (folder / name).symlink_to(target)
        return tune(folder / name, refused=True)

    return make


def _program(text: str) -> Maker:
    return lambda _folder, _payload: tune(text, refused=True)


BODY = "int f(int a, int b) { return (a + b) * (a + b) + a / (b | 1) + a / (b | 1); }\n"
"""A C function with a common subexpression."""

IR = (
    "define i32 @f(i32 %a, i32 %b) {{\n  %x = add i32 %a, %b\n  %y = add i32 %a, %b\n"
    "  %z = mul i32 %x, %y\n{more}  ret i32 %z\n}}\n"
)

ENDLESS = (
    "define i32 @f(i32 %a, i32 %b) {\nentry:\n  %x = add i32 %a, %b\n  br label %loop\nloop:\n"
    "  %y = add i32 %a, %b\n  %c = icmp eq i32 %y, %x\n  br i1 %c, label %loop, label %end\nend:\n"
    "  ret i32 %x\n}\n"
)

CALLING = (
    'declare i32 @system(ptr)\n@text = private constant [{size} x i8] c"{text}\\00"\n'
    "define i32 @f(i32 %a, i32 %b) {{\n  %x = add i32 %a, %b\n  %y = add i32 %a, %b\n"
    "  %s = call i32 @system(ptr @text)\n  %z = mul i32 %x, %y\n  %r = add i32 %z, %s\n  ret i32 %r\n}}\n"
)


def _calling(payload: str) -> str:
    return CALLING.format(size=len(payload) + 1, text=payload)


def _constructor(payload: str) -> str:
    return (
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
        "[{ i32, ptr, ptr } { i32 1, ptr @c, ptr null }]\n"
        "declare i32 @system(ptr)\n"
        f'@text = private constant [{len(payload) + 1} x i8] c"{payload}\\00"\n'
        "define void @c() {\n  %s = call i32 @system(ptr @text)\n  ret void\n}\n" + IR.format(more="")
    )


def _assembly(payload: str) -> str:
    del payload
    more = '  call void asm sideeffect ".incbin \\22/dev/zero\\22", ""()\n'
    return IR.format(more=more)


def _types(depth: int, opening: str, closing: str, inner: str) -> str:
    return opening * depth + inner + closing * depth


MATMUL = """
func.func @f(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{
  %e = tensor.empty() : tensor<{size}xf32>
  %z = linalg.add ins(%a, %a : tensor<{size}xf32>, tensor<{size}xf32>) outs(%e : tensor<{size}xf32>)
    -> tensor<{size}xf32>
  return %z : tensor<{size}xf32>
}}
"""

ENDLESS_MLIR = """
func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 4611686018427387904 : index
  %r = scf.for %i = %zero to %many step %one iter_args(%t = %a) -> (tensor<8x8xf32>) {
    %e = tensor.empty() : tensor<8x8xf32>
    %s = linalg.add ins(%t, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>)
      -> tensor<8x8xf32>
    scf.yield %s : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
"""

LIBRARY_MLIR = """
func.func private @system(!llvm.ptr) -> i32
func.func @f(%a: tensor<8x8xf32>, %p: !llvm.ptr) -> tensor<8x8xf32> {
  %s = func.call @system(%p) : (!llvm.ptr) -> i32
  return %a : tensor<8x8xf32>
}
"""

ADD = """HloModule hostile, entry_computation_layout={{({shape})->{shape}}}

ENTRY main {{
  x = {shape} parameter(0)
  ROOT y = {shape} add(x, x)
}}
"""

CONSTANT = """HloModule hostile

ENTRY main {
  x = f32[] parameter(0)
  c = f32[1099511627776] constant({1, 2, 3})
  b = f32[1099511627776] broadcast(x), dimensions={}
  ROOT y = f32[1099511627776] add(c, b)
}
"""

BROADCAST = """HloModule hostile

ENTRY main {
  x = f32[] parameter(0)
  c = f32[] constant(2)
  k = f32[65536,65536] broadcast(c), dimensions={}
  s = f32[65536,65536] exponential(k)
  b = f32[65536,65536] broadcast(x), dimensions={}
  ROOT y = f32[65536,65536] add(s, b)
}
"""

ENDLESS_HLO = """HloModule hostile

body {
  s = s32[8] parameter(0)
  ROOT r = s32[8] multiply(s, s)
}

going {
  s = s32[8] parameter(0)
  ROOT t = pred[] constant(true)
}

ENTRY main {
  x = s32[8] parameter(0)
  ROOT y = s32[8] while(x), condition=going, body=body
}
"""

CUSTOM_CALL = """HloModule hostile

ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] add(x, x)
  ROOT z = f32[8] custom-call(y), custom_call_target="system", backend_config="PAYLOAD"
}
"""


def _hlo_calls(depth: int) -> str:
    """Return a module of computations that each call the next one twice."""
    lines = ["HloModule hostile", "", "f0 {", "  a = f32[8] parameter(0)", "  ROOT b = f32[8] negate(a)", "}"]
    for level in range(1, depth):
        lines += [
            "",
            f"f{level} {{",
            "  a = f32[8] parameter(0)",
            f"  b = f32[8] call(a), to_apply=f{level - 1}",
            f"  ROOT c = f32[8] call(b), to_apply=f{level - 1}",
            "}",
        ]
    lines += ["", "ENTRY main {", "  x = f32[8] parameter(0)"]
    return "\n".join([*lines, f"  ROOT y = f32[8] call(x), to_apply=f{depth - 1}", "}", ""])


def _hlo_chain(count: int) -> str:
    lines = ["HloModule hostile", "", "ENTRY main {", "  v0 = f32[8] parameter(0)"]
    lines += [f"  v{place} = f32[8] negate(v{place - 1})" for place in range(1, count)]
    return "\n".join([*lines, f"  ROOT y = f32[8] negate(v{count - 1})", "}", ""])


def _hlo_tuple(depth: int) -> str:
    kind = _types(depth, "(", ")", "f32[8]")
    return f"HloModule hostile\n\nENTRY main {{\n  ROOT x = {kind} parameter(0)\n}}\n"


def _mlir_chain(count: int) -> str:
    kind = "tensor<8x8xf32>"
    lines = [f"func.func @f(%v0: {kind}) -> {kind} {{", f"  %e = tensor.empty() : {kind}"]
    lines += [
        f"  %v{place} = linalg.add ins(%v{place - 1}, %v0 : {kind}, {kind}) outs(%e : {kind}) -> {kind}"
        for place in range(1, count)
    ]
    return "\n".join([*lines, f"  return %v{count - 1} : {kind}", "}", ""])


def _many_functions(count: int) -> str:
    return "".join(BODY.replace("int f(", f"int f{place}(") for place in range(count))


def _adds(count: int) -> str:
    lines = "".join(f"  %v{place} = add i32 %a, %b\n" for place in range(count))
    return IR.format(more=lines)


CASES: Mapping[str, Maker] = {
    "c_includes_passwd": _fixed("hostile.c", '#include "/etc/passwd"\n' + BODY),
    "c_includes_dev_zero": _fixed("hostile.c", '#include "/dev/zero"\n' + BODY),
    "c_includes_itself": _fixed("hostile.c", '#include "hostile.c"\n' + BODY),
    "c_includes_stdin": _fixed("hostile.c", '#include "/dev/stdin"\n' + BODY),
    "c_embeds_dev_zero": _fixed("hostile.c", 'char d[] = {\n#embed "/dev/zero"\n};\n' + BODY),
    "c_incbin_dev_zero": _fixed("hostile.c", '__asm__(".incbin \\"/dev/zero\\"");\n' + BODY, refused=False),
    "c_pragma_plugin": _fixed(
        "hostile.c", '_Pragma("clang plugin load(\\"./evil.so\\")")\n' + BODY, refused=False
    ),
    "c_named_as_option": lambda folder, _: _named_as_option(folder),
    "c_array_2_40": _fixed("hostile.c", "char d[1ull << 40] = {1};\n" + BODY, refused=False),
    "c_macro_bomb": _fixed(
        "hostile.c",
        "#define A0 1,\n"
        + "".join(f"#define A{n} A{n - 1} A{n - 1} A{n - 1} A{n - 1}\n" for n in range(1, 20))
        + "int d[] = {A19};\n"
        + BODY,
    ),
    "c_template_depth": _fixed(
        "hostile.c", "int g(void) { return " + "(" * 100_000 + "1" + ")" * 100_000 + "; }\n"
    ),
    "c_functions_20000": _file("hostile.c", lambda _: _many_functions(20_000), refused=False, function="#f7"),
    "c_fifo": _fifo("hostile.c"),
    "c_dev_zero": _linked("hostile.c", "/dev/zero"),
    "c_sparse_100_gib": _sparse("hostile.c"),
    "ll_calls_system": _file("hostile.ll", _calling, refused=False),
    "ll_constructor": _file("hostile.ll", _constructor, refused=False),
    "ll_incbin": _file("hostile.ll", _assembly, refused=False),
    "ll_module_assembly": _file(
        "hostile.ll", lambda _: 'module asm ".incbin \\22/dev/zero\\22"\n' + IR.format(more=""), refused=False
    ),
    "ll_endless_loop": _fixed("hostile.ll", ENDLESS, refused=False),
    "ll_array_2_62": _fixed(
        "hostile.ll",
        "@d = global [4611686018427387904 x i8] zeroinitializer\n" + IR.format(more=""),
        refused=False,
    ),
    "ll_alloca_2_60": _fixed(
        "hostile.ll", IR.format(more="  %p = alloca [1152921504606846976 x i8]\n"), refused=False
    ),
    "ll_types_nested": _fixed(
        "hostile.ll", f"@d = external global {_types(100_000, '{', '}', 'i8')}\n" + IR.format(more="")
    ),
    "ll_integer_2_30_bits": _fixed("hostile.ll", "@d = external global i1073741824\n" + IR.format(more="")),
    "ll_instructions_200000": _file("hostile.ll", lambda _: _adds(200_000), refused=False),
    "ll_no_text": _fixed("hostile.ll", bytes(range(256)) * 64),
    "ll_fifo": _fifo("hostile.ll"),
    "ll_sparse_100_gib": _sparse("hostile.ll"),
    "bc_garbage": _fixed("hostile.bc", b"BC\xc0\xde" + bytes(range(256)) * 64),
    "bc_dev_zero": _linked("hostile.bc", "/dev/zero"),
    "mlir_tensor_2_40": _fixed("hostile.mlir", MATMUL.format(size="1099511627776")),
    "mlir_tensor_2_62": _fixed("hostile.mlir", MATMUL.format(size="4611686018427387904x4")),
    "mlir_tensor_2_64": _fixed("hostile.mlir", MATMUL.format(size="99999999999999999999")),
    "mlir_endless_loop": _fixed("hostile.mlir", ENDLESS_MLIR, refused=False),
    "mlir_calls_system": _fixed("hostile.mlir", LIBRARY_MLIR),
    "mlir_types_nested": _fixed(
        "hostile.mlir", f"func.func private @f({_types(100_000, 'tuple<', '>', 'f32')})\n"
    ),
    "mlir_regions_nested": _fixed("hostile.mlir", _types(50_000, "module {", "}", "")),
    "mlir_operations_20000": _file("hostile.mlir", lambda _: _mlir_chain(20_000), refused=False),
    "mlir_dense_bomb": _fixed(
        "hostile.mlir",
        "func.func @f() -> tensor<1099511627776xf32> {\n"
        "  %c = arith.constant dense<1.0> : tensor<1099511627776xf32>\n"
        "  return %c : tensor<1099511627776xf32>\n}\n",
    ),
    "mlir_fifo": _fifo("hostile.mlir"),
    "mlir_dev_zero": _linked("hostile.mlir", "/dev/zero"),
    "mlir_sparse_100_gib": _sparse("hostile.mlir"),
    "hlo_shape_2_40": _fixed("hostile.hlo", ADD.format(shape="f32[1099511627776]"), refused=False),
    "hlo_shape_2_62": _fixed("hostile.hlo", ADD.format(shape="f32[4611686018427387904,4]")),
    "hlo_shape_2_64": _fixed("hostile.hlo", ADD.format(shape="f32[99999999999999999999]")),
    "hlo_shape_negative": _fixed("hostile.hlo", ADD.format(shape="f32[-4]")),
    "hlo_constant_2_40": _fixed("hostile.hlo", CONSTANT),
    "hlo_folds_2_32": _fixed("hostile.hlo", BROADCAST, refused=False),
    "hlo_endless_loop": _fixed("hostile.hlo", ENDLESS_HLO, refused=False),
    "hlo_custom_call": _file(
        "hostile.hlo", lambda payload: CUSTOM_CALL.replace("PAYLOAD", payload), refused=False
    ),
    "hlo_calls_2_24": _file("hostile.hlo", lambda _: _hlo_calls(24), refused=False),
    "hlo_calls_2_60": _file("hostile.hlo", lambda _: _hlo_calls(60), refused=False),
    "hlo_instructions_300000": _file("hostile.hlo", lambda _: _hlo_chain(300_000), refused=False),
    "hlo_tuples_nested": _file("hostile.hlo", lambda _: _hlo_tuple(100_000)),
    "hlo_fifo": _fifo("hostile.hlo"),
    "hlo_dev_zero": _linked("hostile.hlo", "/dev/zero"),
    "hlo_sparse_100_gib": _sparse("hostile.hlo"),
    "pb_garbage": _fixed("hostile.pb", bytes(range(256)) * 64),
    "pb_nested": _fixed("hostile.pb", b"\x0a\x80\x80\x04" * 100_000),
    "pb_sparse_100_gib": _sparse("hostile.pb"),
    "pb_fifo": _fifo("hostile.pb"),
    "uri_loops_huge": _program("loops://mm/99999999999x99999999999x99999999999"),
    "uri_loops_digits": _program(f"loops://mm/{'9' * 5000}x4x4"),
    "uri_linalg_huge": _program("linalg:matmul/99999999999x99999999999x99999999999"),
    "uri_linalg_digits": _program(f"linalg:matmul/{'9' * 5000}x4x4"),
    "uri_hlo_huge": _program("hlo:mlp?batch=99999999999&width=99999999999"),
    "uri_graph_huge": _program("graph:bert?layers=99999999999"),
    "uri_nul": _program("loops://mm/4x4x4%00"),
    "uri_long": _program("loops://mm/" + "x".join(["2"] * 50_000)),
}
"""Programs, by name."""


def _named_as_option(folder: Path) -> Opening:
    path = folder / "-fplugin=evil.c"
    path.write_text(BODY)
    return tune(f"cse:{path.name}#f")
