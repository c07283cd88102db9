"""Models with samples of their inputs: what fits, what is measured, and what is checked on them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from irgym.base.errors import ProgramError
from irgym.envs.graph.checking import checks
from irgym.envs.graph.checking.cases import cases_on
from irgym.envs.graph.checking.checks import checks_on
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs.metadata import INPUTS, read_ranges, read_sizes
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Program
from irgym.envs.graph.task import GraphTask

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, ?] x, int64[batch] ids, float[1] scale) => (float[batch, d] y)
<float[100, 1] table = {TABLE}, int64[1] axis = {1}>
{
  column = Gather(table, ids)
  sum = Add(x, column)
  y = Mul(sum, scale)
}
"""

UNTOLD = """
<ir_version: 10, opset_import: ["" : 20]>
g (int64[n] x, int64 rate) => (float[n] y)
{
  sum = Mul(x, rate)
  odd = Mod(sum, x)
  y = Cast <to = 1> (odd)
}
"""

Arrays = Mapping[str, Any]


def sample(batch: int = 2, width: int = 3, least: int = 5, greatest: int = 9, **other: Any) -> dict[str, Any]:
    x = np.linspace(-0.5, 0.25, batch * width, dtype=np.float32).reshape(batch, width)
    ids = np.full(batch, greatest)
    ids[0] = least
    return {"x": x, "ids": ids, "scale": np.full(1, 2, np.float32), **other}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    table = ", ".join(str(number / 7) for number in range(100))
    onnx.save(parser.parse_model(MODEL.replace("TABLE", table)), path)
    return path


def task_of(model: Path, *samples: Arrays, query: str = "") -> GraphTask:
    """Return the task of a model with some samples."""
    place = model.parent / "inputs"
    if len(samples) == 1:
        place = place.with_suffix(".npz")
        np.savez(place, **samples[0])
    else:
        place.mkdir()
        for number, arrays in enumerate(samples):
            np.savez(place / f"{number}.npz", **arrays)
    return GRAPH.task(f"graph:{model}?{query}inputs={place}")


def test_samples_tell_sizes_and_ranges(model: Path):
    task = task_of(model, sample(), sample(batch=4, width=1, least=3, greatest=7))
    proto = model_at(task.path).proto
    assert read_sizes(proto) == {"batch": 2, "x.1": 3} == dict(task.graph.profile)
    assert read_ranges(proto) == {"ids": (3, 10)}
    feeds = feeds_of(task.path, 0)
    assert feeds["x"].shape == (2, 3) and feeds["ids"].min() >= 3 and feeds["ids"].max() < 10
    assert feeds["x"].min() >= -0.5 and feeds["x"].max() <= 0.25 and feeds["x"].dtype == np.float32
    assert feeds["scale"] == 2, "a single number is a parameter"


def test_a_constant_tensor_tells_no_range(model: Path):
    task = task_of(model, sample(x=np.zeros((2, 3), np.float32)))
    assert np.ptp(feeds_of(task.path, 0)["x"]) > 0.1


def test_inputs_whose_range_nothing_tells_have_that_of_the_samples(tmp_path: Path):
    path = tmp_path / "untold.onnx"
    onnx.save(parser.parse_model(UNTOLD), path)
    arrays = {"x": np.array([3, 8, 5]), "rate": np.array(16_000)}
    cases_on(task_of(path, arrays).path, 0)
    with pytest.raises(ProgramError, match="cannot tell which numbers the input x may hold"):
        cases_on(GRAPH.task(f"graph:{path}?n=3").path, 0)
    task = GRAPH.task(f"graph:{path}?n=3&range.x=1:50&range.rate=8000:16001")
    cases_on(task.path, 0)


def test_the_first_sample_is_measured_and_all_are_checked_first(model: Path):
    samples = [sample(), sample(batch=3, least=1), sample(width=5)]
    task = task_of(model, *samples)
    feeds = cases_on(task.path, 0)[0].feeds
    assert all(np.array_equal(feeds[name], samples[0][name]) for name in feeds)
    seen: list[Arrays] = []
    program = Program(task.graph, model_at(task.path).weights, threads=1)

    def run(feeds: Arrays) -> list[Any]:
        seen.append(feeds)
        return program.run(feeds)

    found = checks_on(task.path, 2, 0).judge(run)
    assert found.ok and "first on the 3 samples given" in found.tolerance and not found.blind
    for arrays, ran in zip(samples, seen, strict=False):
        assert all(np.array_equal(ran[name], arrays[name]) for name in arrays)
    assert len(seen) > 5


def test_a_fault_that_shows_on_a_sample_alone_is_found(model: Path):
    samples = [sample(), sample(x=np.full((2, 3), 77, np.float32))]
    task = task_of(model, *samples)
    program = Program(task.graph, model_at(task.path).weights, threads=1)

    def wrong(feeds: Arrays) -> list[Any]:
        [result] = program.run(feeds)
        return [np.minimum(result, 150)] if np.abs(feeds["x"]).max() < 1000 else [result]

    found = checks_on(task.path, 1, 0).judge(wrong)
    assert not found.ok and found.detail.startswith("on sample 2 of 2: ")


def test_samples_are_checked_as_far_as_time_reaches(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checks, "SAMPLES_S", -1.0)
    task = task_of(model, sample(), sample(width=1))
    program = Program(task.graph, model_at(task.path).weights, threads=1)
    assert "first on 1 of the 2 samples given" in checks_on(task.path, 1, 0).judge(program.run).tolerance


