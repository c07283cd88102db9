"""Models with open sizes: what is measured, checked and exported."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from small_graphs import sites_of

from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.sizes import symbol
from irgym.envs.graph.ir.weights import Sizes
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.runner import validate
from irgym.envs.graph.task import GraphTask

SHAPES = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[batch, 4, height, ?] x) => (float[batch, both, 4] y, float[batch] z)
<int64 first = {0}, int64[1] axis = {0}, int64[1] four = {4}, int64[1] rest = {-1}, int64[2] axes = {2, 3}>
{
  s = Shape(x)
  small = Cast <to = 6> (s)
  batch = Gather(small, first)
  wide = Cast <to = 7> (batch)
  n = Unsqueeze(wide, axis)
  target = Concat <axis = 0> (n, four, rest)
  flat = Reshape(x, target)
  turned = Transpose <perm = [0, 2, 1]> (flat)
  y = Relu(turned)
  all = ReduceSum <keepdims = 0> (x, axes)
  one = Slice(all, axis, four, axis)
  z = ReduceSum <keepdims = 0> (one, axes_of_z)
}
"""


@pytest.fixture
def task(tmp_path: Path) -> GraphTask:
    path = tmp_path / "model.onnx"
    text = SHAPES.replace("int64[2] axes", "int64[1] axes_of_z = {1}, int64[2] axes")
    onnx.save(parser.parse_model(text), path)
    return GRAPH.task(f"graph:{path}?batch=2&height=6&x.3=4")


def test_shapes_that_a_model_computes_are_constants(task: GraphTask):
    assert {node.operator for node in task.graph.order} >= {"Reshape", "Transpose"}
    assert not {"Shape", "Cast", "Gather", "Unsqueeze", "Concat"} & {
        node.operator for node in task.graph.order
    }
    target = task.graph.weights["target"]
    assert isinstance(target, Sizes) and target.elements == (symbol("batch"), 4, -1)
    assert task.graph.types["flat"].shape == (symbol("batch"), 4, symbol("height") * symbol("x.3"))


def test_exports_declare_what_the_file_does_and_run_at_other_sizes(task: GraphTask, tmp_path: Path):
    path, *_ = task.export(task.initial(), tmp_path / "fast.onnx")
    fast, given = onnx.load(path), onnx.load(task.uri.removeprefix("graph:").partition("?")[0])
    onnx.checker.check_model(fast, full_check=True)
    assert list(fast.graph.input) == list(given.graph.input)
    assert list(fast.graph.output) == list(given.graph.output)
    sessions = [
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for model in (given, fast)
    ]
    for shape in ((1, 4, 1, 1), (3, 4, 5, 7)):
        feeds = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
        for wanted, got in zip(*(session.run(None, feeds) for session in sessions), strict=True):
            np.testing.assert_allclose(got, wanted, 1e-5)
    again = GRAPH.task(f"graph:{path}")
    assert again.graph.profile == task.graph.profile, "an exported model tells the sizes"


EVEN = Rule(
    "planted",
    before="y = ReduceSum(x, a, keepdims=keep)",
    where="a.elements == (2, 3)",
    after="""
first = Slice(x, whole(0), whole(1 << 40), whole(2), whole(2))
last = Slice(x, whole(-1), whole(-(1 << 40)), whole(2), whole(-2))
y = Add(ReduceSum(first, a, keepdims=keep), ReduceSum(last, a, keepdims=keep))
""",
    sample=lambda _: Sample({}),
)
"""A wrong rule: every second row from the first and from the last are all rows of an even number."""


def test_a_rule_for_even_sizes_is_caught_by_checks_at_other_sizes(task: GraphTask):
    [site, *_] = sites_of(EVEN, task.graph)
    wrong = task.graph.rewritten(EVEN.rewrite(task.graph, site, task.block))
    good = validate(task.path, task.graph, 1, 0, 1)
    assert good.ok and "also at batch=1, height=1, x.3=1" in good.tolerance
    bad = validate(task.path, wrong, 1, 0, 1)
    assert not bad.ok and bad.detail.startswith("at batch=1, height=1, x.3=1")


def test_a_condition_on_even_sizes_is_not_true(task: GraphTask):
    careful = Rule(EVEN.name, EVEN.before, EVEN.after, EVEN.sample, f"{EVEN.where} and x.shape[2] % 2 == 0")
    assert not sites_of(careful, task.graph) and sites_of(careful, task.graph.measured)
