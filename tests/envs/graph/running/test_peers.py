"""Peers: other tools at their best levels, checked against the original model."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest

from irgym.base.errors import BaselineError
from irgym.core.baseline import Versus
from irgym.envs.graph import runner
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.running import peers
from irgym.envs.graph.task import MCTS_GEB, TENSAT

TINY = GRAPH.dataset("tiny")
GPT, LSTM = TINY.train[1], TINY.train[3]


def compared(uri: str, name: str, rounds: int = 2) -> Versus:
    task = GRAPH.task(uri)
    call = task.baseline_call(name, task.initial())
    return runner.compare(*call.arguments[:-1], rounds)


def needs(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install 'irgym[graph-peers]'")


@pytest.mark.parametrize("name", ["onnxslim", "onnxsim"])
def test_tools_get_the_best_level(name: str):
    needs(name)
    versus = compared(LSTM, name)
    assert versus.detail.startswith(f"{name} ") and ", level " in versus.detail and versus.ratio > 0
    assert versus.detail.endswith("1 thread")


def test_the_optimiser_of_onnx_runtime_for_transformers_knows_some_models():
    assert compared(GPT, "ort-transformers").detail.startswith("onnxruntime.transformers ")
    with pytest.raises(BaselineError, match="recognises nothing in"):
        compared(LSTM, "ort-transformers")


@pytest.mark.parametrize("uri", [LSTM, TINY.test[3]])
def test_torch_runs_what_came_from_torch(uri: str):
    assert compared(uri, "torch").detail.startswith("torch ")


def test_torch_runs_no_files(tmp_path: Path):
    task = GRAPH.task(LSTM)
    task.export(task.initial(), tmp_path / "a.onnx")
    with pytest.raises(BaselineError, match="torch runs no files of ONNX"):
        compared(f"graph:{tmp_path / 'a.onnx'}", "torch")


def test_every_baseline_can_be_prepared():
    names = {baseline.name for baseline in GRAPH.baselines}
    assert names == {*(f"ort-{level}" for level in peers.LEVELS), *peers.PEERS, TENSAT, MCTS_GEB}
    assert all(baseline.remedy.startswith("pip install") for baseline in GRAPH.baselines)


class Tool:
    """A stand-in for onnxslim."""

    def __init__(self, change: Any) -> None:
        self.slim = change


def planted(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    monkeypatch.setattr(peers, "import_module", lambda name: Tool(change))
    monkeypatch.setattr(peers, "version", lambda package: "0")


def test_a_tool_that_changes_results_is_refused(monkeypatch: pytest.MonkeyPatch):
    def wrong(model: onnx.ModelProto) -> onnx.ModelProto:
        node = next(node for node in model.graph.node if node.op_type == "Tanh")
        node.op_type = "Sigmoid"
        return model

    planted(monkeypatch, wrong)
    with pytest.raises(BaselineError, match="onnxslim gives another result"):
        compared(LSTM, "onnxslim")


def test_a_tool_that_fails_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    def failing(model: onnx.ModelProto) -> onnx.ModelProto:
        raise RuntimeError("too slim")

    def broken(model: onnx.ModelProto) -> onnx.ModelProto:
        model.graph.node[0].op_type = "Nothing"
        return model

    planted(monkeypatch, failing)
    with pytest.raises(BaselineError, match=r"onnxslim fails on .* \(too slim\): leave it out"):
        compared(LSTM, "onnxslim")
    planted(monkeypatch, broken)
    with pytest.raises(BaselineError, match=r"result of onnxslim .* does not run \(ONNX Runtime refuses"):
        compared(LSTM, "onnxslim")


def test_a_missing_tool_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> Any:
        raise ImportError(name=name)

    monkeypatch.setattr(peers, "import_module", missing)
    with pytest.raises(
        BaselineError, match=r"onnxsim is not installed: run pip install 'irgym\[graph,graph-"
    ):
        compared(LSTM, "onnxsim")
