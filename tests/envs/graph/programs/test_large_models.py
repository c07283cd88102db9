"""Large weights in files beside the model stay outside from reading to export."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from odd_models import ramp, text, with_weights
from onnx import numpy_helper

from irgym.base.errors import BaselineError, ProgramError
from irgym.envs.graph import runner
from irgym.envs.graph.checking import cases as checking
from irgym.envs.graph.checking import rounding
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.outside import HEAVY
from irgym.envs.graph.programs import files, weights
from irgym.envs.graph.programs.sources import Sources
from irgym.envs.graph.programs.uris import parse_program
from irgym.envs.graph.running import peers
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.export import export
from irgym.envs.graph.running.sessions import Program

MODEL = """g (float[batch,600] x) => (float[batch,600] y) {
    a = MatMul(x, w) t = Transpose<perm = [1, 0]>(v) b = MatMul(a, t) c = Add(b, u) y = Relu(c)
}"""


def written(folder: Path, *, opset: int = 20, ir_version: int = 10) -> Path:
    """Write a model with two large weights and a small one in a file beside it."""
    folder.mkdir(exist_ok=True)
    path = folder / "large.onnx"
    model = with_weights(text(MODEL), w=ramp(600, 600), v=ramp(600, 600)[::-1].copy(), u=ramp(600))
    model.opset_import[0].version, model.ir_version = opset, ir_version
    onnx.save(model, path, save_as_external_data=True, location="large.bin", size_threshold=0)
    return path


@pytest.mark.parametrize("opset", [20, 11])
def test_large_weights_stay_outside_until_they_are_mapped(opset: int, tmp_path: Path):
    path = written(tmp_path, opset=opset)
    whole = onnx.load(path)
    uri = f"graph:{path}?batch=2"
    sources = Sources()
    assert sources.file(parse_program(uri)).stat().st_size < HEAVY, "no weights are in the intermediate file"
    sources.close()
    task = GRAPH.task(uri)
    loaded = model_at(task.path)
    assert {node.operator for node in task.graph.order}.isdisjoint({"Transpose"}), (
        "the transposition was computed beforehand"
    )
    arrays = [loaded.weights.array(weight) for weight in task.graph.weights.values()]
    large = [array for array in arrays if array.nbytes >= HEAVY]
    assert len(large) == 2 and not any(array.flags.owndata or array.flags.writeable for array in large)
    feeds = feeds_of(task.path, 0)
    wanted = onnxruntime.InferenceSession(whole.SerializeToString()).run(None, feeds)
    [file] = task.export(task.initial(), tmp_path / "whole.onnx")
    found = onnxruntime.InferenceSession(file).run(None, feeds)
    np.testing.assert_allclose(found[0], wanted[0], 1e-4, 1e-3)


def test_a_large_model_is_rewritten_checked_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As for models of more than 2 GiB, checks hold only one session at a time."""
    path = written(tmp_path)
    task = GRAPH.task(f"graph:{path}?batch=2")
    [expected] = checking.cases_on(task.path, 5)
    checking.cases_on.cache_clear()
    rounding.runners_of.cache_clear()
    monkeypatch.setattr(rounding, "LARGE", 0)
    [one_at_a_time] = checking.cases_on(task.path, 5)
    for ours, theirs in zip(one_at_a_time.problem.expected, expected.problem.expected, strict=True):
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.allowance, theirs.allowance)
    state = task.step(task.initial(), task.space.parse("matmul-as-gemm@c"))
    assert runner.validate(task.path, state.graph, 2, 0, 1).ok
    file, beside = export(task, state, tmp_path / "fast.onnx", most=HEAVY)
    assert file.stat().st_size < HEAVY < beside.stat().st_size
    again = GRAPH.task(f"graph:{file}")
    assert runner.validate(again.path, again.initial().graph, 1, 0, 1).ok
    feeds = feeds_of(task.path, 0)
    loaded = model_at(task.path)
    wanted = Program(loaded.graph, loaded.weights, 1).run(feeds)
    np.testing.assert_allclose(onnxruntime.InferenceSession(file).run(None, feeds)[0], wanted[0], 1e-4, 1e-3)


def test_other_weights_make_another_program(tmp_path: Path):
    path = written(tmp_path / "one")
    first = GRAPH.task(f"graph:{path}?batch=2")
    data = path.with_name("large.bin")
    content = np.fromfile(data, np.float32)
    (content * 2).tofile(data)
    second = GRAPH.task(f"graph:{path}?batch=2")
    assert first.path != second.path
    name = next(name for name, weight in second.graph.weights.items() if weight.type.size == 360_000)
    arrays = [model_at(task.path).weights.array(task.graph.weights[name]) for task in (first, second)]
    np.testing.assert_array_equal(2 * arrays[0], arrays[1])


def test_weights_that_end_early_are_refused(tmp_path: Path):
    path = written(tmp_path)
    data = path.with_name("large.bin")
    data.write_bytes(data.read_bytes()[:HEAVY])
    with pytest.raises(ProgramError, match=r"is no valid ONNX model: large\.bin ends before [wv] does"):
        GRAPH.task(f"graph:{path}?batch=2")


def test_weights_that_must_be_inside_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path)
    model = onnx.load(path, load_external_data=False)
    assert weights.files_of(model, path, inside=path.stat().st_size + 2400)  # u
    with pytest.raises(ProgramError, match=r"not counting large initializers .* save it with weights"):
        weights.files_of(model, path, inside=path.stat().st_size + 2399)
    monkeypatch.setattr(files, "INSIDE", 10)
    with pytest.raises(ProgramError, match="save it with its weights in a file beside it"):
        files.parsed(path)


def test_tools_that_take_whole_models_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    task = GRAPH.task(f"graph:{written(tmp_path)}?batch=2")
    monkeypatch.setattr(peers, "INSIDE", HEAVY)
    with pytest.raises(BaselineError, match="weights inside take less than 2: leave them out"):
        peers.Original(task.uri, task.path, (), 1).model()


def test_heavy_weights_of_other_types_are_brought_inside(tmp_path: Path):
    model = text("g (float[2,1024] x) => (float[2,1024] y) { w = Cast<to = 1>(h) y = MatMul(x, w) }")
    bits = ramp(1024, 1024).view(np.uint32) >> 16
    halves = numpy_helper.from_array(bits.astype(np.uint16), "h")
    halves.data_type = onnx.TensorProto.BFLOAT16
    model.graph.initializer.append(halves)
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    task = GRAPH.task(f"graph:{path}")
    assert runner.validate(task.path, task.initial().graph, 1, 0, 1).ok
