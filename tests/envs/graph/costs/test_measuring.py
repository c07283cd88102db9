"""Single operators in ONNX Runtime."""

import numpy as np
import pytest
import small_graphs
from onnx import AttributeProto, helper
from small_networks import CONVOLUTIONS, TRANSFORMER, task_of

from irgym.core.cost import Outcome
from irgym.envs.graph.costs import measuring
from irgym.envs.graph.costs.measuring import copies, evicting, filled, measure
from irgym.envs.graph.costs.signature import Operand, Residences, Signature, signature_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, Opaque, node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.running.sessions import Program
from irgym.measure.target import host_target


def product(size: int) -> Signature:
    nodes = [node("MatMul", ["x", "a"], ["y"]), node("Relu", ["y"], ["z"])]
    weights = {"a": np.ones((size, size))}
    graph = small_graphs.graph_of(nodes, {"x": (size, size)}, weights, ["z"])
    found = signature_of(graph, graph.nodes["y"], Residences("memory", "memory"))
    assert found is not None
    return found


@pytest.mark.parametrize("uri", [CONVOLUTIONS, TRANSFORMER])
def test_operators_of_networks_run_by_themselves(uri: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measuring, "ROUNDS", 1)
    monkeypatch.setattr(measuring, "LONGER_NS", 0)
    monkeypatch.setattr(measuring, "evicting", lambda *_: lambda: None)
    task, rng = task_of(uri), np.random.default_rng(1)
    state = task.initial()
    graphs = [state.graph]
    for _ in range(25):
        mask = task.space.onward(task.mask(state))
        state = task.step(state, task.space.sample(mask, rng)) if mask.candidates else state
        graphs.append(state.graph)
    signatures = task.costs.missing(graphs)
    assert len(signatures) > 10
    for signature in signatures:
        found = measure(signature, 1)
        assert found.ok and len(found.samples) == 1 and 0 <= found.cost < 1e9, (signature.text, found)


def test_copies_share_inputs_and_have_weights_of_their_own():
    graph, weights, feeds = copies(product(40), 3)
    assert len(graph.nodes) == 3 and graph.inputs == tuple(feeds) and len(graph.weights) == 3
    results = Program(graph, weights, 1).run(feeds)
    for result in results:
        np.testing.assert_allclose(
            result, feeds[graph.inputs[0]] @ weights.array(graph.weights["irgym.x1.0"]), rtol=1e-5
        )


def test_a_value_that_is_read_twice_stays_one():
    graph = small_graphs.graph_of([node("Mul", ["x", "x"], ["y"])], {"x": (20, 40)}, {}, ["y"])
    found = signature_of(graph, graph.nodes["y"], Residences("cache", "near"))
    assert found is not None
    [copied, *_] = copies(found, 2)[0].order
    assert copied.inputs == ("irgym.x0", "irgym.x0")


def test_an_operator_with_graphs_inside_runs_by_itself():
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"])], "b", [], [helper.make_tensor_value_info("r", 1, [2000])]
    )
    content = helper.make_attribute("then_branch", branch)
    attributes = [(name, Opaque(5, _named(content, name))) for name in ("else_branch", "then_branch")]
    branch = Node("If", ("c",), ("y",), tuple(attributes), ("x",))
    types = {"c": TensorType("bool", ()), "x": TensorType("float32", (2000,))}
    graph = Graph.of([branch], types, {}, ["c", "x"], ["y"], [("", 20)])
    found = signature_of(graph, branch, Residences("cache", "near"))
    assert found is not None and measure(found, 1).ok
    assert copies(found, 2)[0].inputs == ("irgym.x0", "x")


def _named(attribute: AttributeProto, name: str) -> bytes:
    copied = AttributeProto()
    copied.CopyFrom(attribute)
    copied.name = name
    return copied.SerializeToString()


def test_operands_without_content_are_filled_in():
    def operand(dtype: str, content: bytes | None = None) -> Operand:
        return Operand(TensorType(dtype, (50, 2)), "value", content, 0)

    numbers = filled(operand("float32"), None)
    assert numbers.dtype == np.float32 and 0.5 <= numbers.min() < numbers.max() <= 1.5
    assert filled(operand("bool"), None).all() and (filled(operand("int64"), None) == 1).all()
    rows = filled(operand("int64"), 7)
    assert rows.min() == 0 and rows.max() == 6
    given = np.arange(100, dtype=np.int32)
    np.testing.assert_array_equal(filled(operand("int32", given.tobytes()), None), given.reshape(50, 2))


def test_eviction_reads_more_than_the_cache_holds():
    target = host_target()
    *_, near, last = [cache.size for cache in target.caches]
    sizes = [evicting(where, target).__self__.base.nbytes for where in ("cache", "memory")]  # pyright: ignore
    assert sizes == [measuring.NEAR * near, measuring.TWICE * last]
    assert evicting("near", target)() is None


def test_an_operator_that_onnx_runtime_refuses_is_a_compile_error():
    graph = small_graphs.graph_of([node("Mul", ["x", "x"], ["y"])], {"x": (20, 40)}, {}, ["y"])
    wrong = signature_of(graph, node("Nothing", ["x", "x"], ["y"]), Residences("cache", "near"))
    assert wrong is not None
    found = measure(wrong, 1)
    assert found.outcome is Outcome.COMPILE_ERROR and found.detail.startswith(
        "Nothing by itself: ONNX Runtime"
    )


@pytest.mark.timed
def test_times_grow_with_the_work():
    small, large = measure(product(64), 1).cost, measure(product(512), 1).cost
    assert 20 * small < large < 5000 * small  # the work is 512 times as much
    gigaflops = 2 * 512**3 / large
    assert 2 < gigaflops < 1000