FITTING = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x, int64[k] parts) => (float[k, m] y)
{
  y = Reshape(x, parts)
}
"""


def test_drawn_inputs_on_which_a_model_does_not_run_are_left_out(tmp_path: Path):
    path = tmp_path / "fitting.onnx"
    onnx.save(parser.parse_model(FITTING), path)
    task = task_of(path, {"x": np.linspace(-1, 1, 6, dtype=np.float32), "parts": np.array([2, 3])})
    program = Program(task.graph, model_at(task.path).weights, threads=1)
    found = checks_on(task.path, 2, 0).judge(program.run)
    assert found.ok and not found.blind
    assert "left out: inputs within the ranges of the samples" in found.tolerance


def test_results_are_cached_by_the_content_of_samples(model: Path):
    jobs = [
        (task := task_of(model, arrays)).job(task.initial())
        for arrays in (sample(), sample(x=np.ones((2, 3), np.float32)), sample())
    ]
    assert jobs[0].program == jobs[1].program == f"graph:{model}?inputs={model.parent / 'inputs.npz'}"
    assert jobs[0].toolchain == jobs[2].toolchain != jobs[1].toolchain
    assert "inputs" not in GRAPH.task(f"graph:{model}?batch=2&x.1=3").job(task.initial()).toolchain


def test_exports_keep_sizes_and_ranges_but_not_the_samples(model: Path):
    task = task_of(model, sample())
    path, *_ = task.export(task.initial(), model.parent / "fast.onnx")
    exported = onnx.load(path)
    assert read_sizes(exported) == {"batch": 2, "x.1": 3} and read_ranges(exported) == {"ids": (5, 10)}
    assert INPUTS not in {entry.key for entry in exported.metadata_props}
    cases_on(GRAPH.task(f"graph:{path}").path, 0)


def test_a_file_with_one_array_belongs_to_the_only_input(tmp_path: Path):
    path = tmp_path / "one.onnx"
    onnx.save(
        parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
        ),
        path,
    )
    np.save(tmp_path / "x.npy", np.ones(5, np.float32))
    task = GRAPH.task(f"graph:{path}?inputs={tmp_path / 'x.npy'}")
    assert cases_on(task.path, 0)[0].feeds["x"].shape == (5,)


FLOAT = np.float32

WRONG: dict[str, tuple[list[Arrays], str, str]] = {
    "wrong name": ([sample(y=np.zeros(1))], "", "array 'y', and .*: its inputs are x, ids, scale"),
    "missing input": (
        [{"x": sample()["x"], "ids": sample()["ids"]}],
        "",
        "no array for the input scale: add",
    ),
    "wrong type": (
        [sample(x=np.zeros((2, 3)))],
        "",
        r"x in .*float64, .*takes float32: .*astype\('float32'\)",
    ),
    "floats for whole numbers": ([sample(ids=np.zeros(2, FLOAT))], "", "ids in .*float32, .*takes int64"),
    "wrong rank": ([sample(x=np.zeros((2, 3, 1), FLOAT))], "", "takes 2 dimensions: reshape it"),
    "wrong size": ([sample(scale=np.zeros(2, FLOAT))], "", "takes 1 in place 0, not 2"),
    "contradiction": (
        [sample(ids=np.array([1, 2, 3]))],
        "",
        "contradict each other: batch is 2 in x and 3 in ids",
    ),
    "contradiction of a named size": ([sample()], "batch=5&", "batch is 2 in inputs.npz, and 5 was named"),
    "no number": ([sample(scale=np.full(1, np.nan, FLOAT))], "", "scale in .* holds NaN"),
    "no number later": ([sample(), sample(x=np.full((2, 3), np.nan, FLOAT))], "", "x in 1.npz holds NaN"),
    "nothing in it": ([sample(x=np.zeros((2, 0), FLOAT))], "", "x in .* has no elements"),
    "beyond a named range": ([sample()], "range.ids=0:9&", "ids holds 9 in .* outside the range 0:9"),
    "below a named range": ([sample()], "range.ids=6:10&", "ids holds 5 in .* outside the range 6:10"),
    "several sizes for a fixed model": ([sample(), sample(width=4)], "fixed=1&", "fixed=1 is for one size"),
    "unknown dimension": ([sample()], "width=3&", "has no open dimension 'width'"),
    "beyond the table": ([sample(greatest=100)], "", "does not run|indices|out of"),
}


@pytest.mark.parametrize("what", WRONG)
def test_samples_that_do_not_fit_are_refused_in_one_sentence(what: str, model: Path):
    samples, query, said = WRONG[what]
    with pytest.raises(ProgramError, match=said) as error:
        cases_on(task_of(model, *samples, query=query).path, 0)
    assert "\n" not in str(error.value) and "Traceback" not in str(error.value)


def test_one_array_for_several_inputs_is_refused(model: Path):
    np.save(model.parent / "x.npy", sample()["x"])
    with pytest.raises(ProgramError, match=r"x\.npy does not say of which input it is, and the model has 3"):
        GRAPH.task(f"graph:{model}?inputs={model.parent / 'x.npy'}")


def test_sizes_and_ranges_may_be_named_beside_samples(model: Path):
    task = task_of(model, sample(), query="batch=2&range.ids=0:50&fixed=1&")
    assert read_ranges(model_at(task.path).proto) == {"ids": (0, 50)}
    assert not task.graph.profile and task.graph.types["x"].shape == (2, 3)
