"""Results that are fixed to one size, beside those that keep a model's sizes open."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import irgym
from irgym.api.fixing import Fixing, fixing_of
from irgym.api.tuning import Tuning
from irgym.base.errors import IrgymError
from irgym.cli.results import show
from irgym.core.baseline import Versus
from irgym.core.bench import Bench
from irgym.envs.graph import runner
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.task import GraphTask
from irgym.judging.fixed import SHARE
from irgym.judging.plan import Plan
from irgym.judging.result import Tuned
from irgym.reporting.facts import facts_of
from irgym.search.budget import Budget

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, 4] x) => (float[batch, 4] y)
{
  a = Neg(x)
  b = Neg(a)
  y = Exp(b)
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(MODEL), path)
    return path


@pytest.fixture
def task(path: Path) -> GraphTask:
    return GRAPH.task(f"graph:{path}?batch=3")


def plan(seconds: float, bound_s: float = 6.0) -> Plan:
    return Plan(seconds, time.monotonic() - 1.0, bound_s, 0.4 * seconds, 2.0, 1e-5, 0.01)


def tuning(fixed: bool = True) -> Tuning:
    searching = irgym.Searching(evaluations=3, search="random", fixed=fixed)
    return Tuning(GRAPH, irgym.Measuring(), searching, Budget(3), None, 0, lambda text: None)


def test_time_is_set_aside_where_it_suffices(task: GraphTask):
    long = fixing_of(tuning(), task, plan(100.0), given=False)
    assert long.program is task and long.whole.seconds == 100.0 and long.plan.seconds == (1 - SHARE) * 100.0
    short = fixing_of(tuning(), task, plan(10.0), given=False)
    assert short.program is None and short.plan.seconds == 10.0 and "give --seconds" in short.why
    enough = int(short.why.split("--seconds ")[1].split()[0])
    assert fixing_of(tuning(), task, plan(enough + 1.0), given=False).program is task


def test_nobody_expects_one(path: Path, task: GraphTask):
    several = GRAPH.task(f"graph:{path}?sizes=batch=1&sizes=batch=3")
    fixed = GRAPH.task(f"graph:{path}?batch=3&fixed=1")
    nodes = GRAPH.task(task.uri, objective="nodes")
    for other in (several, fixed, nodes):
        assert fixing_of(tuning(), other, plan(100.0), given=False).program is None
    assert fixing_of(tuning(fixed=False), task, plan(100.0), given=False).program is None
    assert fixing_of(tuning(), task, plan(100.0), given=True).program is None, "an object has any size"
    assert fixing_of(tuning(), task, plan(float("inf")), given=False).program is None


def test_a_dimension_may_be_called_fixed(tmp_path: Path):
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(MODEL.replace("batch", "fixed")), path)
    assert GRAPH.task(f"graph:{path}?fixed=1").fixed_uri() == ""


def test_both_are_timed_on_the_same_inputs(task: GraphTask, monkeypatch: pytest.MonkeyPatch):
    fixed = GRAPH.task(task.fixed_uri())
    assert fixed.uri == f"{task.uri.partition('?')[0]}?batch=3&fixed=1" and task.fixed_sizes() == "batch=3"
    monkeypatch.setattr(runner, "interleave", lambda *arguments: [(10.0, 15.0)] * arguments[2])
    call = task.fixed_call(task.initial(), fixed, fixed.initial(), 5)
    assert runner.beside(*call.arguments).ratios == (1.5,) * 5, "above 1, the fixed one is faster"
    (path, graph, level), *others = call.arguments
    [cut] = [node for node in graph.nodes.values() if node.operator == "Exp"]
    wrong = replace(graph, nodes={**graph.nodes, cut.name: replace(cut, operator="Neg")})
    with pytest.raises(IrgymError, match="wrong results"):
        runner.beside((path, wrong, level), *others)


class Timed:
    """A bench whose comparisons of the two results end with a ratio."""

    def __init__(self, bench: Bench, ratio: float) -> None:
        self._bench, self._ratio = bench, ratio

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench, name)

    def call(self, call: Any, *others: Any) -> Any:
        if call.function.endswith(":beside"):
            return Versus((self._ratio,) * 15, 1.5, 1.0, "the same")
        return self._bench.call(call, *others)


def beside(task: GraphTask, ratio: float, seconds: float = 60.0) -> Tuned:
    """Return a result of a short search, with one that is fixed to its size, if that seems faster."""
    made = tuning()
    result = irgym.replay(task.uri, "stop")
    with made.bench() as bench:
        whole = plan(seconds)
        return Fixing(task, whole, whole).beside(made, Timed(bench, ratio), result, interrupted=False)  # pyright: ignore


def test_a_faster_result_is_offered_and_written(
    task: GraphTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    result = beside(task, 1.5)
    assert result.fixed is not None and result.fixed.result.validated and result.program == task.uri
    line = dict(facts_of(result))["fixed size"]
    assert (
        line.startswith("another result for batch=3 alone: 1.50x faster than this result")
        and "GRAPH" in line.upper()
    )
    told = result.to_json()
    assert told["fixed"]["ratio"] == 1.5 and told["fixed"]["program"].endswith("?batch=3&fixed=1")
    assert told["no_fixed"] is None
    show(result, None, tmp_path / "fast.onnx", None)
    written = [
        Path(line.removeprefix("written: "))
        for line in capsys.readouterr().out.splitlines()
        if "written" in line
    ]
    assert [file.name for file in written] == ["fast.onnx", "fast.fixed.onnx"]
    left_open, fixed = (
        onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"]) for file in written
    )
    assert left_open.get_inputs()[0].shape == ["batch", 4] and fixed.get_inputs()[0].shape == [3, 4]
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(fixed.run(None, {"x": x})[0], left_open.run(None, {"x": x})[0], 1e-5)


def test_one_that_is_no_faster_is_not(task: GraphTask):
    result = beside(task, 1.02)
    assert result.fixed is None and "not faster beyond the noise (1.02x)" in result.no_fixed
    assert dict(facts_of(result))["fixed size"].startswith("no result: ")
    late = beside(task, 1.5, seconds=2.0)
    assert late.fixed is None and "no time was left" in late.no_fixed


def test_a_model_that_cannot_be_fixed_keeps_its_result(path: Path, tmp_path: Path):
    for place, size in enumerate((3, 5)):
        np.savez(tmp_path / f"{place}.npz", x=np.ones((size, 4), np.float32))
    task = GRAPH.task(f"graph:{path}?inputs={tmp_path}")
    result = beside(task, 1.5)
    assert result.fixed is None and "fixed=1 is for one size" in result.no_fixed and result.validated
