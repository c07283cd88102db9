"""Regressions of reading files: results agree with ONNX Runtime on the original file."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fuzz.graph.reading.opening import Refused, opened, ran
from odd_models import text

import irgym
from irgym.base.errors import BaselineError, ProgramError
from irgym.core.cost import Outcome
from irgym.envs.graph import runner
from irgym.envs.graph.checking.cases import SEED, cases_on
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs import upgrading
from irgym.envs.graph.running.peers import Original, prepared
from irgym.envs.graph.task import GraphTask

CASES = Path(__file__).parents[3] / "cases" / "graph"

QUERIES = {"cast_int_uint_int": "?range.x=-5:100"}
"""Options that the URIs of files need beside the path."""

READ = [
    "Upsample_in_linear_9",
    "cast_int_uint_int",
    "double_output",
    "layernorm_growing_scale",
    "layernorm_rank1",
    "loop_scan_outputs",
    "more_constant_sparse",
    "opset11_softmax",
    "overridable",
    "relu_clip_double",
    "reshape_zero_sized",
]

POOLED = "(float[1,2,5,4] x) => (float[1,2,a,b] y) { p = KIND<kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1], ceil_mode=1>(x) y = Relu(p) }"  # fmt: skip # noqa: E501


def task_of(name: str) -> GraphTask:
    return GRAPH.task(f"graph:{CASES / name}.onnx{QUERIES.get(name, '')}")


def written(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("name", READ)
def test_a_file_is_checked_and_exported_as_it_is(name: str, tmp_path: Path):
    task = task_of(name)
    assert runner.measure(task.path, task.graph, 1).ok
    assert runner.validate(task.path, task.graph, 2, 7, 1).ok
    exported = tmp_path / "out.onnx"
    task.export(task.initial(), exported)
    feeds = [feeds_of(task.path, seed) for seed in (1, 2)]
    wanted = ran((CASES / f"{name}.onnx").read_bytes(), feeds)
    for found, expected in zip(ran(exported.read_bytes(), feeds), wanted, strict=True):
        assert len(found) == len(expected)
        for result, other in zip(found, expected, strict=True):
            assert result.dtype == other.dtype
            np.testing.assert_allclose(result, other, 1e-5, 1e-6)
    onnx.checker.check_model(onnx.load(exported), full_check=True)


@pytest.mark.parametrize("name", ["layernorm_growing_scale", "layernorm_rank1", "relu_clip_double"])
def test_a_level_that_fails_is_a_failure_of_its_row(name: str):
    task = task_of(name)
    measured = runner.measure(task.path, task.graph, 1, "all")
    assert measured.outcome is Outcome.COMPILE_ERROR and "ONNX Runtime" in measured.detail
    with pytest.raises(BaselineError, match=r"at level all, ONNX Runtime .*: leave ort-all out"):
        prepared("ort-all", Original(task.uri, task.path, cases_on(task.path, SEED), 1))


def test_declared_sizes_of_results_are_kept(tmp_path: Path):
    task = task_of("loop_scan_outputs")
    task.export(task.initial(), tmp_path / "out.onnx")
    shapes = {
        value.name: [size.dim_value or None for size in value.type.tensor_type.shape.dim]
        for value in onnx.load(tmp_path / "out.onnx").graph.output
    }
    assert shapes == {"y": [3], "acc": [3], "its": [None]}


def test_initializers_that_callers_may_override_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "model.onnx"
    path.write_bytes((CASES / "overridable.onnx").read_bytes())
    task = GRAPH.task(f"graph:{path}")
    if said := capsys.readouterr().err:  # once for a model, whatever its path
        assert "may override the initializers w, b, s: " in said and said.count("\n") == 1
    task.export(task.initial(), tmp_path / "out.onnx")
    notes = {entry.key: entry.value for entry in onnx.load(tmp_path / "out.onnx").metadata_props}
    assert notes["irgym.fixed"] == "w,b,s"
    GRAPH.task(f"graph:{tmp_path / 'out.onnx'}")
    assert "may override" not in capsys.readouterr().err  # not in the result


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_shapes_are_those_of_the_run(kind: str, tmp_path: Path):
    """Inference counts a last window that begins in the padding; ONNX Runtime does not."""
    path = written(text("g " + POOLED.replace("KIND", kind)), tmp_path)
    task = GRAPH.task(f"graph:{path}")
    assert task.graph.types["p"].shape == task.graph.types["y"].shape == (1, 2, 3, 2)
    assert runner.validate(task.path, task.graph, 1, 3, 1).ok
    task.export(task.initial(), tmp_path / "out.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"), full_check=True)
    [[found]] = ran((tmp_path / "out.onnx").read_bytes(), [feeds_of(task.path, 1)])
    assert found.shape == (1, 2, 3, 2)


def test_a_model_that_only_the_checker_refuses_is_read(tmp_path: Path):
    body = "g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y) { y = GroupNormalization<num_groups=2>(x, s, b) }"  # noqa: E501
    path = written(text(body, '<ir_version: 8, opset_import: ["" : 18]> '), tmp_path)
    task = GRAPH.task(f"graph:{path}")
    assert runner.measure(task.path, task.graph, 1).ok


def test_a_model_without_operators_opens(tmp_path: Path):
    model = text("g (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Identity(w) }")
    task = GRAPH.task(f"graph:{written(model, tmp_path)}")
    assert not task.graph.nodes
    exported = tmp_path / "out.onnx"
    task.export(task.initial(), exported)
    [found] = irgym.onnx_session(str(exported)).run(None, {"x": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(found, [1.0, 2.0, 3.0])


REFUSED: dict[str, tuple[str, str]] = {
    "domain": (
        "(float[2] x) => (float[2] y) { y = acme.ops.Frob(x) }",
        "no operator Frob of the domain acme.ops",
    ),
    "float64": ("(double[2] x) => (double[2] y) { y = Erf(x) }", "no Erf of float64 on a CPU: export"),
    "bfloat16": (
        "(float[2] x) => (float[2] y) { a = Cast<to=16>(x) b = Sin(a) y = Cast<to=1>(b) }",
        "no Sin of bfloat16 on a CPU: export",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_operator_that_onnx_runtime_lacks_is_named(kind: str, tmp_path: Path):
    body, said = REFUSED[kind]
    head = '<ir_version: 8, opset_import: ["" : 18, "acme.ops" : 1]> g '
    with pytest.raises(ProgramError, match=said) as caught:
        GRAPH.task(f"graph:{written(text(body, head), tmp_path)}")
    assert "open dimensions" not in str(caught.value)


@pytest.mark.parametrize("opset", [6, 99])
def test_opsets_that_are_not_read_are_named(opset: int, tmp_path: Path):
    model = text(
        "(float[2] x) => (float[2] y) { y = Relu(x) }", f'<ir_version: 8, opset_import: ["" : {opset}]> g '
    )
    with pytest.raises(
        ProgramError, match=f"is of opset {opset}, and those from 7 to {onnx.defs.onnx_opset_version()}"
    ):
        GRAPH.task(f"graph:{written(model, tmp_path)}")


def test_the_newest_opset_that_onnx_runtime_reads_is_read(tmp_path: Path):
    """ONNX Runtime's message names the operator."""
    head = '<ir_version: 10, opset_import: ["" : {}]> g '
    body = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    newest = max(
        opset
        for opset in range(20, onnx.defs.onnx_opset_version() + 1)
        if _runs(text(body, head.format(opset)))
    )
    task = GRAPH.task(f"graph:{written(text(body, head.format(newest)), tmp_path)}")
    assert dict(task.graph.opsets)[""] == newest and runner.measure(task.path, task.graph, 1).ok


