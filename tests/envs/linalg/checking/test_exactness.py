"""Ranges of integers for which nothing is rounded: the bounds hold, and are as wide as possible."""

import numpy as np
import pytest

pytest.importorskip("torch_mlir")

from mlir_execution import execute

from irgym.envs.linalg.checking.domains import MOST, domains
from irgym.envs.linalg.checking.intervals import Interval
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.programs.operators import Operator


def exact(name: str, *sizes: int, **options: int) -> int:
    text, program = describe(Operator(name, sizes, tuple(options.items())).text())
    return domains(text, program).exact


@pytest.mark.parametrize("length", [1, 7, 300, 1024, 5000])
def test_sums_of_products_stay_below_what_float32_holds(length):
    size = exact("matmul", 4, 5, length)
    assert size**2 * length <= 2**24 and (size == MOST or (size + 1) ** 2 * length > 2**24)


def test_sums_that_are_too_long_have_none():
    assert exact("matmul", 2, 2, 2**24) == 1 and exact("matmul", 2, 2, 2**24 + 1) == 0


@pytest.mark.parametrize(
    ("name", "sizes", "options"),
    [
        ("relu", (4, 5), {}),
        ("add", (4, 5), {}),
        ("maxpool", (1, 2, 6, 6, 2), {"stride": 2}),  # its initial infinity is gone
        ("conv2d", (1, 1, 4, 4, 2, 1, 1), {"stride": 1}),
    ],
)
def test_results_that_do_not_grow_allow_large_inputs(name, sizes, options):
    assert exact(name, *sizes, **options) == MOST


@pytest.mark.parametrize("name", ["softmax", "layernorm"])
def test_quotients_and_functions_round(name):
    assert exact(name, 4, 8) == 0


@pytest.mark.parametrize("uri", ["linalg://lattice/1", "linalg://lattice/5", "linalg://lattice/1000"])
def test_products_of_many_and_chains_are_exact_within_their_bound(uri):
    text, program = describe(LINALG.task(uri).text)
    size = domains(text, program).exact
    assert size > 0
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(-size, size, shape, endpoint=True).astype(np.float32) for shape, _ in program.arguments
    ]
    [found] = execute(text, inputs)
    turned = [-inputs[0], *inputs[1:]]
    assert np.abs(found).max() <= 2**24 and (found % 1 == 0).all()
    assert np.array_equal(execute(text, turned)[0], -found)


def generic(arguments: str, result: str, *body: str, reduce: bool = False, begin: str = "0.0") -> str:
    """Return a program on 4 x 6 elements, with or without a reduction of rows."""
    types = arguments.split()
    into, kind = ("tensor<4x", "reduction") if reduce else ("tensor<4x6x", "parallel")
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * len(types))
    end = "affine_map<(i, j) -> (i)>" if reduce else "affine_map<(i, j) -> (i, j)>"
    tensors = [f"tensor<4x6x{kind}>" for kind in types]
    names = [f"%t{n}" for n in range(len(types))]
    signature = ", ".join(f"{name}: {tensor}" for name, tensor in zip(names, tensors, strict=True))
    block = ", ".join(f"%{name}: {kind}" for name, kind in zip("ab", types, strict=False))
    return f"""func.func @main({signature}) -> {into}{result}> {{
      %begin = arith.constant {begin} : {result}
      %e = tensor.empty() : {into}{result}>
      %f = linalg.fill ins(%begin : {result}) outs(%e : {into}{result}>) -> {into}{result}>
      %0 = linalg.generic {{indexing_maps = [{maps}, {end}], iterator_types = ["parallel", "{kind}"]}}
          ins({", ".join(names)} : {", ".join(tensors)}) outs(%f : {into}{result}>) {{
        ^bb0({block}, %o: {result}):
          {chr(10).join(body)}
          linalg.yield %r : {result}
      }} -> {into}{result}>
      return %0 : {into}{result}>
    }}"""


def found(text: str):
    return domains(*describe(text))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (generic("f32", "f32", "%r = arith.addf %a, %o : f32", reduce=True), MOST),
        (generic("f32", "f32", "%r = arith.subf %o, %a : f32", reduce=True), MOST),
        (generic("f32", "f32", "%r = arith.subf %a, %o : f32", reduce=True), 0),
        (generic("f32", "f32", "%r = arith.mulf %a, %o : f32", reduce=True), 0),
        (generic("f32", "f32", "%r = arith.minimumf %a, %o : f32", reduce=True, begin="0x7F800000"), MOST),
        # Partial sums could reach 2^23 and more, though the whole sum is small.
        (
            generic(
                "f32",
                "f32",
                "%c = arith.constant 8000000.0 : f32",
                "%s = arith.addf %o, %c : f32",
                "%t = arith.addf %s, %a : f32",
                "%r = arith.subf %t, %c : f32",
                reduce=True,
            ),
            0,
        ),
        (generic("f32", "f32", "%c = arith.constant 0.5 : f32", "%r = arith.mulf %a, %c : f32"), 0),
        (generic("f32", "f32", "%c = arith.constant -1.0e9 : f32", "%r = arith.addf %a, %c : f32"), 0),
        (generic("f32", "f32", "%c = arith.constant -1.0e9 : f32", "%r = arith.maximumf %a, %c : f32"), MOST),
        (generic("f32", "f32", "%c = arith.constant 3.0e5 : f32", "%r = arith.mulf %a, %c : f32"), 55),
        (generic("i32", "f32", "%r = arith.sitofp %a : i32 to f32"), MOST),
        (generic("i32", "i32", "%r = arith.muli %a, %a : i32", begin="0"), MOST),
        (generic("f32", "f32", "%r = math.exp %a : f32"), 0),
        (generic("f32", "f16", "%r = arith.truncf %a : f32 to f16"), 2048),
    ],
)
def test_bodies_are_followed(text, size):
    assert found(text).exact == size


def test_divisors_are_not_0_and_truth_values_are_0_or_1():
    text = generic("i32 i32", "i32", "%r = arith.divsi %a, %b : i32", begin="0")
    assert found(text).whole == {0: Interval(-1000, 1000), 1: Interval(1, 1000)}
    text = generic("i8 i1", "i8", "%r = arith.select %b, %a, %a : i8", begin="0")
    assert found(text).whole == {0: Interval(-127, 127), 1: Interval(0, 1)}


@pytest.mark.parametrize("negative", [True, False])
def test_indices_are_within_what_they_index(negative):
    """Negative indices count from the end if the program does so, like torch's."""
    wrap = [
        "%zero = arith.constant 0 : i64",
        "%many = arith.constant 1007 : i64",
        "%below = arith.cmpi slt, %a, %zero : i64",
        "%w = arith.addi %a, %many : i64",
        "%x = arith.select %below, %w, %a : i64",
        "%i = arith.index_cast %x : i64 to index",
    ]
    plain = ["%i = arith.index_cast %a : i64 to index"]
    text = generic(
        "i64", "f32", *(wrap if negative else plain), "%r = tensor.extract %table[%i] : tensor<1007xf32>"
    )
    text = text.replace("@main(", "@main(%table: tensor<1007xf32>, ")
    assert found(text).whole == {1: Interval(0, 1000)}
    assert found(text.replace("tensor<1007xf32>", "tensor<50xf32>")).whole == {1: Interval(0, 49)}
