"""Texts of programs like those of users: integers, booleans, masks, indices, functions."""


def elementwise(shape: str, arguments: tuple[str, ...], result: str, *body: str) -> str:
    """Return a program on tensors of one shape; `body` computes `%r` from `%a`, `%b` and constants."""
    names = "abc"[: len(arguments)]
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(arguments) + 1))
    types = ", ".join(f"tensor<{shape}x{kind}>" for kind in arguments)
    signature = ", ".join(
        f"%t{name}: tensor<{shape}x{kind}>" for name, kind in zip(names, arguments, strict=True)
    )
    inputs = ", ".join(f"%t{name}" for name in names)
    block = ", ".join(f"%{name}: {kind}" for name, kind in zip(names, arguments, strict=True))
    lines = "\n      ".join(body)
    return f"""func.func @main({signature}) -> tensor<{shape}x{result}> {{
  %into = tensor.empty() : tensor<{shape}x{result}>
  %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({inputs} : {types}) outs(%into : tensor<{shape}x{result}>) {{
    ^bb0({block}, %o: {result}):
      {lines}
      linalg.yield %r : {result}
  }} -> tensor<{shape}x{result}>
  return %0 : tensor<{shape}x{result}>
}}
"""


ARGMAX = """func.func @main(%x: tensor<12x40xf32>) -> (tensor<12xf32>, tensor<12xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %a = tensor.empty() : tensor<12xf32>
  %b = tensor.empty() : tensor<12xi64>
  %f = linalg.fill ins(%low : f32) outs(%a : tensor<12xf32>) -> tensor<12xf32>
  %g = linalg.fill ins(%zero : i64) outs(%b : tensor<12xi64>) -> tensor<12xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<12x40xf32>) outs(%f, %g : tensor<12xf32>, tensor<12xi64>) {
    ^bb0(%in: f32, %most: f32, %place: i64):
      %n = linalg.index 1 : index
      %here = arith.index_cast %n : index to i64
      %more = arith.cmpf ogt, %in, %most : f32
      %0 = arith.select %more, %in, %most : f32
      %1 = arith.select %more, %here, %place : i64
      linalg.yield %0, %1 : f32, i64
  } -> (tensor<12xf32>, tensor<12xi64>)
  return %r#0, %r#1 : tensor<12xf32>, tensor<12xi64>
}
"""

GATHER = """func.func @main(%table: tensor<100x16xf32>, %rows: tensor<24xi64>) -> tensor<24x16xf32> {
  %e = tensor.empty() : tensor<24x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<24xi64>) outs(%e : tensor<24x16xf32>) {
    ^bb0(%row: i64, %o: f32):
      %i = arith.index_cast %row : i64 to index
      %j = linalg.index 1 : index
      %v = tensor.extract %table[%i, %j] : tensor<100x16xf32>
      linalg.yield %v : f32
  } -> tensor<24x16xf32>
  return %0 : tensor<24x16xf32>
}
"""

SUM = """func.func @main(%x: tensor<16x300xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %share = arith.constant 300.0 : f32
  %a = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%a : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x300xf32>) outs(%f : tensor<16xf32>) {
    ^bb0(%in: f32, %sum: f32):
      %e = math.exp %in : f32
      %q = arith.divf %e, %share : f32
      %0 = arith.addf %q, %sum : f32
      linalg.yield %0 : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}
"""

FILES = {
    "millionth": elementwise(
        "16x24", ("f32",), "f32", "%c = arith.constant 1.0e-6 : f32", "%r = arith.mulf %a, %c : f32"
    ),
    "integers": elementwise(
        "16x24", ("i32",), "i32", "%c = arith.constant 100000 : i32", "%r = arith.muli %a, %c : i32"
    ),
    "quotients": elementwise("16x24", ("i32", "i32"), "i32", "%r = arith.divsi %a, %b : i32"),
    "bytes": elementwise("16x24", ("i8", "i8"), "i8", "%r = arith.addi %a, %b : i8"),
    "less": elementwise("16x24", ("f32", "f32"), "i1", "%r = arith.cmpf olt, %a, %b : f32"),
    "masked": elementwise(
        "16x24",
        ("f32", "i1"),
        "f32",
        "%c = arith.constant -1.0e9 : f32",
        "%r = arith.select %b, %a, %c : f32",
    ),
    "masked-by-sum": elementwise(
        "16x24",
        ("f32", "i1"),
        "f32",
        "%c = arith.constant -1.0e9 : f32",
        "%m = arith.uitofp %b : i1 to f32",
        "%n = arith.mulf %m, %c : f32",
        "%r = arith.addf %a, %n : f32",
    ),
    "lowest": elementwise(
        "16x24",
        ("f32", "i1"),
        "f32",
        "%c = arith.constant 0xFF7FFFFF : f32",
        "%r = arith.select %b, %a, %c : f32",
    ),
    "sigmoid": elementwise(
        "16x24",
        ("f32",),
        "f32",
        "%one = arith.constant 1.0 : f32",
        "%n = arith.negf %a : f32",
        "%e = math.exp %n : f32",
        "%s = arith.addf %e, %one : f32",
        "%r = arith.divf %one, %s : f32",
    ),
    "sine": elementwise(
        "16x24",
        ("f32",),
        "f32",
        "%c = arith.constant 300.0 : f32",
        "%s = arith.mulf %a, %c : f32",
        "%r = math.sin %s : f32",
    ),
    "logarithm": elementwise(
        "16x24", ("f32",), "f32", "%s = arith.mulf %a, %a : f32", "%r = math.log %s : f32"
    ),
    "argmax": ARGMAX,
    "gather": GATHER,
    "mean-exp": SUM,
}
"""The programs by name."""