def _runs(model: onnx.ModelProto) -> bool:
    try:
        ran(model.SerializeToString(), [{"x": np.zeros(2, np.float32)}])
    except Refused:
        return False
    return True


def test_a_wrong_conversion_is_not_checkable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Checks go by the results of the original file, so no converter needs to be trusted."""
    kept: dict[str, Any] = {
        name: upgrade for name, upgrade in upgrading.REWRITES.items() if name != "Hardmax"
    }
    monkeypatch.setattr(upgrading, "REWRITES", kept)
    head = '<ir_version: 7, opset_import: ["" : 11]> g '
    model = text("(float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax<axis=1>(x) }", head)
    task = opened(model, tmp_path / "model.onnx", {})
    with pytest.raises(ProgramError, match="something else than the file itself"):
        cases_on(task.path, SEED)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", r"which numbers the input x may hold: .*\?range\.x=0:100"),
        ("?range.x=5", "has no open dimension 'range.x'"),
        ("?range.x=5:5", "range.x must be LOW:HIGH"),
        ("?range.x=a:5", "range.x must be LOW:HIGH"),
        ("?range.x=0:5&range.x=0:6", "range.x is given twice"),
        ("?range.y=0:5", "has no integer input 'y'.*: x"),
    ],
)
def test_ranges_of_whole_numbers_are_given_in_the_uri(query: str, said: str):
    with pytest.raises(ProgramError, match=said):
        task = GRAPH.task(f"graph:{CASES / 'cast_int_uint_int'}.onnx{query}")
        cases_on(task.path, SEED)


def test_inputs_are_drawn_from_the_range_of_the_uri():
    task = GRAPH.task(f"graph:{CASES / 'cast_int_uint_int'}.onnx?range.x=-5:-2")
    drawn = feeds_of(task.path, 3)["x"]
    assert set(np.unique(drawn)) == {-5, -4, -3} and task.uri.endswith("?range.x=-5:-2")


def test_inputs_that_are_too_large_are_refused(tmp_path: Path):
    model = text("g (float[4611686018427387904] x) => (float[4611686018427387904] y) { y = Relu(x) }")
    with pytest.raises(ProgramError, match=r"takes inputs of more than .* and at most 4 GiB are supported"):
        GRAPH.task(f"graph:{written(model, tmp_path)}")
