"""Scheduled programs on memory have no unnecessary copies, buffers or gathers."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch_mlir")

from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import runner
from irgym.envs.linalg.compiling.compiler import bufferise
from irgym.envs.linalg.compiling.contexts import apply, mlir, parse
from irgym.envs.linalg.environment import LINALG

STRIDED = "linalg://conv2d/2x6x19x33x10x3x3?stride=2"
"""Results of 9 rows and 16 columns."""


def lowered(uri: str, schedule: str) -> str:
    """Return a program on memory after a schedule, whose results are checked."""
    task = LINALG.task(uri)
    script = task.script(replay(task, Schedule.parse(schedule, task.space)))
    verdict = runner.validate(task.text, script, task.target, inputs=2, seed=5)
    assert verdict.ok, verdict
    with mlir():
        module = parse(task.text)
        apply(module, script)
        bufferise(module, None)
        return str(module)


@pytest.mark.parametrize(
    ("uri", "schedule"),
    [
        ("linalg://matmul/24x64x32", "tile_8_16_1 vectorise_0"),
        ("linalg://matmul/25x40x32", "tile_0_16 tile_6_0_1 vectorise_0"),
        ("linalg://conv2d/1x8x10x10x16x3x3", "tile_0_4_1_0_1_1_1 vectorise_0"),
        ("linalg://add/8x32", "tile_2_16 vectorise_0"),
        ("linalg://maxpool/1x16x10x10x3", "tile_0_4_1_0_1_1 vectorise_0"),
    ],
)
def test_results_are_computed_in_place(uri: str, schedule: str):
    assert "memref.alloc" not in lowered(uri, schedule)


@pytest.mark.parametrize(
    ("shape", "schedule", "lanes"),
    [
        ("24x64x32", "tile_0_16 pack_1 tile_6_0_1 vectorise_0", [16]),
        ("24x60x32", "tile_0_12 pack_1", [8, 4]),
        ("24x64x35", "tile_8_0_7 pack_0", [4, 2, 1]),
        ("4x200x8", "tile_0_96 pack_1", [16, 8]),
    ],
)
def test_packed_inputs_are_copied_by_vectors(shape: str, schedule: str, lanes: list[int]):
    loads = re.findall(r"vector.load .*, vector<(\d+)xf32>", lowered(f"linalg://matmul/{shape}", schedule))
    assert {int(load) for load in loads} >= set(lanes)


def test_a_copy_without_gaps_is_left_to_memcpy():
    # Whole rows of 32: the six of a tile are contiguous.
    assert "vector.load" not in lowered("linalg://matmul/24x8x32", "tile_6 pack_0")


@pytest.mark.parametrize(
    ("uri", "schedule"),
    [
        ("linalg://matmul/25x40x32", "tile_0_0_16 tile_6_16_1 vectorise_0"),
        ("linalg://matmul/24x48x32", "tile_16_6_1 vectorise_1"),
        ("linalg://conv2d/1x8x10x12x16x3x3", "tile_0_4_1_0_1_1_1 vectorise_0"),
        ("linalg://conv2d/1x8x10x10x16x3x3", "tile_0_8_1_4_1_1_1 vectorise_1"),
        ("linalg://depthwise_conv2d/1x8x10x18x3x3", "tile_0_4_0_1_1_1 vectorise_0"),
    ],
)
def test_sums_start_from_zero_and_what_there_was_is_added_last(uri: str, schedule: str):
    text = lowered(uri, schedule)
    starts: set[str] = set()
    for carried, kinds in re.findall(r"iter_args\(([^)]*)\) -> \(([^)]*)\)", text):
        for value, kind in zip(re.findall(r"= (%\w+)", carried), kinds.split(", "), strict=True):
            if re.match(r"vector<\d+x\d+x", kind):
                starts.add(value)
    # An inner loop continues from the outer loop's value.
    outer = {start for start in starts if not start.startswith("%arg")}
    assert outer
    assert all(f"{start} = arith.constant dense<0.0" in text for start in outer)
    assert "arith.addf" in text


def test_a_greatest_element_does_not_start_from_zero():
    assert "arith.constant dense<0.0" not in lowered(
        "linalg://maxpool/1x16x12x12x3", "tile_0_4_1_0_1_1 vectorise_0"
    )


PATCHES = "memref.alloc() {alignment = 64 : i64} : memref<2x54x144xf32>"


@pytest.mark.parametrize(
    ("schedule", "lanes"),
    [
        ("tile_1_0_16 pack_1 tile_0_4_0_1 vectorise_0", 16),
        ("tile_0_0_48_7 pack_1 tile_1_0_16 tile_0_4_0_1 vectorise_0", 16),
        ("tile_1_0_8_6 pack_1", 8),
        ("tile_1_0_12 pack_1", 4),
        ("tile_1_0_7 pack_1", 1),
        ("tile-parallel_1_0_24 pack_1", 8),
    ],
)
def test_packed_patches_are_gathered_where_they_are_packed(schedule: str, lanes: int):
    text = lowered(STRIDED, f"img2col {schedule}")
    assert PATCHES not in text
    assert f"vector<{lanes}xf32>" in text


@pytest.mark.parametrize(
    "uri",
    [
        STRIDED,
        "linalg://conv2d/1x3x11x30x4x4x3",
        "linalg://conv2d/2x3x12x12x4x1x1",
        "linalg://conv2d/1x2x17x17x4x5x2?stride=3",
        "linalg://conv2d/1x2x20x20x4x2x2?stride=4",
    ],
)
@pytest.mark.parametrize("schedule", ["", "tile_0_0_14 pack_1", "tile_0_0_8_2 pack_1", "tile_0_2_5_2 pack_1"])
def test_patches_of_all_shapes_are_right(uri: str, schedule: str):
    # A product of whole patches is not packed, so that all patches are gathered.
    text = lowered(uri, f"img2col {schedule}".strip())
    assert "floordiv" not in text


def test_a_pack_of_something_else_leaves_the_patches_whole():
    text = lowered(STRIDED, "img2col tile_1_4 pack_0")
    assert PATCHES in text


@pytest.mark.parametrize(
    ("uri", "schedule"),
    [
        ("linalg://maxpool/1x8x17x33x3?stride=2", "tile_0_1_1_0_1_1 vectorise_0"),
        ("linalg://maxpool/2x6x18x36x2?stride=2", "tile_1_3_2_0_1_1 vectorise_0"),
        ("linalg://maxpool/1x8x17x15x3?stride=2", "tile_0_2_3_4_1_1 vectorise_0"),
        ("linalg://depthwise_conv2d/1x8x17x33x3x3?stride=2", "tile_0_4_0_1_1_1 vectorise_0"),
        ("linalg://depthwise_conv2d/1x8x17x27x3x3?stride=2", "tile_0_2_0_1_1_1 vectorise_0"),
        (STRIDED, "tile_1_4_1_0_1_1_1 vectorise_0"),
        (STRIDED, "tile_1_8_1_4_1_1_1 vectorise_1"),
    ],
)
def test_operations_that_skip_elements_have_vectors(uri: str, schedule: str):
    text = lowered(uri, schedule)
    assert "vector.shuffle" in text and "linalg.generic" not in text


def test_rows_that_are_read_across_are_not_put_together():
    # Tiles of four channels and four rows are read transposed, which their shape does not show.
    turned = "interchange_3 interchange_0 interchange_2 interchange_5 interchange_4"
    lowered("linalg://maxpool/1x16x16x16x3?stride=2", f"tile_0_6_4_3 {turned} tile_2_0_0_2_1 vectorise_0")


SLICED = """
#both = affine_map<(i, j) -> (i, j)>
#every_second_row = affine_map<(i, j) -> (i * 2, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @main(%image: tensor<1x4x9x17xf32>, %x: tensor<11x8xf32>, %y: tensor<17xf32>)
    -> (tensor<1x4x4x8xf32>, tensor<6x8xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %pooled = tensor.empty() : tensor<1x4x4x8xf32>
  %filled = linalg.fill ins(%low : f32) outs(%pooled : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %0 = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%image, %window : tensor<1x4x9x17xf32>, tensor<2x2xf32>)
      outs(%filled : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %odd = tensor.extract_slice %y[1] [8] [2] : tensor<17xf32> to tensor<8xf32>
  %sums = tensor.empty() : tensor<6x8xf32>
  %1 = linalg.generic {indexing_maps = [#every_second_row, #columns, #both],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %odd : tensor<11x8xf32>, tensor<8xf32>) outs(%sums : tensor<6x8xf32>) {
  ^bb0(%one: f32, %other: f32, %old: f32):
    %sum = arith.addf %one, %other : f32
    linalg.yield %sum : f32
  } -> tensor<6x8xf32>
  return %0, %1 : tensor<1x4x4x8xf32>, tensor<6x8xf32>
}
"""


def test_slices_that_the_program_takes_are_read_from_where_they_begin(tmp_path: Path):
    (tmp_path / "sliced.mlir").write_text(SLICED)
    lowered(f"linalg:{tmp_path / 'sliced.mlir'}", "tile_1 vectorise_0 next tile_0_1_1_0_1_1 vectorise_0")


def test_more_than_every_second_element_of_a_row_is_not_skipped():
    task = LINALG.task("linalg://maxpool/1x8x17x33x3?stride=3")
    for tile, vectorised in (("tile_0_1_1_4_1_1", False), ("tile_0_4_4_1_1_1", True)):
        state = replay(task, Schedule.parse(tile, task.space))
        assert task.space.allows(task.mask(state), task.space.parse("vectorise_0")) == vectorised
        if vectorised:
            lowered(task.uri, f"{tile} vectorise_0")


ERF = """
#same = affine_map<(a, b) -> (a, b)>
func.func @main(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %empty = tensor.empty() : tensor<4x32xf32>
  %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
    ^body(%in: f32, %out: f32):
      %erf = math.erf %in : f32
      linalg.yield %erf : f32
  } -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}
"""


def test_functions_without_an_instruction_have_vectors_too(tmp_path: Path):
    path = tmp_path / "erf.mlir"
    path.write_text(ERF)
    task = LINALG.task(f"linalg:{path}")
    script = task.script(replay(task, Schedule.parse("tile_2_16 vectorise_0", task.space)))
    verdict = runner.validate(task.text, script, task.target, inputs=2, seed=5)
    assert verdict.ok, verdict
