"""Files of other projects: timers, helpers, scalars, dynamic sizes, loops around operations."""

from pathlib import Path

import numpy as np
import pytest
from mlir_execution import execute, random_inputs

import irgym
from irgym.base.errors import ProgramError
from irgym.envs.linalg.checking.domains import domains
from irgym.envs.linalg.checking.intervals import Interval
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
    assert [operation.name for operation in task.program.operations].count("matmul") == 2
    x, w, alpha = inputs = random_inputs(task.text)
    found, scalar = execute(task.text, inputs)
    np.testing.assert_allclose(found, x @ w * alpha @ w * alpha, rtol=1e-4, atol=1e-5)
    assert scalar == alpha


def test_a_function_is_chosen_by_its_name(file: Path):
    file.write_text(HELPED)
    task = LINALG.task(f"linalg:{file}?arg0.0=5&arg0.1=7&arg1.0=7&arg1.1=3#scaled")
    assert [operation.name for operation in task.program.operations].count("matmul") == 1
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
    assert [operation.name for operation in task.program.operations] == ["add"]
    [x] = inputs = random_inputs(task.text)
    [found] = execute(task.text, inputs)
    np.testing.assert_allclose(found, x @ x @ x @ x + x, rtol=1e-3, atol=1e-3)


def test_parts_take_scalars_along(file: Path):
    file.write_text(HELPED)
    task = LINALG.task(f"linalg:{file}?arg0.0=5&arg0.1=7&arg1.0=7&arg1.1=7")
    parts = task.parts()
    assert {part.program.operations[-1].name for part in parts} == {"matmul", "generic"}
    scaled = next(part for part in parts if part.program.operations[-1].name == "generic")
    assert sorted(shape for shape, _ in scaled.program.arguments) == [(), (5, 7)]


def test_a_program_that_times_itself_can_be_tuned(file: Path):
    file.write_text(TIMED)
    result = irgym.tune(f"linalg:{file}", searching=irgym.Searching(search="evolutionary", evaluations=6))
    assert result.validated and result.speedup >= 1.0


SLICED = """func.func @main(%x: tensor<64x8xf32>, %i: index) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[%i, 0] [4, 8] [1, 1] : tensor<64x8xf32> to tensor<4x8xf32>
  %r = linalg.add ins(%s, %s : tensor<4x8xf32>, tensor<4x8xf32>) outs(%s : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
"""


def test_places_of_slices_are_within_their_tensors(file: Path):
    file.write_text(SLICED)
    task = LINALG.task(f"linalg:{file}")
    assert domains(task.text, task.program).whole[1] == Interval(0, 60)


LIBRARY = """func.func private @nanoTime() -> i64
func.func private @print_layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @timed(%x: tensor<4xf32>) -> (tensor<4xf32>, i64) {
  %begin = call @nanoTime() : () -> i64
  %r = call @print_layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r, %begin : tensor<4xf32>, i64
}
func.func public @main(%x: tensor<4xf32>) -> (i64, tensor<4xf32>) {
  %r, %time = call @timed(%x) : (tensor<4xf32>) -> (tensor<4xf32>, i64)
  return %time, %r : i64, tensor<4xf32>
}
"""


def test_timers_within_helpers_and_helpers_named_like_prints(file: Path):
    file.write_text(LIBRARY)
    task = LINALG.task(f"linalg:{file}")
    assert task.program.results == (((4,), "f32"),)
    [x] = inputs = random_inputs(task.text)
    np.testing.assert_array_equal(execute(task.text, inputs)[0], x + x)


BRANCHES = """func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  cf.cond_br %c, ^a(%x : tensor<4xf32>), ^b
^a(%y: tensor<4xf32>):
  return %y : tensor<4xf32>
^b:
  %r = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


def test_branches_are_refused(file: Path):
    file.write_text(BRANCHES)
    with pytest.raises(ProgramError, match="has branches"):
        LINALG.task(f"linalg:{file}")


def test_a_hint_keeps_what_was_given(file: Path):
    file.write_text(HELPED)
    with pytest.raises(ProgramError, match=r"\?arg0.0=64&arg0.1=64&arg1.0=64&arg1.1=64#scaled$"):
        LINALG.task(f"linalg:{file}#scaled")


def test_file_names_may_contain_hashes_and_question_marks(file: Path):
    path = file.with_name("which#1?.mlir")
    path.write_text(TIMED)
    assert LINALG.task(f"linalg:{path}").uri == f"linalg:{path}"
