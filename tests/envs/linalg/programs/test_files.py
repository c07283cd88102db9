"""Data sets of files with several functions."""

from pathlib import Path

import pytest

from irgym.base.errors import ProgramError
from irgym.core.datasets import dataset_named
from irgym.envs.linalg.environment import LINALG

PRODUCT = """
func.func @{name}(%x: tensor<{rows}x8xf32>, %y: tensor<8x8xf32>, %z: tensor<{rows}x8xf32>)
    -> tensor<{rows}x8xf32> {{
  %0 = linalg.matmul ins(%x, %y : tensor<{rows}x8xf32>, tensor<8x8xf32>)
    outs(%z : tensor<{rows}x8xf32>) -> tensor<{rows}x8xf32>
  return %0 : tensor<{rows}x8xf32>
}}
"""


def test_each_function_of_a_file_is_a_program(tmp_path: Path):
    file = tmp_path / "all.mlir"
    functions = (("first", "4"), ("second", "16"), ("open", "?"))
    file.write_text("".join(PRODUCT.format(name=name, rows=rows) for name, rows in functions))
    dataset = dataset_named(LINALG, file)
    assert set(dataset.all) == {f"linalg:{file}#first", f"linalg:{file}#second"}
    [left_out] = dataset.left_out
    assert "leaves sizes open" in left_out and left_out.endswith("#open")
    assert dataset_named(LINALG, f"{file}#second").all == (f"linalg:{file}#second",)
    file.write_text("".join(PRODUCT.format(name=name, rows="?") for name in ("first", "second")))
    with pytest.raises(ProgramError, match=r"no function that can be imported, such as: .*#first"):
        dataset_named(LINALG, file)
