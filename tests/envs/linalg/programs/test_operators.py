import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from mlir_execution import execute, random_inputs
from torch import Tensor
from torch.nn import functional

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.programs.families import OPERATORS
from irgym.envs.linalg.programs.lattice import MAX_LOOPS, POINTS, lattice
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.programs.sequences import Step, result, sequence
from irgym.envs.linalg.programs.uris import parse_uri

BASELINES: dict[str, Callable[..., Tensor]] = {
    "matmul/5x7x9": torch.mm,
    "matmul/1x1x1": torch.mm,
    "batch_matmul/3x5x7x9": torch.bmm,
    "conv2d/2x3x9x8x4x3x2": functional.conv2d,
    "conv2d/1x3x11x11x4x5x5?stride=2": lambda x, w: functional.conv2d(x, w, stride=2),
    "conv2d/1x1x3x3x1x3x3?stride=5": lambda x, w: functional.conv2d(x, w, stride=5),
    "depthwise_conv2d/2x3x9x8x3x2": lambda x, w: functional.conv2d(x, w[:, None], groups=3),
    "depthwise_conv2d/1x4x11x11x5x5?stride=2": lambda x, w: functional.conv2d(
        x, w[:, None], stride=2, groups=4
    ),
    "maxpool/2x3x9x8x3": lambda x: functional.max_pool2d(x, 3, 1),
    "maxpool/1x4x10x10x2?stride=2": lambda x: functional.max_pool2d(x, 2),
    "add/5": torch.add,
    "add/2x3x4x5": torch.add,
    "add/1x2x3x4x5x6": torch.add,
    "relu/7": torch.relu,
    "relu/3x4x5": torch.relu,
    "softmax/5x33": lambda x: x.softmax(1),
    "layernorm/5x33": lambda x, g, b: functional.layer_norm(x, (33,), g, b),
}


def _operator(name: str) -> Operator:
    origin = parse_uri(f"linalg://{name}").origin
    assert isinstance(origin, Operator)
    return origin


def _agree(text: str, baseline: Callable[..., Tensor], seed: int = 0) -> None:
    inputs = random_inputs(text, seed)
    (found,) = execute(text, inputs)
    wanted = baseline(*(torch.from_numpy(array).double() for array in inputs)).numpy()
    assert np.abs(found - wanted).max() <= 1e-5 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("name", BASELINES)
def test_operators_compute_what_torch_computes(name: str):
    _agree(_operator(name).text(), BASELINES[name])


def test_softmax_of_large_numbers_is_finite():
    text = _operator("softmax/1x3").text()
    (found,) = execute(text, [np.array([[1000.0, 1000.0, -1000.0]], np.float32)])
    assert found.tolist() == [[0.5, 0.5, 0.0]]


@pytest.mark.parametrize("seed", range(4))
def test_lattice_contractions_compute_what_numpy_computes(seed: int):
    contraction = lattice(seed)
    text = _operator(f"lattice/{seed}").text()
    _agree(text, lambda *inputs: torch.from_numpy(np.einsum(contraction.subscripts, *inputs, optimize=True)))


def test_lattice_contractions_are_of_many_shapes_and_bounded():
    contractions = [lattice(seed) for seed in range(200)]
    assert len({contraction.subscripts for contraction in contractions}) == 200
    assert {len(contraction.extents) for contraction in contractions} == set(range(6, MAX_LOOPS + 1))
    assert {len(contraction.inputs) for contraction in contractions} == {2, 3, 4}
    for contraction in contractions:
        assert POINTS[0] <= contraction.points <= POINTS[1]
        assert 2 <= len(contraction.extents) - len(contraction.output) <= 5


def _step(tensor: Tensor, step: Step, weights: list[Tensor]) -> Tensor:
    match step.name:
        case "matmul":
            return tensor @ weights.pop(0)
        case "conv2d":
            return functional.conv2d(tensor, weights.pop(0), stride=step.sizes[2])
        case "maxpool":
            return functional.max_pool2d(tensor, *step.sizes)
        case "bias":
            offsets = weights.pop(0)
            return tensor + offsets.reshape(-1, *(1,) * (tensor.dim() - 2))
        case "add":
            return tensor + weights.pop(0)
        case "softmax":
            return tensor.softmax(1)
        case "layernorm":
            return functional.layer_norm(tensor, tensor.shape[1:], weights.pop(0), weights.pop(0))
        case _:
            return tensor.relu()


@pytest.mark.parametrize(("seed", "length"), [(0, 2), (1, 3), (2, 6), (3, 4), (4, 6), (5, 6), (6, 5)])
def test_sequences_compute_what_torch_computes(seed: int, length: int):
    chain = sequence(seed, length)

    def baseline(tensor: Tensor, *rest: Tensor) -> Tensor:
        weights = list(rest)
        for step in chain.steps:
            tensor = _step(tensor, step, weights)
        assert not weights
        return tensor

    _agree(_operator(f"sequence/{seed}?length={length}").text(), baseline)


def test_sequences_chain_every_operator_in_all_lengths():
    chains = [sequence(seed, length) for seed, length in itertools.product(range(60), range(2, 7))]
    names = {step.name for chain in chains for step in chain.steps}
    assert names == {"matmul", "conv2d", "maxpool", "bias", "add", "relu", "softmax", "layernorm"}
    assert len({(chain.start, chain.steps) for chain in chains}) > 290
    for chain in chains:
        shape = chain.start
        for step in chain.steps:
            shape = result(shape, step)
        assert min(shape) >= 1


def test_every_text_verifies_and_has_one_function():
    names = [f"lattice/{seed}" for seed in range(30)]
    names += [f"sequence/{seed}?length={length}" for seed in range(30) for length in range(2, 7)]
    with mlir():
        for name in names:
            module = parse(_operator(name).text())
            (function,) = module.body.operations
            assert module.operation.verify() and str(function.name) == '"main"'
            assert all(isinstance(kind, ir.RankedTensorType) for kind in function.type.inputs)


def test_every_family_is_built():
    sizes = {"conv2d": "1x1x3x3x1x1x1", "matmul": "1x2x3"}
    for family in OPERATORS:
        text = _operator(f"{family.name}/{sizes.get(family.name, 'x'.join('1' * len(family.sizes)))}").text()
        assert text.startswith("module {\n  func.func @main(%arg0: tensor<") and text == text.strip() + "\n"


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (Operator("conv2d", (1, 1, 2, 9, 1, 3, 3), (("stride", 1),)), "3x3 does not fit into 2x9"),
        (Operator("maxpool", (1, 1, 9, 2, 3), (("stride", 1),)), "3x3 does not fit into 9x2"),
        (Operator("matmul", (1 << 15, 1 << 14, 1)), "536870912 elements"),
    ],
)
def test_windows_larger_than_the_image_and_huge_operators_are_refused(operator: Operator, words: str):
    with pytest.raises(ProgramError, match=words):
        operator.text()
