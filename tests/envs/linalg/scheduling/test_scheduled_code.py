"""MLIR of scheduled programs: transformations are really made, not only recorded."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch_mlir")

from irgym.base.errors import ProgramError
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import runner
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.task import LinalgTask


def code(task: LinalgTask, schedule: str) -> str:
    state = replay(task, Schedule.parse(schedule, task.space))
    assert runner.validate(task.text, task.script(state), task.target, inputs=1, seed=3).ok
    return runner.written(task.text, task.script(state), "mlir", task.target)


def of_file(text: str, folder: Path) -> LinalgTask:
    (folder / "mine.mlir").write_text(text)
    return LINALG.task(f"linalg:{folder / 'mine.mlir'}")


TURNED = "interchange_1 interchange_0 interchange_2 interchange_3 interchange_4"


@pytest.mark.parametrize(
    ("uri", "schedule"),
    [
        ("linalg://matmul/16x32x8", "tile_4_16_1 vectorise_0"),
        ("linalg://conv2d/1x8x10x10x16x3x3", "tile_0_4_1_0_1_1_1 vectorise_1"),
        ("linalg://conv2d/1x8x10x10x16x3x3", "img2col tile_0_8_16_1 vectorise_0"),
        ("linalg://maxpool/1x16x12x12x3", "tile_0_4_1_0_1_1 vectorise_0"),
        ("linalg://maxpool/1x8x8x8x2?stride=2", "tile_0_0_1_1_1_1 vectorise_0"),
        ("linalg://maxpool/1x16x12x12x3", f"{TURNED} tile_4_0_1_0_1_1 vectorise_0"),
        ("linalg://add/8x32", "tile_2_16 vectorise_0"),
        ("linalg://relu/8x32", "tile_2_16 vectorise_0"),
    ],
)
def test_vectorised_operations_have_vectors(uri: str, schedule: str):
    assert "vector." in code(LINALG.task(uri), schedule)


@pytest.mark.parametrize(
    ("uri", "schedule", "copies"),
    [
        ("linalg://matmul/24x64x32", "tile_0_16 pack_1 tile_4_0_1 vectorise_0", ["32x16"]),
        ("linalg://matmul/24x64x32", "tile_8_0_16 pack_0 tile_0_16 pack_1", ["8x16", "16x16"]),
        ("linalg://matmul/25x40x32", "tile_0_16 pack_1 tile_6_0_1 vectorise_0", ["32x16", "32x8"]),
        ("linalg://batch_matmul/3x24x32x40", "tile_1_0_16 pack_1", ["1x40x16"]),
        ("linalg://conv2d/1x8x10x10x16x3x3", "tile_0_4 pack_1 tile_0_0_1_0_1_1_1", ["4x8x3x3"]),
        ("linalg://conv2d/1x8x10x10x16x3x3", "img2col tile_0_0_16_24 pack_1", ["1x24x16"]),
        ("linalg://matmul/24x64x32", "tile-parallel_8_16 pack_0 pack_1", ["8x32", "32x16"]),
    ],
)
def test_packed_inputs_are_copied_tile_by_tile(uri: str, schedule: str, copies: list[str]):
    task = LINALG.task(uri)
    written = code(task, schedule)
    for shape in copies:
        assert f"bufferization.alloc_tensor() : tensor<{shape}xf32>" in written


def test_an_input_is_packed_once_within_a_tile_and_before_vectors():
    task = LINALG.task("linalg://matmul/24x64x32")

    def packs(schedule: str) -> list[str]:
        state = replay(task, Schedule.parse(schedule, task.space))
        return [action for action in ("pack_0", "pack_1") if allowed(task, state, action)]

    assert packs("") == []
    assert packs("tile_8_16") == ["pack_0", "pack_1"]
    assert packs("tile_8_16 pack_1 tile_4_0_1") == ["pack_0"]
    assert packs("tile_8_16_1 vectorise_0") == []
    sums = LINALG.task("linalg://add/8x32")
    assert not allowed(sums, replay(sums, Schedule.parse("tile_4_8", sums.space)), "pack_0")


def allowed(task: LinalgTask, state: LinalgState, text: str) -> bool:
    return task.space.allows(task.mask(state), task.space.parse(text))


def test_a_policy_sees_what_is_packed():
    task = LINALG.task("linalg://matmul/24x64x32")
    plain, copied = (
        task.observe(replay(task, Schedule.parse(text, task.space)))
        for text in ("tile_8_16", "tile_8_16 pack_1")
    )
    changed = np.flatnonzero(plain[0] != copied[0])
    assert 2.0 in copied[0][changed] and len(changed) == 2  # and the steps spent


NHWC = """
func.func @main(%x: tensor<1x8x8x4xf32>, %w: tensor<1x1x4x16xf32>, %y: tensor<1x8x8x16xf32>)
    -> tensor<1x8x8x16xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf
      ins(%x, %w : tensor<1x8x8x4xf32>, tensor<1x1x4x16xf32>) outs(%y : tensor<1x8x8x16xf32>)
      -> tensor<1x8x8x16xf32>
  return %0 : tensor<1x8x8x16xf32>
}
"""


def test_a_convolution_of_channels_last_has_vectors_and_keeps_its_arguments(tmp_path: Path):
    task = of_file(NHWC, tmp_path)
    assert "vector." in code(task, "tile_0_1_0_0_0_0_1 vectorise_0")
    # The result starts from an argument: it must not grow over repeated measurements.
    with LINALG.bench() as bench:
        states = [task.initial(), replay(task, Schedule.parse("tile_0_1_0_0_0_0_1 vectorise_0", task.space))]
        for measurement in bench.measure([task.job(state) for state in states] * 2):
            assert measurement.ok, measurement.detail


DILATED = """
func.func @main(%x: tensor<1x4x10x10xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x8x6x6xf32>
  %y = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<2> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x4x10x10xf32>, tensor<8x4x3x3xf32>) outs(%y : tensor<1x8x6x6xf32>)
      -> tensor<1x8x6x6xf32>
  return %0 : tensor<1x8x6x6xf32>
}
"""


def test_img2col_is_barred_where_mlir_refuses_it(tmp_path: Path):
    task = of_file(DILATED, tmp_path)
    assert "img2col" not in task.space.options(task.mask(task.initial()))
    assert "vector." in code(task, "tile_0_4_1_0_1_1_1 vectorise_1")


SHIFTED = """
#from_two = affine_map<(d0) -> (d0 + 2)>
#same = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<10xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#from_two, #same], iterator_types = ["parallel"]}
      ins(%a : tensor<10xf32>) outs(%empty : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %in : f32
      linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_a_loop_that_begins_beyond_the_tensor_has_the_bound_of_the_result(tmp_path: Path):
    task = of_file(SHIFTED, tmp_path)
    assert task.program.operations[0].bounds == (8,)
    assert "scf.for" in code(task, "tile_4")
    assert "vectorise" not in task.space.options(
        task.mask(replay(task, Schedule.parse("tile_4", task.space)))
    )


WINOGRAD = """
func.func @main(%f: tensor<2x3x3x5xf32>) -> tensor<6x6x5x2xf32> {
  %e = tensor.empty() : tensor<6x6x5x2xf32>
  %0 = linalg.winograd_filter_transform fmr(F_4_3) ins(%f : tensor<2x3x3x5xf32>)
      outs(%e : tensor<6x6x5x2xf32>) -> tensor<6x6x5x2xf32>
  return %0 : tensor<6x6x5x2xf32>
}
"""


def test_an_operation_without_loops_is_named(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"linalg\.winograd_filter_transform has no loops"):
        of_file(WINOGRAD, tmp_path)
