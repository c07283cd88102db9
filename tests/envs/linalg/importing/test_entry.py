"""Files as others write them: timers, helpers, scalars, open sizes, loops around operations."""

from pathlib import Path

import numpy as np
import pytest
from mlir_execution import execute, random_inputs

from irgym.core.errors import ProgramError
from irgym.envs.linalg.environment import LINALG

TIMED = """module {
  func.func private @nanoTime() -> i64 attributes {llvm.emit_c_interface}
  func.func private @printFlops(f64)
  func.func private @printMemrefF64(tensor<*xf64>)
  func.func @main(%a: tensor<4x6xf64>, %b: tensor<6x8xf64>, %c: tensor<4x8xf64>) -> (tensor<4x8xf64>, i64)
      attributes {llvm.emit_c_interface} {
    %begin = call @nanoTime() : () -> i64
    %r = linalg.matmul ins(%a, %b : tensor<4x6xf64>, tensor<6x8xf64>) outs(%c : tensor<4x8xf64>)
        -> tensor<4x8xf64>
    %end = call @nanoTime() : () -> i64
    %time = arith.subi %end, %begin : i64
    %seconds = arith.uitofp %time : i64 to f64
    call @printFlops(%seconds) : (f64) -> ()
    %shown = tensor.cast %r : tensor<4x8xf64> to tensor<*xf64>
    call @printMemrefF64(%shown) : (tensor<*xf64>) -> ()
    return %r, %time : tensor<4x8xf64>, i64
  }
}
"""

HELPED = """func.func @scaled(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %alpha: f32) -> tensor<?x?xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %0 : tensor<?x?xf32>
  %n = tensor.dim %w, %1 : tensor<?x?xf32>
  %e = bufferization.alloc_tensor(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>)
      -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%p : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.mulf %in, %alpha : f32
      linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @twice(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %alpha: f32) -> (tensor<?x?xf32>, f32) {
  %r = call @scaled(%x, %w, %alpha) : (tensor<?x?xf32>, tensor<?x?xf32>, f32) -> tensor<?x?xf32>
  %s = call @scaled(%r, %w, %alpha) : (tensor<?x?xf32>, tensor<?x?xf32>, f32) -> tensor<?x?xf32>
  return %s, %alpha : tensor<?x?xf32>, f32
}
"""

POWERS = """func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %powers = scf.for %i = %0 to %3 step %1 iter_args(%y = %x) -> (tensor<8x8xf32>) {
    %e = tensor.empty() : tensor<8x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
    %p = linalg.matmul ins(%y, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>)
        -> tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.add ins(%powers, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>)
      -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to write, and an empty cache folder."""
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "mine.mlir"


def test_timers_and_prints_are_dropped(file: Path):
    file.write_text(TIMED)
    task = LINALG.task(f"linalg:{file}")
    assert "nanoTime" not in task.text and "print" not in task.text
    assert task.program.results == (((4, 8), "f64"),)
    a, b, c = inputs = random_inputs(task.text)
    [found] = execute(task.text, inputs)
    np.testing.assert_allclose(found, a @ b + c, rtol=1e-13)


def test_helpers_scalars_and_open_sizes(file: Path):
    file.write_text(HELPED)
    sizes = "arg0.0=5&arg0.1=7&arg1.0=7&arg1.1=7"
    task = LINALG.task(f"linalg:{file}?{sizes}")
    assert task.uri == f"linalg:{file}?{sizes}"
    assert [shape for shape, _ in task.program.arguments] == [(5, 7), (7, 7), ()]
    assert [one.name for one in task.program.operations].count("matmul") == 2
    x, w, alpha = inputs = random_inputs(task.text)
    found, scalar = execute(task.text, inputs)
    np.testing.assert_allclose(found, x @ w * alpha @ w * alpha, rtol=1e-4, atol=1e-5)
    assert scalar == alpha


def test_a_function_is_chosen_by_its_name(file: Path):
    file.write_text(HELPED)
    task = LINALG.task(f"linalg:{file}?arg0.0=5&arg0.1=7&arg1.0=7&arg1.1=3#scaled")
    assert [one.name for one in task.program.operations].count("matmul") == 1
    with pytest.raises(ProgramError, match="no function @thrice: choose among @scaled, @twice"):
        LINALG.task(f"linalg:{file}#thrice")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", r"bind them, as in .*\?arg0.0=64&arg0.1=64&arg1.0=64&arg1.1=64$"),
        ("?arg0.1=7", r"as in .*\?arg0.0=64&arg0.1=7&"),
        ("?arg0.0=5&arg0.1=7&arg1.0=7&arg1.1=7&arg2.0=1", "leaves no size arg2.0 open"),
    ],
)
def test_sizes_that_are_missing_or_too_many(file: Path, query: str, words: str):
    file.write_text(HELPED)
    with pytest.raises(ProgramError, match=words):
        LINALG.task(f"linalg:{file}{query}")


def test_operations_in_loops_are_left_as_they_are(file: Path):
    file.write_text(POWERS)
    task = LINALG.task(f"linalg:{file}")
    assert [one.name for one in task.program.operations] == ["add"]
    [x] = inputs = random_inputs(task.text)
    [found] = execute(task.text, inputs)
    np.testing.assert_allclose(found, x @ x @ x @ x + x, rtol=1e-3, atol=1e-3)
