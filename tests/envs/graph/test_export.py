"""Exported models: their metadata, and opening them."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import irgym
from irgym.base.errors import BackendError, IrgymError, ProgramError, StorageError
from irgym.envs.graph import runner
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.running.export import export
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask

NAMES = {
    "stop": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "stop-basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "stop-extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "stop-all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


TINY = GRAPH.dataset("tiny").train
CONVOLUTIONS, LSTM = TINY[0], TINY[3]


@pytest.fixture(scope="module")
def task() -> GraphTask:
    return GRAPH.task(CONVOLUTIONS, "ort:2" if GRAPH.task(LSTM).target.cores > 1 else None)


def ended(task: GraphTask, name: str) -> GraphState:
    return task.step(task.initial(), task.space.parse(name))


def blocked(task: GraphTask) -> GraphState:
    """A state with an operator of the blocked layout."""
    state = task.initial()
    for kind, name in task.mask(state).candidates:
        after = task.step(state, task.space.parse(f"{task.space.kinds[kind].name}@{name}"))
        if any("nchwc" in node.operator for node in after.graph.nodes.values()):
            return after
    raise AssertionError("no rule makes a blocked operator")


def noted(path: Path, **notes: str) -> Path:
    """Replace entries of a model's metadata; empty ones are removed."""
    model = onnx.load(path)
    kept = {entry.key: entry.value for entry in model.metadata_props}
    kept |= {f"irgym.{name}": text for name, text in notes.items()}
    onnx.helper.set_model_props(model, {name: text for name, text in kept.items() if text})
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("ending", NAMES)
def test_a_model_opens_with_the_options_of_its_ending(
    task: GraphTask, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    [path] = task.export(ended(task, ending), tmp_path / "a.onnx")
    options = irgym.onnx_session(path).get_session_options()
    assert options.graph_optimization_level == NAMES[ending]
    assert options.intra_op_num_threads == task.threads
    # ONNX Runtime reads them too, if told to.
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    plain = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).get_session_options()
    assert plain.graph_optimization_level == NAMES[ending]
    assert plain.intra_op_num_threads == task.threads


def test_a_result_opens_without_a_file():
    result = irgym.replay(LSTM, "stop-extended")
    session = irgym.onnx_session(result)
    assert session.get_session_options().graph_optimization_level == NAMES["stop-extended"]
    path = result.task.path  # pyright: ignore
    assert session.run(None, feeds_of(path, 0))[0].shape == tuple(session.get_outputs()[0].shape)
    with pytest.raises(IrgymError, match="no model of ONNX"):
        irgym.onnx_session(irgym.replay("loops://mm/8x8x8", ""))


def test_measuring_heeds_no_options_in_models(task: GraphTask, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    assert runner.measure(task.path, task.graph, 1, "basic").ok
    assert os.environ["ORT_LOAD_CONFIG_FROM_MODEL"] == "1"


def test_weights_that_do_not_fit_go_beside_the_model(task: GraphTask, tmp_path: Path):
    [whole] = task.export(task.initial(), tmp_path / "whole.onnx")
    path, beside = export(task, task.initial(), tmp_path / "two.onnx", most=1000)
    assert beside == tmp_path / "two.onnx.data" and path.stat().st_size < beside.stat().st_size
    onnx.checker.check_model(str(path))
    feeds = feeds_of(task.path, 0)
    results = [irgym.onnx_session(file).run(None, feeds) for file in (whole, path)]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_model_for_other_blocks_is_refused(task: GraphTask, tmp_path: Path):
    state = blocked(task)
    [path] = task.export(state, tmp_path / "a.onnx")
    irgym.onnx_session(path)
    with pytest.raises(
        BackendError, match=r"blocks of 4 channels, but ONNX Runtime uses blocks of \d+ on this"
    ):
        irgym.onnx_session(noted(path, block="4"))
    [plain] = task.export(task.initial(), tmp_path / "b.onnx")
    assert "irgym.block" not in {entry.key for entry in onnx.load(plain).metadata_props}


def test_an_exported_model_is_a_program_whose_notes_are_replaced(tmp_path: Path):
    first = GRAPH.task(LSTM)
    [path] = first.export(ended(first, "stop-all"), tmp_path / "a.onnx")
    again = GRAPH.task(f"graph:{path}")
    [second] = again.export(ended(again, "stop-basic"), tmp_path / "b.onnx")
    keys = [entry.key for entry in onnx.load(second).metadata_props]
    assert len(keys) == len(set(keys))
    options = irgym.onnx_session(second).get_session_options()
    assert options.graph_optimization_level == NAMES["stop-basic"]


def test_a_file_that_cannot_be_opened_is_named_with_the_reason(task: GraphTask, tmp_path: Path):
    [path] = task.export(task.initial(), tmp_path / "a.onnx")
    with pytest.raises(ProgramError, match="does not say under which session options"):
        irgym.onnx_session(noted(path, session=""))
    (tmp_path / "b.onnx").write_text("nothing")
    with pytest.raises(ProgramError, match="no ONNX model"):
        irgym.onnx_session(tmp_path / "b.onnx")
    with pytest.raises(StorageError, match="cannot read"):
        irgym.onnx_session(tmp_path / "c.onnx")
