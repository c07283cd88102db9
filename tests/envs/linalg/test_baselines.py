"""Baselines compute the programs' results."""

from functools import partial

import pytest

from irgym.base.errors import BaselineError, IrgymError
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import runner
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.importing.from_torch import from_torch

TORCH = (
    "linalg://matmul/12x16x8",
    "linalg://batch_matmul/2x6x8x4",
    "linalg://conv2d/1x3x9x9x4x3x3?stride=2",
    "linalg://depthwise_conv2d/1x4x9x9x3x3?stride=2",
    "linalg://maxpool/1x4x9x9x3?stride=2",
    "linalg://add/3x4x5",
    "linalg://relu/8x12",
    "linalg://softmax/6x10",
    "linalg://layernorm/6x10",
)


@pytest.fixture
def without_inductor(monkeypatch):
    """Let torch.compile leave out its code generator, which needs a minute and a C++ compiler."""
    import torch

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


@pytest.mark.parametrize("uri", TORCH)
def test_torch_agrees(uri):
    task = LINALG.task(uri)
    versus = runner.compare(task.uri, task.text, "", task.target, "torch", 1)
    assert versus.baseline_ns > 0 and versus.ours_ns > 0 and "1 thread" in versus.detail


@pytest.mark.parametrize(
    "uri", ["linalg://matmul/12x16x8", "linalg://batch_matmul/2x6x8x4", "linalg://relu/8x12"]
)
def test_numpy_agrees(uri, monkeypatch):
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    task = LINALG.task(uri)
    assert "numpy" in runner.compare(task.uri, task.text, "", task.target, "numpy", 1).detail


def test_unsupported_baselines_are_named():
    task = LINALG.task("linalg://conv2d/1x3x9x9x4x3x3")
    with pytest.raises(IrgymError, match="numpy has no function"):
        runner.compare(task.uri, task.text, "", task.target, "numpy", 1)
    chain = LINALG.task("linalg://sequence/1?length=3")
    with pytest.raises(IrgymError, match="torch has no function"):
        runner.compare(chain.uri, chain.text, "", chain.target, "torch", 1)


@pytest.mark.parametrize("name", ["torch", "torch-compile"])
def test_a_module_is_timed_against_torch_itself(name, tmp_path, without_inductor):
    import torch

    class Scaled(torch.nn.Module):
        """A module with an unused weight and a table."""

        def __init__(self):
            super().__init__()
            self.unused = torch.nn.Linear(3, 3)
            self.layer = torch.nn.Linear(8, 12)
            self.register_buffer("places", torch.tensor([3, 1, 1, 0]))

        def forward(self, x, y):
            return {"sum": torch.relu(self.layer(x))[self.places] + y, "x": x + x}

    inputs = torch.randn(4, 8), torch.randn(4, 12)
    task = LINALG.task(from_torch(Scaled().eval(), *inputs, path=tmp_path / "scaled.mlir"))
    versus = runner.compare(task.uri, task.text, "", task.target, name, 1)
    assert versus.baseline_ns > 0 and "1 thread" in versus.detail
    (tmp_path / "scaled.torch.pt2").write_bytes(b"damaged")
    with pytest.raises(BaselineError, match=r"is no archive of torch\.export, or was cut off"):
        runner.compare(task.uri, task.text, "", task.target, name, 1)


def test_validation_runs_other_inputs():
    task = LINALG.task("linalg://matmul/16x32x8")
    state = replay(task, Schedule.parse("tile_4_8_1 vectorise_0", task.space))
    found = runner.validate(task.text, task.script(state), task.target, inputs=3, seed=5)
    assert found.ok and found.inputs == 4


def test_torch_compile_agrees(without_inductor):
    task = LINALG.task("linalg://relu/8x12")
    versus = runner.compare(task.uri, task.text, "", task.target, "torch-compile", 1)
    assert versus.baseline_ns > 0 and "torch.compile, 1 thread" in versus.detail


def test_torch_compile_without_a_compiler_says_so(monkeypatch, tmp_path):
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", ("no-such-compiler",))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    task = LINALG.task("linalg://relu/7x13")
    with pytest.raises(BaselineError, match=r"torch\.compile fails on linalg://relu/7x13 .*install a C\+\+"):
        runner.compare(task.uri, task.text, "", task.target, "torch-compile", 1)
