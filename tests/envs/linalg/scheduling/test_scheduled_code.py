"""What the MLIR of scheduled programs holds: that a transformation was really made, not only recorded."""

from pathlib import Path

import pytest

pytest.importorskip("torch_mlir")

from irgym.core.errors import ProgramError
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import runner
from irgym.envs.linalg.environment import LINALG
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
    # The result starts from an argument: measured again and again, it must not grow.
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


SOFTMAX = """
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""


def test_an_operation_without_loops_is_named(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"linalg\.softmax has no loops that can be scheduled"):
        of_file(SOFTMAX, tmp_path)
