"""Allowances for rounding are large enough for differences of similar numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from irgym.envs.graph.checking.cases import cases_on
from irgym.envs.graph.checking.checks import checks_on
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.runner import prepare
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Program
from irgym.envs.graph.task import GraphTask
from irgym.measure.checking.expected import Floats


def test_weights_of_one_shape_are_moved_each_its_own_way(tmp_path: Path):
    """Equal changes of two weights that cancel would leave their sum unchanged, unlike rounding."""
    assert float(np.median(allowance_of(tmp_path, *cancelling()))) > np.finfo(np.float32).eps


def cancelling(factor: float = 0.999) -> tuple[list[NodeProto], list[TensorProto]]:
    """Return the nodes and weights of a model whose result is the difference of similar products."""
    b = np.random.default_rng(0).uniform(0.5, 1, 100).astype(np.float32)
    arrays = {"b": b, "c": -b * np.float32(factor)}
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    products = [helper.make_node("Mul", ["x", name], [f"x{name}"]) for name in "bc"]
    return [*products, helper.make_node("Add", ["xb", "xc"], ["y"])], weights


def branching(nodes: Sequence[NodeProto], constants: Sequence[TensorProto]) -> list[NodeProto]:
    """Return the nodes of a model that has others in a branch, with their weights as constants there."""
    within = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in constants]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 100))
    taken = helper.make_graph([*within, *nodes], "taken", [], [result])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", [], [result])
    condition = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Constant", [], ["low"], value_float=-100.0),
        helper.make_node("Greater", ["most", "low"], ["yes"]),
    ]
    return [*condition, helper.make_node("If", ["yes"], ["y"], then_branch=taken, else_branch=other)]


def saved(folder: Path, nodes: Sequence[NodeProto], weights: Sequence[TensorProto] = ()) -> GraphTask:
    """Return the task of a model from x to y, both of shape (1, 100)."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 100)) for name in "xy")
    graph = helper.make_graph(nodes, "model", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = folder / f"{len(list(folder.iterdir()))}.onnx"
    onnx.save(model, str(path))
    return GRAPH.task(f"graph:{path}")


def allowance_of(folder: Path, nodes: Sequence[NodeProto], weights: Sequence[TensorProto] = ()) -> Floats:
    """Return the tolerance of each number of a model's result."""
    problem = cases_on(saved(folder, nodes, weights).path, 0)[0].problem
    [expected] = problem.expected
    assert expected.allowance is not None
    return expected.allowance


def test_constants_in_branches_are_moved_as_weights_are(tmp_path: Path):
    plain = np.median(allowance_of(tmp_path, *cancelling()))
    branched = np.median(allowance_of(tmp_path, branching(*cancelling())))
    assert 0.25 * plain < branched < 4 * plain


def test_preparation_leaves_the_needed_checks_behind(tmp_path: Path):
    task = saved(tmp_path, branching(*cancelling(0.999)))
    call = task.preparation(3, 0)
    assert call.function.endswith(":prepare")
    prepare(*call.arguments)
    assert len(checks_on(task.path, 3, 0).made) == 1  # the first of three ordinary ones: no size is open


def test_a_wrong_constant_in_a_branch_is_seen(tmp_path: Path):
    right, wrong = (saved(tmp_path, branching(*cancelling(factor))) for factor in (0.999, 0.99901))
    checks = checks_on(right.path, 1, 0)
    assert checks.judge(program(right).run).ok
    assert not checks.judge(program(wrong).run).ok


def program(task: GraphTask) -> Program:
    return Program(task.graph, model_at(task.path).weights, threads=1)


def gated() -> list[NodeProto]:
    """Return the nodes of a model whose results are sigmoids close to 0."""
    return [
        helper.make_node("Constant", [], ["far"], value_float=16.0),
        helper.make_node("Sub", ["x", "far"], ["shifted"]),
        helper.make_node("Sigmoid", ["shifted"], ["y"]),
    ]


@pytest.mark.parametrize("where", ["outside", "in a branch"])
def test_small_sigmoids_have_the_error_of_numbers_close_to_one_half(where: str, tmp_path: Path):
    """ONNX Runtime adds 1/2 to an odd function: other kernels' results differ by whole steps of 2 ** -25."""
    nodes = gated() if where == "outside" else branching(gated(), ())
    allowance = allowance_of(tmp_path, nodes)
    assert float(allowance.min()) >= 2.0**-23 and float(allowance.max()) <= 2.0**-19
