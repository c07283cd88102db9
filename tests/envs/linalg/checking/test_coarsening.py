"""Programs with coarser rounding differ from the original only in lost bits."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir")

from mlir_execution import execute

from irgym.envs.linalg.checking.coarsening import coarse
from irgym.envs.linalg.compiling.compiler import lower_module
from irgym.envs.linalg.compiling.contexts import mlir
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.programs.operators import Operator
from irgym.measure.arrays import aligned


def coarsely(text: str, *inputs: Any) -> Any:
    text, program = describe(text)
    with mlir():
        module = coarse(text, program)
        lower_module(module)
        [(shape, _)] = program.results
        result = aligned(shape)
        executable = Executable(module, [*map(np.ascontiguousarray, inputs), result])
    executable.run(1)
    return result


def unary(*body: str) -> str:
    lines = "\n".join(body)
    return f"""func.func @main(%t: tensor<1000xf32>) -> tensor<1000xf32> {{
      %e = tensor.empty() : tensor<1000xf32>
      %0 = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%t : tensor<1000xf32>) outs(%e : tensor<1000xf32>) {{
        ^bb0(%a: f32, %o: f32):
          {lines}
          linalg.yield %r : f32
      }} -> tensor<1000xf32>
      return %0 : tensor<1000xf32>
    }}"""


X = (np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-30, 20, 0.05)).astype(np.float32)


def bits(values):
    return values.view(np.uint32)


@pytest.mark.parametrize(("name", "lost"), [("arith.addf", 1), ("arith.mulf", 1), ("arith.divf", 3)])
def test_results_are_the_nearest_of_fewer_bits(name, lost):
    text = unary("%c = arith.constant 1.1 : f32", f"%r = {name} %a, %c : f32")
    x = np.random.default_rng(2).standard_normal(1000).astype(np.float32)
    plain, rough = execute(text, [x])[0], coarsely(text, x)
    assert not (bits(rough) & ((1 << lost) - 1)).any()
    steps = bits(rough).astype(np.int64) - bits(plain)
    assert np.abs(steps).max() == 1 << (lost - 1), "to the nearest"
    assert abs(np.sum(np.sign(steps))) < 100, "as often up as down"


def test_infinities_and_what_is_no_number_stay():
    special = X.copy()
    special[:4] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max / 2
    special.view(np.uint32)[4] = 0x7FFFFFFF  # NaN too; rounded up it would become zero
    found = coarsely(unary("%c = arith.constant 2.0 : f32", "%r = arith.mulf %a, %c : f32"), special)
    assert found[0] == np.inf and found[1] == -np.inf and np.isnan(found[[2, 4]]).all()
    assert found[3] == np.inf, "the greatest number is rounded up"


def test_maxima_moves_and_small_whole_numbers_are_not_rounded():
    text = unary("%c = arith.constant 0.0 : f32", "%r = arith.maximumf %a, %c : f32")
    assert np.array_equal(coarsely(text, X), np.maximum(X, 0))
    whole = np.random.default_rng(0).integers(-200, 200, (12, 16)).astype(np.float32)
    product = coarsely(Operator("matmul", (12, 12, 16)).text(), whole, whole.T)
    assert np.array_equal(product, whole @ whole.T)


def test_indices_are_computed_as_before():
    text = unary(
        "%i = linalg.index 0 : index",
        "%n = arith.index_cast %i : index to i32",
        "%f = arith.sitofp %n : i32 to f32",
        "%c = arith.constant 0.9999999 : f32",
        "%p = arith.mulf %f, %c : f32",
        "%k = arith.fptosi %p : f32 to i32",
        "%j = arith.index_cast %k : i32 to index",
        "%r = tensor.extract %t[%j] : tensor<1000xf32>",
    )
    assert np.array_equal(coarsely(text, X), execute(text, [X])[0])


@pytest.mark.parametrize(
    ("name", "sizes", "shapes"),
    [
        ("matmul", (24, 16, 512), ((24, 512), (512, 16))),
        ("conv2d", (1, 32, 9, 9, 8, 3, 3), ((1, 32, 9, 9), (8, 32, 3, 3))),
    ],
)
def test_each_step_of_a_sum_feels_it(name, sizes, shapes):
    options = (("stride", 1),) if name == "conv2d" else ()
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    text = Operator(name, sizes, options).text()
    plain, rough = execute(text, inputs)[0], coarsely(text, *inputs)
    size = np.abs(plain).mean()
    off = np.sqrt(np.mean((rough - plain).astype(np.float64) ** 2)) / size
    assert 2e-7 < off < 4e-6, "more than one rounding, less than if all went one way"
