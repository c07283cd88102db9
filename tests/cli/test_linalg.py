"""Commands on the user's own MLIR, which no baseline computes."""

import json
from pathlib import Path

import pytest
from commands import Command

pytest.importorskip("torch_mlir")

from irgym.envs.linalg.environment import LINALG_SWAPS

PROGRAM = """
func.func @main(%a: tensor<8x12xf32>, %b: tensor<12x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %product = linalg.matmul ins(%a, %b : tensor<8x12xf32>, tensor<12x16xf32>)
      outs(%filled : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %product : tensor<8x16xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "mine.mlir").write_text(PROGRAM)
    return f"linalg:{tmp_path / 'mine.mlir'}"


def test_a_file_is_tuned_exported_and_replayed(irgym: Command, program: str, tmp_path: Path):
    search = ("--search", "evolutionary", "--evaluations", "6", "--seed", "1")
    output = ("--json", tmp_path / "tuned.json", "--export", tmp_path / "tuned.mlir")
    result = irgym("tune", program, *search, *output)
    assert result.code == 0 and "no function that computes" in result.out, result.err
    data = json.loads((tmp_path / "tuned.json").read_text())
    assert data["validated"] and data["baseline"] == "torch" and data["baseline_ratio"] is None
    assert "torch has no function" in data["baseline_detail"]
    assert "func.func" in (tmp_path / "tuned.mlir").read_text()
    assert irgym("replay", program, data["schedule"]).code == 0


def test_a_program_without_a_baseline_is_compared(irgym: Command, program: str, tmp_path: Path):
    methods = ("--methods", "base,evolutionary,torch", "--programs", program, "--evaluations", "4")
    result = irgym("compare", "linalg", *methods, "--json", tmp_path / "compared.json")
    assert result.code == 0, result.err
    said = " ".join(result.out.split())
    assert said.count("no ratio to torch on") == 1 and said.count("torch failed on") == 1
    rows = {row["method"]: row for row in json.loads((tmp_path / "compared.json").read_text())["rows"]}
    assert rows["base"]["validated"] and rows["evolutionary"]["baseline_ratio"] is None
    assert rows["torch"]["cost"] is None


def test_swaps_are_compared_without_a_policy_to_name(irgym: Command, monkeypatch: pytest.MonkeyPatch):
    # What takes long is left out: torch.compile alone takes a minute.
    assert not any(method.endswith(":default") for method in LINALG_SWAPS.default_methods)
    methods = [
        method for method in LINALG_SWAPS.default_methods if method in ("base", "evolutionary", "numpy")
    ]
    monkeypatch.setattr(LINALG_SWAPS, "default_methods", tuple(methods))
    programs = ("--programs", "linalg-swaps://relu/8x16", "--evaluations", "2")
    result = irgym("compare", "linalg-swaps", *programs)
    assert result.code == 0 and "evolutionary" in result.out, result.err
