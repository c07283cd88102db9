"""Chains of elementwise operations of torch become one operation."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("torch_mlir")

from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.importing.from_torch import from_torch


class Function(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def names(function: Any, path: Path, *shapes: tuple[int, ...]) -> list[str]:
    """Return the operations of an imported function; other tests check its results."""
    from_torch(Function(function), *(torch.zeros(shape) for shape in shapes), path=path)
    return [operation.name for operation in describe(path.read_text())[1].operations]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (nn.functional.relu6, [(4, 8)]),
        (nn.functional.gelu, [(4, 8)]),
        (nn.functional.silu, [(4, 8)]),
        (lambda x, y: (x * y + x).relu(), [(4, 8), (4, 8)]),
        (lambda x, y: (x * y + x).relu(), [(4, 8), (8,)]),
    ],
)
def test_a_chain_becomes_a_single_operation(function: Any, shapes: list[tuple[int, ...]], tmp_path: Path):
    assert names(function, tmp_path / "chain.mlir", *shapes) == ["generic"]


def test_a_result_with_two_uses_is_not_fused(tmp_path: Path):
    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        root = (x + 1.0).sqrt()
        return root, root.exp()

    assert names(twice, tmp_path / "twice.mlir", (4, 8)) == ["generic", "generic"]


def test_rows_are_not_computed_for_each_column(tmp_path: Path):
    def scaled(x: Tensor, y: Tensor) -> Tensor:
        return x * y.exp()

    assert names(scaled, tmp_path / "scaled.mlir", (4, 8), (4, 1)) == ["generic", "generic"]


def test_an_operation_without_vectors_keeps_to_itself(tmp_path: Path):
    def looked_up(x: Tensor, y: Tensor) -> Tensor:
        return (x[(y[:, 0] * 0).long()] * 2.0).exp()

    *_, last = names(looked_up, tmp_path / "looked_up.mlir", (4, 8), (4, 8))
    _, program = describe((tmp_path / "looked_up.mlir").read_text())
    assert last == "generic" and program.operations[-1].vectorisable


def test_a_constant_in_a_chain(tmp_path: Path):
    def added(x: Tensor, y: Tensor) -> Tensor:
        return x * 0.5 + (y.long() * 0).float()

    assert "generic" in names(added, tmp_path / "added.mlir", (4, 8), (4, 8))


def test_products_stay_products(tmp_path: Path):
    def layer(x: Tensor, y: Tensor) -> Tensor:
        return ((x + 1.0) @ y).relu()

    assert names(layer, tmp_path / "layer.mlir", (4, 8), (8, 6)) == ["generic", "fill", "matmul", "generic"]
