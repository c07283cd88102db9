"""Imported programs are compared with runs of their original files."""

import resource
from pathlib import Path

import pytest

pytest.importorskip("torch_mlir")

import numpy as np

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.plain import computed
from irgym.envs.linalg.importing.given import refuse_other_results
from irgym.envs.linalg.importing.modules import program_of_file


def scaled(function: str, name: str = "main") -> str:
    return f"""
    func.func private @once(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {{
      %e = tensor.empty() : tensor<3x4xf32>
      %0 = linalg.{function} ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    }}
    func.func @{name}(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {{
      %0 = call @once(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
      return %0 : tensor<3x4xf32>
    }}"""


def test_an_import_that_computes_something_else_is_refused():
    right, wrong = (program_of_file(scaled(operation), "mine") for operation in ("abs", "negf"))
    refuse_other_results(scaled("abs", "mine"), "mine", "", right, {})
    with pytest.raises(ProgramError, match="mine: what is imported of it computes something else"):
        refuse_other_results(scaled("abs", "mine"), "mine", "", wrong, {})


def test_plain_code_copies_memory_of_any_strides():
    """MLIR calls its runtime library for copies; a function of ours replaces it."""
    text = """func.func @main(%x: tensor<4x6xf32>, %y: tensor<2x3xf32>) -> tensor<4x6xf32> {
      %0 = tensor.insert_slice %y into %x[1, 1] [2, 3] [1, 2] : tensor<2x3xf32> into tensor<4x6xf32>
      %1 = linalg.abs ins(%0 : tensor<4x6xf32>) outs(%x : tensor<4x6xf32>) -> tensor<4x6xf32>
      return %1 : tensor<4x6xf32>
    }"""
    x, y = np.ones((4, 6), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    [found] = computed(text, [x, np.asfortranarray(y)])
    wanted = x.copy()
    wanted[1:3, 1:6:2] = y
    assert np.array_equal(found, wanted) and (x == 1).all()


def resident_bytes() -> int:
    """Return the memory that this process has in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_plain_code_frees_its_memory():
    """The checks call a program many times, in a process of limited memory."""
    wide = "tensor<1024x4096xf32>"
    text = f"""func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {{
      %zero = arith.constant 0.0 : f32
      %0 = tensor.empty() : {wide}
      %1 = linalg.broadcast ins(%x : tensor<1024xf32>) outs(%0 : {wide}) dimensions = [1]
      %2 = linalg.abs ins(%1 : {wide}) outs(%0 : {wide}) -> {wide}
      %3 = tensor.empty() : tensor<1024xf32>
      %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<1024xf32>) -> tensor<1024xf32>
      %5 = linalg.reduce {{ arith.addf }} ins(%2 : {wide}) outs(%4 : tensor<1024xf32>) dimensions = [1]
      return %5 : tensor<1024xf32>
    }}"""
    x = -np.ones(1024, np.float32)
    computed(text, [x])
    before = resident_bytes()
    for _ in range(8):
        [found] = computed(text, [x])
        assert (found == 4096).all()
    assert resident_bytes() - before < 4 * 2**24, "a call has intermediate results of at least 16 MiB"
