import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from irgym.base.errors import BackendError, ProgramError, StorageError
from irgym.envs.graph.programs import exporting
from irgym.envs.graph.programs.exporting import to_onnx
from irgym.envs.graph.programs.from_torch import from_torch
from irgym.envs.graph.programs.sources import STORE, Sources
from irgym.envs.graph.programs.standing import in_place_of
from irgym.envs.graph.programs.uris import parse_program
from irgym.envs.graph.running.calls import Run

pytestmark = pytest.mark.usefixtures("quick_exports")


class Function(nn.Module):
    """A module of a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, *more: Tensor) -> Any:
        return self.function(x, *more)


def _module() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


def test_a_module_computes_the_same_as_a_program(tmp_path: Path):
    module, x = _module(), torch.randn(3, 8)
    path = tmp_path / "mlp.onnx"
    assert from_torch(module, x, path=path) == f"graph:{path}"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    [found] = session.run(None, {given.name: x.numpy()})
    with torch.no_grad():
        assert np.allclose(found, module(x).numpy(), atol=1e-5)
    sources = Sources()
    try:
        assert sources.file(parse_program(f"graph:{path}")).is_file()
    finally:
        sources.close()


def test_without_a_path_the_model_is_stored_in_the_cache_folder():
    module = _module()
    uri = from_torch(module, torch.zeros(3, 8))
    assert parse_program(uri).path is not None and uri == from_torch(module, torch.ones(3, 8))
    assert uri.startswith(f"graph:{STORE.folder}") and uri != from_torch(_module(), torch.zeros(3, 8))


def test_the_weights_are_inside(tmp_path: Path):
    path = tmp_path / "mlp.onnx"
    from_torch(nn.Linear(1000, 1000).eval(), torch.zeros(1, 1000), path=path)
    assert [file.name for file in tmp_path.iterdir()] == ["mlp.onnx"]
    assert path.stat().st_size > 4_000_000
    assert len(onnx.load_model(path, load_external_data=False).graph.initializer) == 2


def _grows(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


@pytest.mark.parametrize(
    ("module", "inputs", "words"),
    [
        (lambda x: x, (), "takes a torch.nn.Module, not function: wrap it in one"),
        (_module(), ([1.0],), "the inputs of Sequential must be tensors"),
        (_module(), (torch.zeros(3, 9),), "Sequential raises RuntimeError on its example inputs"),
        (_module(), (), "Sequential raises TypeError on its example inputs"),
        (Function(_grows).eval(), (torch.zeros(3),), "torch.onnx cannot export Function: "),
        (
            nn.Sequential(nn.Dropout(0.5)).train(),
            (torch.zeros(3, 8),),
            r"draws random numbers .*call .eval\(\)",
        ),
        (nn.BatchNorm1d(8).train(), (torch.zeros(3, 8),), r"changes its buffers or inputs: call .eval\(\)"),
        (Function(lambda x: x.add_(1) * 2).eval(), (torch.zeros(3),), "changes its buffers or inputs"),
    ],
    ids=["function", "list", "shape", "nothing", "control", "dropout", "norm", "place"],
)
def test_an_unexportable_module_is_refused_in_one_sentence(module: Any, inputs: tuple[Any, ...], words: str):
    with pytest.raises(ProgramError, match=words) as caught:
        from_torch(module, *inputs)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_an_unusable_path_is_refused(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"name such a file \*\.onnx"):
        from_torch(_module(), torch.zeros(3, 8), path=tmp_path / "mlp.pb")
    with pytest.raises(StorageError):
        from_torch(_module(), torch.zeros(3, 8), path="/proc/mlp.onnx")


def test_without_onnxscript_the_message_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(BackendError, match=r"needs onnxscript, .* run pip install 'irgym\[graph,"):
        from_torch(_module(), torch.zeros(3, 8))


def test_a_model_of_complex_results_is_called_in_place_of_its_module():
    module, x = Function(lambda x: torch.fft.rfft(x)).eval(), torch.randn(3, 5)
    path = parse_program(from_torch(module, x)).path
    function = in_place_of(
        module, (x,), Run(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), "Function")
    )
    for seed in range(8):
        torch.manual_seed(seed)
        other = torch.randn(3, 5)
        found = function(other)
        assert found.dtype == torch.complex64 and found.shape == (3, 3)
        torch.testing.assert_close(found, torch.fft.rfft(other))


def test_a_model_that_computes_something_else_than_its_module_is_refused(monkeypatch: pytest.MonkeyPatch):
    module, x = nn.GELU().eval(), torch.randn(3, 8)
    monkeypatch.setattr(
        exporting, "to_onnx", lambda module, inputs, name: to_onnx(nn.GELU("tanh").eval(), inputs, name)
    )
    with pytest.raises(ProgramError, match=r"exports of GELU computes something else .*instead of"):
        from_torch(module, x)


def test_a_tensor_given_twice_makes_two_inputs():
    module, x = Function(lambda x, y: x - 2 * y).eval(), torch.randn(3)
    path = parse_program(from_torch(module, x, x)).path
    assert path is not None and len(onnx.load_model(path).graph.input) == 2


def test_the_fused_attention_of_inference_is_written_out():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    from_torch(layer, torch.randn(2, 5, 16))
    assert torch.backends.mha.get_fastpath_enabled()
