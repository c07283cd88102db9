"""Files of other projects: buffers, prints, older spellings, torch's dialect, packing, short floats."""

from pathlib import Path

import numpy as np
import pytest
from mlir_execution import execute, random_inputs
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.runner import validate
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.target import host_target


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to write, and an empty cache folder."""
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "mine.mlir"


def _task(file: Path, text: str, suffix: str = "") -> LinalgTask:
    file.write_text(text)
    task = LINALG.task(f"linalg:{file}{suffix}")
    assert isinstance(task, LinalgTask)
    return task


def _names(task: LinalgTask) -> list[str]:
    return [operation.name for operation in task.program.operations]


BUFFERS = """memref.global "private" constant @twos : memref<8x4xf32> = dense<2.0>
func.func @columns(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %out: memref<?x?xf32>) -> memref<8x4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %m = memref.dim %a, %0 : memref<?x?xf32>
  %k = memref.dim %a, %1 : memref<?x?xf32>
  %n = memref.dim %b, %1 : memref<?x?xf32>
  scf.for %j = %0 to %n step %1 {
    %x = memref.subview %b[0, %j] [%k, 1] [1, 1] : memref<?x?xf32> to memref<?xf32, strided<[?], offset: ?>>
    %y = memref.subview %out[0, %j] [%m, 1] [1, 1] : memref<?x?xf32> to memref<?xf32, strided<[?], offset: ?>>
    linalg.matvec ins(%a, %x : memref<?x?xf32>, memref<?xf32, strided<[?], offset: ?>>)
        outs(%y : memref<?xf32, strided<[?], offset: ?>>)
    %is = arith.cmpi eq, %j, %1 : index
    scf.if %is {
      memref.store %one, %out[%0, %j] : memref<?x?xf32>
    }
  }
  %twos = memref.get_global @twos : memref<8x4xf32>
  %own = memref.alloc() : memref<8x4xf32>
  memref.copy %twos, %own : memref<8x4xf32> to memref<8x4xf32>
  %flat = memref.collapse_shape %own [[0, 1]] : memref<8x4xf32> into memref<32xf32>
  linalg.add ins(%flat, %flat : memref<32xf32>, memref<32xf32>) outs(%flat : memref<32xf32>)
  memref.store %one, %own[%1, %1] : memref<8x4xf32>
  return %own : memref<8x4xf32>
}
"""


def test_buffers_become_tensors_and_those_written_to_become_results(file: Path):
    sizes = "?arg0.0=8&arg0.1=5&arg1.0=5&arg1.1=4&arg2.0=8&arg2.1=4"
    task = _task(file, BUFFERS, sizes)
    assert "memref" not in task.text and _names(task) == ["add"]
    a, b, out = inputs = random_inputs(task.text)
    own, changed = execute(task.text, inputs)
    wanted = out + a @ b
    wanted[0, 1] = 1.0
    np.testing.assert_allclose(changed, wanted, rtol=1e-5, atol=1e-5)
    fours = np.full((8, 4), 4.0, np.float32)
    fours[1, 1] = 1.0
    np.testing.assert_array_equal(own, fours)


BETWEEN = """func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1) -> memref<4xf32> {
  %r = scf.if %c -> (memref<4xf32>) { scf.yield %a : memref<4xf32> } else { scf.yield %b : memref<4xf32> }
  linalg.add ins(%a, %b : memref<4xf32>, memref<4xf32>) outs(%r : memref<4xf32>)
  return %r : memref<4xf32>
}
"""


def test_buffers_that_branches_choose_are_refused(file: Path):
    with pytest.raises(ProgramError, match=r"on buffers|hands buffers"):
        _task(file, BETWEEN)


PRINTED = """func.func @main() {
  %A = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %C = arith.constant dense<1000.0> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<3x2xf32>
  %B = linalg.transpose ins(%A : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %D = linalg.matmul ins(%A, %B: tensor<2x3xf32>, tensor<3x2xf32>) outs(%C: tensor<2x2xf32>)
      -> tensor<2x2xf32>
  %unranked = tensor.cast %D : tensor<2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%unranked) : (tensor<*xf32>) -> ()
  %0 = arith.constant 0 : index
  %none = arith.constant -1.0 : f32
  %v = vector.transfer_read %B[%0, %0], %none : tensor<3x2xf32>, vector<3x2xf32>
  vector.print %v : vector<3x2xf32>
  return
}
transform.sequence failures(propagate) {
  ^bb0(%arg1: !transform.any_op):
    %0 = transform.structured.match ops{["linalg.matmul"]} in %arg1 : (!transform.any_op) -> !transform.any_op
    // a brace in a comment }
    %1, %loops:3 = transform.structured.tile %0 [1, 2, 3] : (!transform.any_op) -> (!transform.any_op)
}
func.func private @printMemrefF32(%ptr : tensor<*xf32>)
"""


def test_a_program_without_results_returns_what_it_prints(file: Path):
    product, transposed = execute(_task(file, PRINTED).text, [])
    a = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(product, a @ a.T + 1000.0)
    np.testing.assert_array_equal(transposed, a.T)


UNDEFINED = """module {
  ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func private @nanoTime() -> i64
  func.func @layer() -> tensor<4x6xf32> {
    %x = bufferization.alloc_tensor() : tensor<4x5xf32>
    %w = bufferization.alloc_tensor() : tensor<6x5xf32>
    %e = bufferization.alloc_tensor() : tensor<4x6xf32>
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    %t = tensor.empty() : tensor<5x6xf32>
    %wt = linalg.transpose ins(%w : tensor<6x5xf32>) outs(%t : tensor<5x6xf32>) permutation = [1, 0]
    %r = linalg.matmul ins(%x, %wt : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>)
        -> tensor<4x6xf32>
    return %r : tensor<4x6xf32>
  }
  func.func @main() {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    scf.for %i = %0 to %1 step %1 {
      %begin = func.call @nanoTime() : () -> i64
      %r = func.call @layer() : () -> tensor<4x6xf32>
    }
    return
  }
}
"""


def test_tensors_that_nobody_wrote_become_arguments_of_what_main_calls(file: Path):
    task = _task(file, UNDEFINED)
    assert [shape for shape, _ in task.program.arguments] == [(4, 5), (6, 5)]
    x, w = inputs = random_inputs(task.text)
    [found] = execute(task.text, inputs)
    np.testing.assert_allclose(found, x @ w.T, rtol=1e-5, atol=1e-5)


OLDER = """func.func @main(%a: tensor<7x16xi32>, %e: tensor<2x16x1x4xi32>, %f: tensor<7x16xi32>)
    -> (tensor<2x16x1x4xi32>, tensor<1x7x16xi32>) {
  %zero = arith.constant 0 : i32
  %p = tensor.pack %a padding_value(%zero : i32) inner_dims_pos = [1, 0] inner_tiles = [1, 4]
      into %e : tensor<7x16xi32> -> tensor<2x16x1x4xi32>
  %u = tensor.unpack %p inner_dims_pos = [1, 0] inner_tiles = [1, 4]
      into %f : tensor<2x16x1x4xi32> -> tensor<7x16xi32>
  %x = tensor.expand_shape %u [[0, 1], [2]] : tensor<7x16xi32> into tensor<1x7x16xi32>
  check.expect_almost_eq(%a, %u, %zero) : tensor<7x16xi32>, tensor<7x16xi32>, i32
  return %p, %x : tensor<2x16x1x4xi32>, tensor<1x7x16xi32>
}
"""


def test_packing_in_its_older_spelling(file: Path):
    task = _task(file, OLDER)
    assert "pack" not in task.text
    a = np.arange(7 * 16, dtype=np.int32).reshape(7, 16)
    e = np.zeros((2, 16, 1, 4), np.int32)
    packed, unpacked = execute(task.text, [a, e, np.zeros_like(a)])
    padded = np.concatenate([a, np.zeros((1, 16), np.int32)])
    np.testing.assert_array_equal(packed[..., 0, :], padded.reshape(2, 4, 16).swapaxes(1, 2))
    np.testing.assert_array_equal(unpacked, a[None])


MODULES = """func.func @bad() { "unknown.thing"() : () -> () return }
// -----
func.func @softmax(%x: tensor<3x5xf32>, %e: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}
//-----
func.func @again(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = foo
}
"""


def test_one_module_of_several_in_a_file_and_softmax(file: Path):
    task = _task(file, MODULES, "#softmax")
    x, _ = inputs = random_inputs(task.text)
    powers = np.exp(x)
    np.testing.assert_allclose(
        execute(task.text, inputs)[0], powers / powers.sum(1, keepdims=True), rtol=1e-5
    )
    with pytest.raises(ProgramError, match=r"mine\.mlir:9 is no valid MLIR"):
        _task(file, MODULES, "#again")


TORCH = """func.func @matmul(%a: !torch.vtensor<[8,16],f32>, %b: !torch.vtensor<[16,4],f32>)
    -> !torch.vtensor<[8,4],f32> {
  %r = torch.aten.matmul %a, %b : !torch.vtensor<[8,16],f32>, !torch.vtensor<[16,4],f32>
      -> !torch.vtensor<[8,4],f32>
  return %r : !torch.vtensor<[8,4],f32>
}
"""


def test_torchs_dialect(file: Path):
    task = _task(file, TORCH)
    a, b = inputs = random_inputs(task.text)
    np.testing.assert_allclose(execute(task.text, inputs)[0], a @ b, rtol=1e-5, atol=1e-5)


SCAN = """func.func @main(%x: tensor<8xf32>, %out: tensor<8xf32>, %acc: tensor<f32>) -> tensor<8xf32> {
  %sums, %last = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<8xf32>)
      outs(%out, %acc : tensor<8xf32>, tensor<f32>) {
    ^bb0(%a : f32, %b : f32):
      %sum = arith.addf %a, %b : f32
      tm_tensor.yield %sum : f32
  } -> tensor<8xf32>, tensor<f32>
  %r = linalg.add ins(%sums, %x : tensor<8xf32>, tensor<8xf32>) outs(%out : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""


def test_a_scan_is_left_as_it_is_beside_what_is_scheduled(file: Path):
    task = _task(file, SCAN)
    assert _names(task) == ["add"] and "scf.for" in task.text
    x, *_ = inputs = random_inputs(task.text)
    np.testing.assert_allclose(execute(task.text, inputs)[0], np.cumsum(x) + x, rtol=1e-5, atol=1e-5)


FILLED = """func.func @main(%x: f32, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.fill ins(%x : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


def test_a_program_of_fills_alone_is_refused(file: Path):
    with pytest.raises(ProgramError, match="only operations that begin others: there is nothing to schedule"):
        _task(file, FILLED)


ATTENTION = """func.func @main(%q: tensor<2x?x8xTYPE>, %k: tensor<2x?x8xTYPE>, %v: tensor<2x?x4xTYPE>, MASK
    %o: tensor<2x?x4xTYPE>) -> tensor<2x?x4xTYPE> {
  %r = tm_tensor.attention
      ins(%q, %k, %v INS : tensor<2x?x8xTYPE>, tensor<2x?x8xTYPE>, tensor<2x?x4xTYPE> KINDS)
      outs(%o : tensor<2x?x4xTYPE>) -> tensor<2x?x4xTYPE>
  return %r : tensor<2x?x4xTYPE>
}
"""


def _attended(
    q: NDArray[np.float32],
    k: NDArray[np.float32],
    v: NDArray[np.float32],
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.float32]:
    scores = q @ k.swapaxes(1, 2) / np.float32(np.sqrt(q.shape[-1]))
    powers = np.exp(scores)
    if allowed is not None:
        powers = np.where(allowed, powers, 0)
    sums = powers.sum(2, keepdims=True)
    return (powers / np.where(sums == 0, 1, sums)) @ v


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("masked", [False, True])
def test_attention(file: Path, element: str, masked: bool):
    mask = ("%m: tensor<2x?x?xi1>,", ", %m", ", tensor<2x?x?xi1>") if masked else ("", "", "")
    text = ATTENTION.replace("TYPE", element)
    for name, word in zip(("MASK", " INS", " KINDS"), mask, strict=True):
        text = text.replace(name, word)
    last = 4 if masked else 3
    sizes = {"arg0.1": 5, "arg1.1": 6, "arg2.1": 6, f"arg{last}.1": 5}
    sizes |= {"arg3.1": 5, "arg3.2": 6} if masked else {}
    task = _task(file, text, "?" + "&".join(f"{name}={size}" for name, size in sizes.items()))
    rng = np.random.default_rng(0)
    q, k, v, *_ = inputs = random_inputs(task.text)
    allowed = None
    if masked:
        allowed = inputs[3] = rng.integers(0, 2, (2, 5, 6), np.bool_)
        allowed[0, 0] = False
    [found] = execute(task.text, inputs)
    near = {"f32": 1e-5, "f16": 5e-3, "bf16": 3e-2}[element]
    np.testing.assert_allclose(found, _attended(q, k, v, allowed), rtol=near, atol=near)


SHORT = """func.func @main(%a: tensor<8x16xTYPE>, %b: tensor<16x8xTYPE>) -> tensor<8x8xTYPE> {
  %zero = arith.constant 0.0 : TYPE
  %e = tensor.empty() : tensor<8x8xTYPE>
  %f = linalg.fill ins(%zero : TYPE) outs(%e : tensor<8x8xTYPE>) -> tensor<8x8xTYPE>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xTYPE>, tensor<16x8xTYPE>) outs(%f : tensor<8x8xTYPE>)
      -> tensor<8x8xTYPE>
  %x = math.exp %r : tensor<8x8xTYPE>
  return %x : tensor<8x8xTYPE>
}
"""


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_short_floats_are_computed_with_and_passed_as_float32(file: Path, element: str):
    task = _task(file, SHORT.replace("TYPE", element))
    assert {kind for _, kind in (*task.program.arguments, *task.program.results)} == {"f32"}
    a, b = inputs = [array / 4 for array in random_inputs(task.text)]
    [found] = execute(task.text, inputs)
    near = {"f16": 1e-2, "bf16": 1e-1}[element]
    np.testing.assert_allclose(found, np.exp(a @ b), rtol=near)
    assert not np.allclose(found, np.exp(a @ b), rtol=1e-6)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_short_floats_in_vectors_are_checked(file: Path, element: str):
    task = _task(file, SHORT.replace("TYPE", element))
    rng = np.random.default_rng(1)
    state = task.initial()
    while not task.terminal(state):
        at = _names(task)[task.at_hand(state)]
        wanted = ["tile_4_8_1", "vectorise_0"] if at == "matmul" else []
        for text in wanted:
            state = task.step(state, task.space.parse(text))
        state = task.step(state, task.space.parse("next"))
    assert "vectorize" in task.script(state)
    said = validate(task.text, task.script(state), host_target(), 2, int(rng.integers(99)))
    assert said.ok, said.detail
