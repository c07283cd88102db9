import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mlir_execution import execute
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from irgym.base.errors import BackendError, ProgramError
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.importing import torch_import
from irgym.envs.linalg.importing.from_torch import from_torch
from irgym.envs.linalg.importing.torch_import import network_program
from irgym.envs.linalg.programs.families import NETWORKS
from irgym.envs.linalg.programs.networks import as_function, build
from irgym.envs.linalg.programs.uris import Network, parse_uri


def _agree(module: nn.Module, inputs: tuple[Tensor, ...], path: Path) -> str:
    """Check that the imported program computes torch's results; return its text."""
    assert from_torch(module, *inputs, path=path) == f"linalg:{path}"
    text = path.read_text()
    kept = np.load(path.with_suffix(".npz"))
    weights = {int(name[3:]): value for name, value in kept.items() if name != "names"}
    user = iter(inputs)
    count = len(weights) + len(inputs)
    arguments = [weights[place] if place in weights else next(user).numpy() for place in range(count)]
    with torch.no_grad():
        wanted = pytree.tree_leaves(module(*inputs))
    found = execute(text, arguments)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == tuple(theirs.shape)
        assert np.abs(ours - theirs.numpy()).max() <= 1e-4 * max(1.0, float(theirs.abs().max()))
    return text


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any, **state: Tensor) -> None:
        super().__init__()
        self.function = function
        for name, value in state.items():
            self.register_buffer(name, value)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_weights_are_arguments_and_their_values_are_kept(tmp_path: Path):
    module = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
    text = _agree(module, (_random(4, 40),), tmp_path / "mlp.mlir")
    assert "func.func @main(%arg0: tensor<64x40xf32>, %arg1: tensor<64xf32>" in text
    assert "dense" not in text and len(text) < 5000
    task = LINALG.task(f"linalg:{tmp_path / 'mlp.mlir'}")
    header = task.export(task.initial(), tmp_path / "mlp.o")[1].read_text()
    assert "arg0: 64 x 40 float, 0.weight\n" in header and "arg3: 10 float, 2.bias\n" in header
    assert "arg4: 4 x 40 float\n" in header


def test_a_convolution_with_all_that_surrounds_it(tmp_path: Path):
    norm = nn.BatchNorm2d(24)
    norm.running_mean, norm.running_var = _random(24), _random(24).square()
    layers = (
        nn.Conv2d(3, 24, 3, 2, 1),
        norm,
        nn.ReLU6(),
        nn.MaxPool2d(3, 2, 1),
        nn.AvgPool2d(2),
        nn.Flatten(),
    )
    text = _agree(nn.Sequential(*layers).eval(), (_random(2, 3, 24, 24),), tmp_path / "conv.mlir")
    assert "linalg.conv_2d_nchw_fchw" in text and "tensor.pad" in text


