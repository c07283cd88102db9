"""Models that are called at several sizes: the mean time of a call is measured, and all sizes are checked."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser
from small_graphs import sites_of

import irgym
from irgym.base.errors import BaselineError, IrgymError, ProgramError
from irgym.cli.main import main
from irgym.core.cost import Outcome
from irgym.core.profiles import Profile
from irgym.envs.graph import runner
from irgym.envs.graph.checking import cases
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.task import GraphTask
from irgym.reporting.facts import facts_of

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, width] x) => (float[batch, 1] y)
<int64[1] axis = {1}>
{
  z = ReduceSum <keepdims = 1> (x, axis)
  y = Relu(z)
}
"""

HALVES = Rule(
    "planted",
    before="y = ReduceSum(x, a, keepdims=keep)",
    where="a.elements == (1,)",
    after="""
first = Slice(x, whole(0), whole(1 << 40), whole(1), whole(2))
last = Slice(x, whole(-1), whole(-(1 << 40)), whole(1), whole(-2))
y = Add(ReduceSum(first, a, keepdims=keep), ReduceSum(last, a, keepdims=keep))
""",
    sample=lambda _: Sample({}),
)
"""A wrong rule: every second column from the first and from the last are all columns of an even number."""

SIZES = "sizes=batch=1,width=6:0.7&sizes=batch=3,width=9:0.3"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(MODEL), path)
    return path


@pytest.fixture
def task(path: Path) -> GraphTask:
    return GRAPH.task(f"graph:{path}?{SIZES}")


def in_order(monkeypatch: pytest.MonkeyPatch, name: str, *results: Any) -> None:
    """Replace a timing of the runner by results, one for each call, before which the program runs once."""
    left = iter(results)

    def timed(run: Callable[[int], None], *_: object, **__: object) -> Any:
        run(1)
        return next(left)

    monkeypatch.setattr(runner, name, timed)


def test_the_cost_is_the_mean_time_of_a_call(task: GraphTask, monkeypatch: pytest.MonkeyPatch):
    assert task.profiles == (
        Profile((("batch", 1), ("width", 6)), 0.7),
        Profile((("batch", 3), ("width", 9)), 0.3),
    )
    assert task.uri.endswith(f"?{SIZES}") and task.graph.profile == task.profiles[0].sizes
    in_order(monkeypatch, "sample", (110.0, 100.0), (1000.0, 1200.0))
    measured = runner.measure(*task.job(task.initial()).call.arguments)
    assert measured.samples == (pytest.approx(0.7 * 100 + 0.3 * 1000),)


def test_inputs_have_the_sizes_of_the_profiles(task: GraphTask):
    found = cases.cases_on(task.path, 0)
    assert [(case.sizes, case.share) for case in found] == [
        ("batch=1,width=6", 0.7),
        ("batch=3,width=9", 0.3),
    ]
    assert [case.feeds["x"].shape for case in found] == [(1, 6), (3, 9)]


def test_comparisons_tell_the_mean_and_each_size(task: GraphTask, monkeypatch: pytest.MonkeyPatch):
    in_order(monkeypatch, "interleave", [(10.0, 20.0)] * 3, [(100.0, 50.0)] * 2)
    call = task.baseline_call("ort-all", task.initial(), 3)
    versus = runner.compare(*call.arguments)
    assert versus.ratios == (pytest.approx((14 + 15) / (7 + 30)),) * 2
    assert [(at.sizes, at.share, at.ratio, at.ours_ns) for at in versus.at] == [
        ("batch=1,width=6", 0.7, 2.0, 10.0),
        ("batch=3,width=9", 0.3, 0.5, 100.0),
    ]
    in_order(monkeypatch, "interleave", [(10.0, 20.0)], [(100.0, 50.0)])
    [pair] = runner.stages(*task.stage_call(task.initial(), task.initial()).arguments)
    assert pair == (pytest.approx(37.0), pytest.approx(29.0))


def test_a_model_that_is_wrong_at_one_size_is_noticed(task: GraphTask):
    [site, *_] = sites_of(HALVES, task.graph)
    wrong = task.graph.rewritten(HALVES.rewrite(task.graph, site, task.block))
    measured = runner.measure(task.path, wrong, 1)
    assert measured.outcome is Outcome.WRONG_RESULT and measured.detail.startswith("at batch=3,width=9: ")
    good = runner.validate(task.path, task.graph, 1, 0, 1, seconds=0.0)
    assert good.ok and "also at batch=3, width=9; batch=1, width=1" in good.tolerance
    bad = runner.validate(task.path, wrong, 1, 0, 1, seconds=0.0)
    assert not bad.ok and bad.detail.startswith("at batch=3, width=9: ")


def test_runs_at_all_sizes_count_for_the_plan(path: Path, task: GraphTask):
    assert 1.0 < task.job(task.initial()).runs < 10.0
    single = GRAPH.task(f"graph:{path}?batch=1&width=6")
    assert single.job(single.initial()).runs == 1.0 and single.profiles == ()
    nodes = GRAPH.task(task.uri, objective="nodes")
    assert nodes.job(nodes.initial()).runs == 1.0


def test_an_exported_model_tells_its_profiles(path: Path, task: GraphTask, tmp_path: Path):
    file, *_ = task.export(task.initial(), tmp_path / "fast.onnx")
    assert GRAPH.task(f"graph:{file}").profiles == task.profiles
    assert GRAPH.task(f"graph:{file}").uri == f"graph:{file}?{SIZES}"
    assert GRAPH.task(f"graph:{file}?batch=2").profiles == (), "sizes that are named take precedence"
    assert GRAPH.task(f"graph:{file}?batch=1&width=6&fixed=1").profiles == ()


