"""Transpositions are moved to where their result is packed, and done by blocks."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch_mlir")

from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import runner
from irgym.envs.linalg.compiling.compiler import bufferise, lower
from irgym.envs.linalg.compiling.contexts import apply, mlir, parse
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.task import LinalgTask


def layer(rows: int, inputs: int, outputs: int) -> str:
    """Return a product with a row of weights for each output, as in torch."""
    weights, turned = f"tensor<{outputs}x{inputs}xf32>", f"tensor<{inputs}x{outputs}xf32>"
    given, result = f"tensor<{rows}x{inputs}xf32>", f"tensor<{rows}x{outputs}xf32>"
    return f"""
func.func @main(%w: {weights}, %x: {given}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %columns = tensor.empty() : {turned}
  %turned = linalg.transpose ins(%w : {weights}) outs(%columns : {turned}) permutation = [1, 0]
  %empty = tensor.empty() : {result}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %y = linalg.matmul ins(%x, %turned : {given}, {turned}) outs(%start : {result}) -> {result}
  return %y : {result}
}}"""


@pytest.fixture
def task(tmp_path: Path, request: pytest.FixtureRequest) -> LinalgTask:
    path = tmp_path / "layer.mlir"
    path.write_text(layer(*request.param))
    return LINALG.task(f"linalg:{path}")


def on_memory(task: LinalgTask, schedule: str) -> str:
    """Return a program on memory after a schedule, whose results are checked."""
    script = task.script(replay(task, Schedule.parse(schedule, task.space)))
    verdict = runner.validate(task.text, script, task.target, inputs=2, seed=5)
    assert verdict.ok, verdict
    with mlir():
        module = parse(task.text)
        if script:
            apply(module, script)
        bufferise(module, None)
        return str(module)


@pytest.mark.parametrize("task", [(12, 40, 64), (7, 37, 50), (5, 64, 20)], indirect=True)
@pytest.mark.parametrize(
    "schedule",
    [
        "tile_0_16 pack_1",
        "tile_0_16 pack_1 tile_1_0_1",
        "tile_0_0_8 tile_0_12 pack_1 tile_4_0_1",
        "tile_0_16 tile_0_0_14 pack_1 tile_1_0_1 vectorise_0",
    ],
)
def test_weights_are_transposed_where_they_are_packed(task: LinalgTask, schedule: str):
    assert len(task.order) == 1, "the transposition has no turn"
    inputs, outputs = task.program.operations[0].bounds
    text = on_memory(task, schedule)
    assert f"memref<{inputs}x{outputs}xf32>" not in text and "linalg.transpose" not in text


@pytest.mark.parametrize("task", [(12, 40, 64), (7, 37, 50)], indirect=True)
@pytest.mark.parametrize("schedule", ["", "tile_0_16 tile_1_0_1 vectorise_0", "tile_0_16_8 pack_0"])
def test_weights_that_are_not_packed_are_transposed_whole(task: LinalgTask, schedule: str):
    inputs, outputs = task.program.operations[0].bounds
    whole = f"memref.alloc() {{alignment = 64 : i64}} : memref<{inputs}x{outputs}xf32>"
    assert whole in on_memory(task, schedule)


SKIPPING = """
func.func @main(%w: tensor<32x16xf32>, %x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %zero = arith.constant 0.0 : f32
  %columns = tensor.empty() : tensor<16x32xf32>
  %turned = linalg.transpose ins(%w : tensor<32x16xf32>) outs(%columns : tensor<16x32xf32>)
      permutation = [1, 0]
  %half = tensor.extract_slice %turned[0, 0] [16, 16] [1, 2] : tensor<16x32xf32> to tensor<16x16xf32>
  %empty = tensor.empty() : tensor<6x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x16xf32>) -> tensor<6x16xf32>
  %y = linalg.matmul ins(%x, %half : tensor<6x16xf32>, tensor<16x16xf32>)
      outs(%start : tensor<6x16xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}"""


def test_every_second_column_of_a_transposition(tmp_path: Path):
    path = tmp_path / "skipping.mlir"
    path.write_text(SKIPPING)
    task = LINALG.task(f"linalg:{path}")
    on_memory(task, "tile_0_8 pack_1 tile_3_0_1 next")


@pytest.mark.parametrize("task", [(4, 16, 8)], indirect=True)
def test_a_transposition_that_others_read_too_has_a_turn(tmp_path: Path, task: LinalgTask):
    path = tmp_path / "added.mlir"
    kind = "tensor<16x8xf32>"
    add = f"linalg.add ins(%turned, %turned : {kind}, {kind}) outs(%columns : {kind})"
    text = layer(4, 16, 8).replace("-> tensor<4x8xf32> {", "-> (tensor<4x8xf32>, tensor<16x8xf32>) {")
    text = text.replace(
        "  return %y : tensor<4x8xf32>",
        f"  %z = {add} -> tensor<16x8xf32>\n  return %y, %z : tensor<4x8xf32>, tensor<16x8xf32>",
    )
    path.write_text(text)
    turns = LINALG.task(f"linalg:{path}").program.turns
    assert turns == (0, 2, 3) and task.program.turns == (2,)


@pytest.mark.parametrize("task", [(4, 16, 8)], indirect=True)
def test_a_part_takes_the_transposition_along(tmp_path: Path, task: LinalgTask):
    path = tmp_path / "two.mlir"
    path.write_text(
        layer(4, 16, 8).replace(
            "  return %y : tensor<4x8xf32>",
            "  %z = linalg.add ins(%y, %y : tensor<4x8xf32>, tensor<4x8xf32>)"
            " outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>\n  return %z : tensor<4x8xf32>",
        )
    )
    product, added = LINALG.task(f"linalg:{path}").parts()
    assert [operation.name for operation in product.program.operations] == ["transpose", "fill", "matmul"]
    assert product.program == task.program and [operation.name for operation in added.program.operations] == [
        "add"
    ]


TURNED = """
func.func @main(%x: tensor<{shape}x{kind}>) -> tensor<{result}x{kind}> {{
  %empty = tensor.empty() : tensor<{result}x{kind}>
  %y = linalg.transpose ins(%x : tensor<{shape}x{kind}>) outs(%empty : tensor<{result}x{kind}>)
      permutation = {order}
  return %y : tensor<{result}x{kind}>
}}"""


@pytest.mark.parametrize("kind", ["f32", "i64"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((64, 48), (1, 0)),
        ((37, 21), (1, 0)),
        ((3, 100), (1, 0)),
        ((1, 17), (1, 0)),
        ((2, 3, 20, 9), (0, 3, 1, 2)),
        ((2, 3, 20, 9), (3, 2, 1, 0)),
        ((2, 3, 20, 9), (0, 2, 1, 3)),
    ],
)
def test_whole_transpositions(shape: tuple[int, ...], order: tuple[int, ...], kind: str):
    given = (
        np.random.default_rng(0).integers(0, 1000, shape).astype({"f32": np.float32, "i64": np.int64}[kind])
    )
    wanted = given.transpose(order)
    result = np.zeros_like(wanted, order="C")
    words = {"shape": "x".join(map(str, shape)), "result": "x".join(map(str, wanted.shape))}
    with mlir():
        module = lower(TURNED.format(**words, kind=kind, order=list(order)), "")
        executable = Executable(module, [given, result])
    executable.run(1)
    np.testing.assert_array_equal(result, wanted)


def test_floats_are_transposed_by_vectors():
    text = TURNED.format(shape="64x48", result="48x64", kind="f32", order=[1, 0])
    with mlir():
        module = parse(text)
        bufferise(module, None)
        found = str(module)
    assert "vector.shuffle" in found and "memref.load" not in found
