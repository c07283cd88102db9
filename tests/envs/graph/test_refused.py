"""Models that an optimiser of ONNX Runtime refuses, and models with branches and loops, from end to end."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import irgym
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.dense import graphs_inside
from irgym.envs.graph.runner import validate
from irgym.envs.graph.running.export import export
from irgym.envs.graph.running.opening import session_of_file
from irgym.envs.graph.task import GraphTask

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
NUMBERS = ", ".join(str(number / 36) for number in range(36))

CLIP = """
g (double[4, 6] x) => (double[4, 6] y)
<double low = {0}, double high = {6}, double[6, 6] w = {NUMBERS}, double[6] v = {1.0, 2.0, 3.0, 4.0, 5.0, 6}
>
{
  a = MatMul(x, w)
  b = Add(a, v)
  r = Relu(b)
  y = Clip(r, low, high)
}
"""
"""ONNX Runtime's levels fail on it: they fuse Relu and Clip, and expect single precision."""

HEAD = """
  a = MatMul(x, w)
  b = Add(a, v)
  c = Relu(b)
"""

WEIGHTS = "float[6, 6] w = {NUMBERS}, float[6] v = {1.0, -2.0, 3.0, -4.0, 5.0, -6.0}"

BODIES = {
    "If": f"""
g (float[2, 6] x, bool yes) => (float[m] y)
<{WEIGHTS}, int64[1] all = {{-1}}>
{{
  {HEAD}
  y = If (yes) <
    then_branch = taken () => (float[2, 6] t) {{ t = Exp(c) }},
    else_branch = other () => (float[12] e) {{ flat = Reshape(c, all) e = Neg(flat) }}
  >
}}
""",
    "Loop": f"""
g (float[2, 6] x) => (float[2, 6] y, float[times, 2, 6] ys)
<{WEIGHTS}, int64 times = {{5}}, bool go = {{1}}>
{{
  {HEAD}
  y, ys = Loop (times, go, c) <body = step (int64 i, bool going, float[2, 6] s) => (
    bool on, float[2, 6] next, float[2, 6] kept
  ) {{ on = Identity(going) h = MatMul(s, w) next = Tanh(h) kept = Sigmoid(next) }}>
}}
""",
    "Scan": f"""
g (float[2, 6] x, float[7, 2, 6] xs) => (float[2, 6] y, float[7, 2, 6] ys)
<{WEIGHTS}>
{{
  {HEAD}
  y, ys = Scan (c, xs) <num_scan_inputs = 1, body = step (float[2, 6] s, float[2, 6] given) => (
    float[2, 6] next, float[2, 6] kept
  ) {{ q = Add(s, given) h = MatMul(q, w) next = Tanh(h) kept = Neg(next) }}>
}}
""",
}


def saved(text: str, folder: Path) -> Path:
    model = parser.parse_model(HEADER + text.replace("NUMBERS", NUMBERS))
    for value in model.graph.output:
        if [size.dim_param for size in value.type.tensor_type.shape.dim] == ["m"]:
            value.type.tensor_type.ClearField("shape")  # its rank depends on the branch
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def session(path: Path, level: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


def test_a_model_that_the_levels_refuse_is_tuned_all_the_same(tmp_path: Path):
    path = saved(CLIP, tmp_path)
    for level in ("ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL"):
        with pytest.raises(Exception, match="Unexpected data type for Clip"):
            session(path, level)
    result = irgym.tune(path, searching=irgym.Searching(evaluations=8, search="random"))
    assert result.validated and result.baseline_ratio is None
    assert "at level all, ONNX Runtime refuses the model" in str(result.no_baseline)
    fast = tmp_path / "fast.onnx"
    result.export(fast)
    x = np.linspace(-3, 9, 24).reshape(4, 6)
    wanted = session(path, "DISABLE_ALL").run(None, {"x": x})
    np.testing.assert_allclose(session_of_file(fast).run(None, {"x": x}), wanted)


def bodies(model: onnx.ModelProto) -> dict[str, list[str]]:
    """Return the operators in each branch and loop body, by the body's name."""
    inside = [graph for node in model.graph.node for graph in graphs_inside(node)]
    return {
        graph.name: [node.op_type for node in graph.node if node.op_type != "Constant"] for graph in inside
    }


def rewritten(task: GraphTask) -> Any:
    """Return the state after rewrites outside of bodies."""
    state = task.initial()
    for _ in range(4):
        pairs = [pair for pair in task.mask(state).candidates if "@" not in pair[1]]
        if not pairs:
            break
        kind, site = pairs[0]
        state = task.step(state, task.space.parse(f"{task.space.kinds[kind].name}@{site}"))
    return state


@pytest.mark.parametrize("operator", BODIES)
def test_bodies_stay_as_they_are_and_the_rest_is_rewritten(operator: str, tmp_path: Path):
    path = saved(BODIES[operator], tmp_path)
    task = GRAPH.task(f"graph:{path}")
    state = rewritten(task)
    assert state.digest != task.initial().digest
    checked = validate(task.path, state.graph, 4, 0, 1)
    assert checked.ok and not checked.blind
    export(task, state, tmp_path / "fast.onnx")
    given, fast = onnx.load(path), onnx.load(tmp_path / "fast.onnx")
    assert bodies(fast) == bodies(given) and operator in {node.op_type for node in fast.graph.node}
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, 6)).astype(np.float32)}
    choices = [{"yes": np.array(yes)} for yes in (True, False)] if operator == "If" else [{}]
    if operator == "Scan":
        feeds["xs"] = rng.standard_normal((7, 2, 6)).astype(np.float32)
    for more in choices:
        ours = session(tmp_path / "fast.onnx", "DISABLE_ALL").run(None, {**feeds, **more})
        theirs = session(path, "DISABLE_ALL").run(None, {**feeds, **more})
        for found, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("operator", BODIES)
def test_models_with_bodies_are_tuned(operator: str, tmp_path: Path):
    path = saved(BODIES[operator], tmp_path)
    few = irgym.Searching(evaluations=6, search="greedy")
    result = irgym.tune(path, searching=few, measuring=irgym.Measuring(objective="nodes"))
    assert result.validated and result.cost <= result.cost_as_written
    result.export(tmp_path / "fast.onnx")
    session(tmp_path / "fast.onnx", "DISABLE_ALL")