def test_a_result_tells_its_time_at_each_size(path: Path):
    result = irgym.replay(path, "stop", sizes=[({"batch": 1, "width": 6}, 7), ({"batch": 3, "width": 9}, 3)])
    assert result.program == f"graph:{path}?sizes=batch=1,width=6:7&sizes=batch=3,width=9:3"
    facts = dict(facts_of(result))
    assert facts["time"].endswith("the mean of a call at the sizes below")
    assert "; 70 % of the calls" in facts["at batch=1,width=6"] and "; 30 % of" in facts["at batch=3,width=9"]
    assert [at["sizes"] for at in result.to_json()["at_sizes"]] == ["batch=1,width=6", "batch=3,width=9"]
    assert result.validated and "also at batch=3, width=9" in facts["validated"]
    [at, _] = result.versus.at if result.versus else []
    assert at.ours_ns > 0.0 and at.ratio > 0.0


def test_a_dict_of_sizes_is_one_profile(path: Path):
    result = irgym.replay(
        path, "", sizes={"batch": 2, "width": 3}, measuring=irgym.Measuring(objective="nodes")
    )
    assert result.program == f"graph:{path}?batch=2&width=3" and not result.to_json()["at_sizes"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([], "there are no sizes in the list"),
        ({}, "are no sizes"),
        ("batch=1", "'batch=1' are no sizes"),
        (3, "3 are no sizes"),
        ({"batch": -1}, "is no size of a dimension"),
        ({1: 1}, "are no sizes"),
        ([({"batch": 1}, 7, 2)], "are no sizes"),
        ({"batch": True}, "are no sizes"),
        ({"batch": 1.5}, "are no sizes"),
        ([{"batch": 1}, 3], "3 are no sizes"),
        ([({"batch": 1}, "much"), ({"batch": 2}, 1)], "the weight 'much' must be a number"),
        ([({"batch": 1, "width": 2}, float("nan")), ({"batch": 2, "width": 2}, 1)], "the weight 'nan'"),
    ],
)
def test_sizes_of_other_kinds_are_refused(sizes: Any, said: str, path: Path):
    with pytest.raises(IrgymError, match=said):
        irgym.tune(path, sizes=sizes)


def test_objects_have_no_sizes():
    with pytest.raises(IrgymError, match="give example_inputs of several sizes"):
        irgym.tune(object(), sizes={"batch": 1})


def test_no_other_baseline_or_objective_is_of_one_size(task: GraphTask):
    call = task.baseline_call("tensat", task.initial())
    from irgym.envs.graph.eqsat.running import against

    with pytest.raises(BaselineError, match="works at one size"):
        against(*call.arguments)
    with pytest.raises(ProgramError, match="is of one size"):
        GRAPH.task(task.uri, objective="model")


REFUSED: dict[str, tuple[Sequence[str], str]] = {
    "a size is left out": (["batch=1", "batch=2"], "leaves width open too"),
    "an unknown size": (
        ["batch=1,w=3", "batch=2,w=3"],
        "has no open dimension 'w'; its open dimensions: batch, width",
    ),
    "the same twice": (["batch=1,width=3", "width=3,batch=1"], "are named twice"),
    "joined by commas": (["batch=1", "width=3"], "are joined by commas"),
    "no weight": (["batch=1,width=3:0.5", "batch=2,width=3"], "give each a weight, or none"),
    "a weight of 0": (["batch=1,width=3:0", "batch=2,width=3:1"], "the weight '0' must be"),
    "fixed": (["batch=1,width=3,fixed=1", "batch=2,width=3,fixed=1"], "fixed=1 is for one size"),
    "too large": (["batch=1,width=3", "batch=99999999,width=99999"], "takes inputs of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_profiles_that_do_not_fit_are_refused(case: str, path: Path, capsys: pytest.CaptureFixture[str]):
    sizes, said = REFUSED[case]
    words = [word for text in sizes for word in ("--sizes", text)]
    with pytest.raises(SystemExit) as end:
        main(["tune", str(path), *words, "--evaluations", "2"])
    error = capsys.readouterr().err.splitlines()[-1]
    assert end.value.code == 2 and error.startswith("irgym: ") and said in error, error


def test_a_model_without_open_sizes_has_no_profiles(tmp_path: Path):
    file = tmp_path / "fixed.onnx"
    onnx.save(parser.parse_model(MODEL.replace("batch, width", "2, 4").replace("batch, 1", "2, 1")), file)
    with pytest.raises(ProgramError, match="has no open dimension 'batch'; its open dimensions: none"):
        GRAPH.task(f"graph:{file}?sizes=batch=1&sizes=batch=2")


def test_sizes_at_which_the_model_does_not_run_are_named(tmp_path: Path):
    file = tmp_path / "six.onnx"
    text = MODEL.replace("int64[1] axis", "int64[2] six = {-1, 6}, int64[1] axis")
    text = text.replace(
        "z = ReduceSum <keepdims = 1> (x, axis)", "r = Reshape(x, six) z = ReduceSum(r, axis)"
    )
    onnx.save(parser.parse_model(text), file)
    task = GRAPH.task(f"graph:{file}?sizes=batch=1,width=6&sizes=batch=1,width=7")
    with pytest.raises(ProgramError, match="the model does not run at batch=1,width=7: "):
        cases.cases_on(task.path, 0)
