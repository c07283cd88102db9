"""All buffers of a program in one block of memory."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch_mlir")

from irgym.envs.linalg.compiling.compiler import ENTRY, bufferise, function_of, lower
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.compiling.memory import ALIGNMENT, Buffer, plan, share_memory

TIMES = st.tuples(st.integers(0, 20), st.integers(0, 6))
BUFFERS = st.lists(
    st.builds(lambda lines, t: Buffer(lines * ALIGNMENT, t[0], sum(t)), st.integers(0, 9), TIMES)
)


@given(BUFFERS.filter(bool))
def test_buffers_in_use_at_the_same_time_lie_apart(buffers: list[Buffer]):
    offsets, total = plan(buffers)
    lines = [range(offset, offset + buffer.size) for offset, buffer in zip(offsets, buffers, strict=True)]
    for a, buffer in enumerate(buffers):
        assert offsets[a] % ALIGNMENT == 0 and lines[a].stop <= total
        for b in range(a):
            if buffer.meets(buffers[b]) and buffer.size and buffers[b].size:
                assert lines[a].stop <= lines[b].start or lines[b].stop <= lines[a].start
    needed = max(
        sum(buffer.size for buffer in buffers if buffer.first <= time <= buffer.last) for time in range(28)
    )
    assert needed <= total <= sum(buffer.size for buffer in buffers)


def test_buffers_one_after_the_other_share_a_place():
    offsets, total = plan([Buffer(64, 0, 1), Buffer(128, 1, 2), Buffer(64, 2, 3), Buffer(64, 3, 4)])
    assert total == 192 and offsets[1] == 0 and offsets[0] == offsets[2] == 128 and offsets[3] == 0


LAYERS = 5
TEXT = "\n".join(
    [
        f"func.func @{ENTRY}(%x0: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {{",
        "  %zero = arith.constant 0.0 : f32",
        "  %empty = tensor.empty() : tensor<16x16xf32>",
        "  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>",
        *(
            f"  %x{n + 1} = linalg.matmul ins(%x{n}, %w : tensor<16x16xf32>, tensor<16x16xf32>)"
            " outs(%start : tensor<16x16xf32>) -> tensor<16x16xf32>"
            for n in range(LAYERS)
        ),
        f"  return %x{LAYERS} : tensor<16x16xf32>",
        "}",
    ]
)
"""A chain of products."""


def test_a_program_allocates_once():
    with mlir():
        module = parse(TEXT)
        bufferise(module, None)
        before = str(module)
        share_memory(function_of(module))
        after = str(module)
    assert before.count("memref.alloc") > 2
    sizes = re.findall(r"memref.alloc\(\) .*: memref<(\d+)xi8>", after)
    assert after.count("memref.alloc") == len(sizes) == after.count("memref.dealloc") == 1
    assert int(sizes[0]) == 2 * 16 * 16 * 4, "what is read and what is written"


def test_results_are_the_same_each_time():
    x, w = np.random.default_rng(0).random((2, 16, 16), dtype=np.float32)
    result = np.empty_like(x)
    with mlir():
        executable = Executable(lower(TEXT, ""), [x, w, result])
    for _ in range(3):
        result[:] = np.nan
        executable.run(1)
        np.testing.assert_allclose(result, x @ np.linalg.matrix_power(w, LAYERS), rtol=1e-4)


def test_a_buffer_that_is_returned_or_chosen_is_left_alone():
    text = """
    func.func @main(%which: i1, %out: memref<4xf32>) {
      %zero = arith.constant 0 : index
      %value = arith.constant 1.0 : f32
      %first = memref.alloc() : memref<4xf32>
      %second = memref.alloc() : memref<4xf32>
      %third = memref.alloc() : memref<4xf32>
      %chosen = arith.select %which, %first, %second : memref<4xf32>
      memref.store %value, %chosen[%zero] : memref<4xf32>
      memref.store %value, %third[%zero] : memref<4xf32>
      memref.dealloc %first : memref<4xf32>
      memref.dealloc %second : memref<4xf32>
      memref.dealloc %third : memref<4xf32>
      return
    }"""
    with mlir():
        module = parse(text)
        share_memory(function_of(module))
        after = str(module)
    assert after.count("memref.alloc() : memref<4xf32>") == 2 and after.count("memref<64xi8>") == 3