def test_norms_and_softmax_stay_in_float32(tmp_path: Path):
    def both(_: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
        normed = nn.functional.layer_norm(x, (20,))
        return normed, x.std(1), x.var(0, correction=0), (normed * 3).softmax(-1)

    text = _agree(Function(both), (_random(6, 20),), tmp_path / "norms.mlir")
    assert "f64" not in text and "linalg.index" not in text


@pytest.mark.parametrize(
    ("module", "shape"), [(nn.Softmax(-1), (4, 20_000)), (nn.GroupNorm(1, 64), (1, 64, 48, 48))]
)
def test_long_sums_may_be_rounded_otherwise(module: nn.Module, shape: tuple[int, ...], tmp_path: Path):
    from_torch(module, _random(*shape), path=tmp_path / "program.mlir")


def test_tables_of_whole_numbers_stay_and_large_constants_become_arguments(tmp_path: Path):
    def gather(self: Any, x: Tensor) -> Tensor:
        return (x[self.places] * self.scale).where(self.chosen, torch.arange(30.0))

    places = torch.tensor([3, 0, 3, 1] * 5)
    chosen = _random(30) > 0
    text = _agree(
        Function(gather, scale=_random(30), places=places, chosen=chosen),
        (_random(5, 30),),
        tmp_path / "gather.mlir",
    )
    assert "dense<[3, 0, 3, 1" in text and "%arg2" not in text


def test_inputs_of_whole_numbers(tmp_path: Path):
    _agree(nn.Embedding(50, 24).eval(), (torch.tensor([[1, 49, 0], [7, 7, 2]]),), tmp_path / "embedding.mlir")


def test_layers_in_evaluation_mode_are_deterministic(tmp_path: Path):
    """In evaluation mode, dropout, attention and recurrent layers draw no random numbers."""
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.3, batch_first=True).eval()
    _agree(nn.Sequential(nn.Dropout(0.5), layer).eval(), (_random(2, 3, 8),), tmp_path / "attention.mlir")
    _agree(nn.LSTM(4, 4, dropout=0.2, num_layers=2).eval(), (_random(2, 1, 4),), tmp_path / "lstm.mlir")


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64])
def test_running_sums(kind: torch.dtype, tmp_path: Path):
    def sums(_: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
        return torch.cumsum(x, 1), torch.cumsum(x, 0), x + x

    _agree(Function(sums), ((10 * _random(3, 5)).to(kind),), tmp_path / "sums.mlir")


def test_rolls_and_index_tables(tmp_path: Path):
    table = torch.randint(0, 90, (80, 80), generator=torch.Generator().manual_seed(0))

    def moved(_: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
        return torch.roll(x, (2, -3), (0, 1)), torch.roll(x, 25), torch.roll(x, 0, 1) + x

    _agree(Function(moved), (_random(9, 10),), tmp_path / "rolls.mlir")
    _agree(Function(lambda _, x: x.reshape(-1)[table]), (_random(9, 10),), tmp_path / "table.mlir")


def test_elements_of_double_precision(tmp_path: Path):
    module = nn.Sequential(nn.Linear(20, 16), nn.GELU(), nn.Linear(16, 4)).double().eval()
    text = _agree(module, (_random(3, 20).double(),), tmp_path / "double.mlir")
    assert "tensor<16x20xf64>" in text and "f32" not in text


def test_results_in_any_structure(tmp_path: Path):
    module = Function(lambda _, x: {"sum": x + x, "nothing": None, "pair": (x * x, 3)})
    path = tmp_path / "nested.mlir"
    from_torch(module, _random(4, 4), path=path)
    x = _random(4, 4).numpy()
    found = execute(path.read_text(), [x])
    assert len(found) == 2
    np.testing.assert_allclose(found[0], x + x)
    np.testing.assert_allclose(found[1], x * x)


@pytest.mark.parametrize("name", ["resnet18?classes=20", "transformer?batch=2&length=12&width=24"])
def test_networks_compute_what_torch_computes(name: str):
    origin = parse_uri(f"linalg://{name}").origin
    assert isinstance(origin, Network)
    torch.manual_seed(0)
    module, example = build(origin.name, dict(origin.options))
    for weight in module.parameters():
        if weight.dim() > 1:
            nn.init.kaiming_normal_(weight)
    arguments = [*(weight.detach() for weight in module.parameters()), _random(*example.shape)]
    with torch.no_grad():
        wanted = module(arguments[-1])
        assert torch.equal(as_function(origin.name, dict(origin.options))(*arguments), wanted)
    text = network_program(f"linalg://{name}")
    (found,) = execute(text, [argument.numpy() for argument in arguments])
    assert np.abs(found - wanted.numpy()).max() <= 1e-4 * float(wanted.abs().max())


@pytest.mark.parametrize(
    ("uri", "counts"),
    [
        ("linalg://resnet18?size=224", {"conv_2d_nchw_fchw": 20, "pooling_nchw_max": 1, "matmul": 1}),
        ("linalg://vgg11", {"conv_2d_nchw_fchw": 8, "pooling_nchw_max": 5, "matmul": 3}),
        ("linalg://mobilenetv2", {"conv_2d_nchw_fchw": 35, "depthwise_conv_2d_nchw_chw": 17, "matmul": 1}),
        ("linalg://transformer", {"matmul": 4, "batch_matmul": 2}),
    ],
)
def test_networks_have_the_published_layers(uri: str, counts: dict[str, int]):
    text = network_program(uri)
    assert {name: text.count(f"linalg.{name} ") for name in counts} == counts
    assert "f64" not in text and "dense_resource" not in text and len(text) < 100_000


def test_every_network_is_built():
    for family in NETWORKS:
        with torch.device("meta"):
            module, example = build(family.name, {option.name: option.default for option in family.options})
            assert not module.training and module(example).shape[0] == 1


def test_published_numbers_of_weights():
    """Counts from torchvision's documentation; a folded batch norm leaves one parameter per channel."""
    expected = {"resnet18": 11_689_512, "mobilenetv2": 3_504_872, "vgg11": 132_863_336}
    for name, wanted in expected.items():
        with torch.device("meta"):
            module, _ = build(name, {"batch": 1, "classes": 1000, "size": 224})
        convolutions = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]
        folded = 0 if name == "vgg11" else sum(layer.out_channels for layer in convolutions)
        assert sum(weight.numel() for weight in module.parameters()) + folded == wanted


def test_files_go_to_the_cache_under_a_name_made_of_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    first, second = nn.Linear(20, 20).eval(), nn.Linear(20, 20).eval()
    uris = [from_torch(module, _random(2, 20)) for module in (first, first, second)]
    assert uris[0] == uris[1] != uris[2] and "/Linear-" in uris[0]
    assert (
        sorted(path.suffix for path in tmp_path.rglob("*.*")) == [".mlir"] * 2 + [".npz"] * 2 + [".pt2"] * 2
    )
    assert parse_uri(uris[0]).uri == uris[0]


class Twice(nn.Module):
    """A module that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + x


@pytest.mark.parametrize(
    ("module", "inputs", "words"),
    [
        (nn.Dropout(), (_random(4, 4),), r"Dropout draws random numbers .*call .eval\(\)"),
        (nn.BatchNorm1d(4), (_random(4, 4),), r"BatchNorm1d changes its buffers .*call .eval\(\)"),
        (Twice(), (_random(4, 4),), "Twice changes its buffers"),
        (nn.Linear(4, 4).bfloat16(), (_random(4, 4).bfloat16(),), "no bfloat16 numbers"),
        (nn.Linear(4, 4), (_random(4, 5),), "Linear raises RuntimeError on its example inputs"),
        (
            Function(lambda self, x: x[self.places], places=torch.zeros(70_000, dtype=torch.int64)),
            (_random(4, 4),),
            "a table of 70000 whole numbers",
        ),
        (Function(lambda _, x: x.nonzero()), (_random(4, 4),), "Function has a dynamic shape"),
        (Function(lambda _, x: None), (_random(4, 4),), "other than tensors"),
        (Function(lambda _, x, n: x * n), (_random(4, 4), 3), "is no tensor"),
        (Function(lambda _, x: torch.fft.rfft(x).real), (_random(4, 4),), "complex64 elements"),
        (
            Function(lambda _, x: torch.linalg.cholesky(x)),
            (torch.eye(4),),
            "cannot import Function.*with_effects",
        ),
        (Function(lambda _, x: torch.histc(x, 4)), (_random(4, 4),), "torch-mlir cannot lower torch.aten"),
        (Function(lambda _, x: x), (_random(4, 4),), "nothing to schedule"),
        (lambda x: x, (), "torch.nn.Module, not function"),
    ],
)
def test_unsupported_modules_are_refused_in_one_sentence(
    module: Any, inputs: tuple[Any, ...], words: str, tmp_path: Path
):
    with pytest.raises(ProgramError, match=words) as caught:
        from_torch(module, *inputs, path=tmp_path / "program.mlir")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    assert not list(tmp_path.iterdir())


def test_the_entry_point_imports_neither_torch_nor_a_compiler():
    code = (
        "import sys, irgym.programs; from irgym.envs.linalg.programs import datasets;"
        "datasets.dataset('operators');"
        "assert not {'torch', 'torch_mlir'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_suffix_is_checked_first(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"\*.mlir"):
        from_torch(nn.Linear(4, 4), _random(4, 4), path=tmp_path / "program.txt")


def test_tensorflow_beside_it_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorflow", type(sys)("tensorflow"))
    with pytest.raises(BackendError, match="does not import tensorflow"):
        from_torch(nn.Linear(2, 2), torch.zeros(1, 2))


def test_a_program_that_is_not_what_the_module_computes_is_refused(monkeypatch: pytest.MonkeyPatch):
    trace = torch_import.trace
    monkeypatch.setattr(torch_import, "trace", lambda module, inputs: trace(nn.ReLU6().eval(), inputs))
    with pytest.raises(ProgramError, match=r"imports of ReLU is not what the module computes"):
        from_torch(nn.ReLU().eval(), 20 * _random(4, 4))
