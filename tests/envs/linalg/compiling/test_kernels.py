"""Loops of large programs as separate functions."""

import numpy as np
import pytest

pytest.importorskip("torch_mlir")

from irgym.envs.linalg.compiling.compiler import lower, lower_apart
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.compiling.executable import Executable, compiled_kernel
from irgym.envs.linalg.compiling.kernels import MANY
from irgym.measure.target import host_target


def chain(layers: int) -> str:
    """Return a program of many multiplications, by 2 and by 3 in turn."""
    products = (
        f"""
  %empty{n} = tensor.empty() : tensor<4x8xf32>
  %x{n + 1} = linalg.generic {{indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}}
      ins(%x{n} : tensor<4x8xf32>) outs(%empty{n} : tensor<4x8xf32>) {{
    ^body(%in: f32, %out: f32):
      %product = arith.mulf %in, {"%three" if n % 2 else "%two"} : f32
      linalg.yield %product : f32
  }} -> tensor<4x8xf32>"""
        for n in range(layers)
    )
    return f"""
#same = affine_map<(a, b) -> (a, b)>
func.func @main(%x0: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  {"".join(products)}
  return %x{layers} : tensor<4x8xf32>
}}"""


@pytest.mark.parametrize("layers", [MANY - 1, MANY, MANY + 3])
def test_kernels_compute_the_same(layers: int):
    given = np.random.default_rng(layers).random((4, 8), dtype=np.float32)
    result = np.full_like(given, np.nan)
    with mlir():
        module = lower(chain(layers), "")
        count = sum(str(function.sym_name.value).startswith("kernel_") for function in module.body.operations)
        executable = Executable(module, [given, result])
    executable.run(2)
    np.testing.assert_allclose(result, given * 2.0 ** -(-layers // 2) * 3.0 ** (layers // 2), rtol=1e-5)
    assert count == (0 if layers < MANY else 3), "equal ones are one; the first reads another buffer"


def test_kernels_that_are_known_are_not_compiled_again():
    layers = MANY + 1
    given = np.random.default_rng(1).random((4, 8), dtype=np.float32)
    compiled_kernel.cache_clear()
    for last, compilations in ((3.0, 3), (3.0, 3), (5.0, 5)):
        text = chain(layers).replace(f"%three = arith.constant {3.0}", f"%three = arith.constant {last}")
        result = np.full_like(given, np.nan)
        with mlir():
            apart = lower_apart(parse(text))
            assert all(f"@{name}(" in str(apart.module) for name in apart.kernels)
            assert len(apart.kernels) == 3 and apart.only_calls
            Executable.assembled(apart, host_target()).on([given, result]).run(1)
        np.testing.assert_allclose(result, given * 2.0**9 * last**8, rtol=1e-5)
        assert compiled_kernel.cache_info().misses == compilations - (last > 3)
