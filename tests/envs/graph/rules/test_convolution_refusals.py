"""Rules for convolutions: where they must not apply, and that they reach ONNX Runtime's optimised graph."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from rules_in_ort import block_here
from small_graphs import applied, graph_of, operators_of, run_in_ort, sites_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rules import convolutions, layout, merging, pools

RULES = {rule.name: rule for file in (convolutions, layout, merging, pools) for rule in file.RULES}
X = (1, 4, 6, 6)
W = np.ones((4, 4, 3, 3))


def _conv(x: str, y: str, w: str = "w", **attributes: Any) -> Node:
    return node("Conv", [x, w], [y], **attributes)


def _graph(*nodes: Node, outputs: tuple[str, ...] = ("y",), dtype: str = "float32", **weights: Any) -> Graph:
    return graph_of(nodes, {"x": TensorType(dtype, X)}, {"w": W, **weights}, outputs)


def test_a_value_that_is_used_elsewhere_stays():
    nodes = [_conv("x", "c"), node("Relu", ["c"], ["y"])]
    assert sites_of(RULES["conv-relu"], _graph(*nodes))
    assert not sites_of(RULES["conv-relu"], _graph(*nodes, outputs=("y", "c")))
    more = node("Sigmoid", ["c"], ["z"])
    assert not sites_of(RULES["conv-relu"], _graph(*nodes, more, outputs=("y", "z")))


def test_an_activation_is_not_put_over_another():
    nodes = [_conv("x", "c"), node("Relu", ["c"], ["r"]), node("Sigmoid", ["r"], ["y"])]
    once = applied(RULES["conv-relu"], _graph(*nodes))
    assert operators_of(once) == ["Sigmoid", "com.microsoft.FusedConv"]
    assert not any(sites_of(rule, once) for name, rule in RULES.items() if name.startswith("conv-"))


def test_a_sum_with_itself_is_not_fused():
    doubled = _graph(_conv("x", "c"), node("Add", ["c", "c"], ["y"]))
    assert not sites_of(RULES["conv-sum"], doubled)


def test_only_constants_by_channel_are_folded():
    nodes = [_conv("x", "c"), node("Mul", ["c", "k"], ["y"])]
    assert sites_of(RULES["conv-mul"], _graph(*nodes, k=np.ones((4, 1, 1))))
    for shape in ((4,), (1, 4), (4, 4), (1, 1, 4, 4), (1, 1, 4, 1, 1)):
        assert not sites_of(RULES["conv-mul"], _graph(*nodes, k=np.ones(shape)))
    assert not sites_of(RULES["conv-mul"], _graph(*nodes, k=np.ones((1, 1, 1, 1, 1))))
    assert not sites_of(RULES["conv-mul"], _graph(*nodes, k=-3.4e38))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_global_pools_are_of_single_precision(dtype: str):
    """ONNX Runtime has MaxPool and ReduceMean for other types, but global pools for float32 only."""
    whole = [node("MaxPool", ["x"], ["y"], kernel_shape=X[2:])]
    mean = [node("ReduceMean", ["x", "axes"], ["y"], keepdims=1)]
    single = dtype == "float32"
    assert bool(sites_of(RULES["whole-max-pool"], _graph(*whole, dtype=dtype))) is single
    assert bool(sites_of(RULES["mean-pool"], _graph(*mean, dtype=dtype, axes=[2, 3]))) is single


def test_a_batch_normalisation_that_learns_stays():
    constants = {name: np.ones(4) for name in ("s", "b", "m", "v")}
    for training, count in ((0, 1), (1, 0)):
        normal = node("BatchNormalization", ["c", *constants], ["y"], training_mode=training)
        graph = _graph(_conv("x", "c"), node("Identity", ["c"], ["y"]), **constants)
        graph = Graph.of(
            [_conv("x", "c"), normal],
            {**graph.types, "y": graph.types["c"]},
            graph.weights,
            ["x"],
            ["y"],
            graph.opsets,
        )
        assert len(sites_of(RULES["conv-bn"], graph)) == count


def test_own_operators_are_for_single_precision():
    nodes = [_conv("x", "c"), node("Relu", ["c"], ["y"])]
    for name in ("conv-relu", "block-conv"):
        assert sites_of(RULES[name], _graph(*nodes))
        assert not sites_of(RULES[name], _graph(*nodes, dtype="float64"))


def test_channels_that_cannot_be_reordered_stay():
    weights = {channels: np.ones((4, channels, 1, 1)) for channels in (4, 18, 20)}
    found = {
        channels: len(
            sites_of(
                RULES["block-conv"],
                graph_of([_conv("x", "y")], {"x": (1, channels, 4, 4)}, {"w": array}, ["y"]),
            )
        )
        for channels, array in weights.items()
    }
    assert found == {4: 1, 18: 0, 20: 1}
    flat = graph_of([_conv("x", "y")], {"x": (1, 16, 4)}, {"w": np.ones((16, 16, 1))}, ["y"])
    assert not sites_of(RULES["block-conv"], flat)


def test_reorders_cancel_only_where_all_channels_count():
    blocked = "com.microsoft.nchwc"
    for channels, count in ((16, 1), (12, 0)):
        nodes = [
            node(f"{blocked}.ReorderOutput", ["x"], ["p"], channels=channels),
            node(f"{blocked}.ReorderInput", ["p"], ["q"]),
            node("Relu", ["q"], ["y"]),
        ]
        graph = graph_of(nodes, {"x": (1, 16, 4, 4)}, {}, ["y"])
        assert len(sites_of(RULES["reorder-elimination"], graph)) == count


def test_blocked_average_pools_that_count_differently_stay():
    for ceil, counts, sites in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        pool = node(
            "AveragePool",
            ["x"],
            ["y"],
            kernel_shape=(3, 3),
            strides=(2, 2),
            ceil_mode=ceil,
            count_include_pad=counts,
        )
        graph = graph_of([pool], {"x": (1, 16, 6, 6)}, {}, ["y"])
        assert len(sites_of(RULES["block-average-pool"], graph)) == sites


def test_convolutions_that_differ_are_not_merged():
    def sites(**attributes: Any) -> int:
        nodes = [_conv("x", "y"), _conv("x", "z", "v", **attributes)]
        return len(sites_of(RULES["merge-conv"], _graph(*nodes, outputs=("y", "z"), v=2 * W)))

    assert sites() == 2  # in either order
    assert not sites(pads=(1, 1, 1, 1))
    assert not sites(strides=(2, 2))


@pytest.mark.parametrize("pads, count", [((1, 1, 1, 1), 1), ((0, 0, 0, 0), 0), ((2, 2, 0, 0), 0)])
def test_windows_are_enlarged_only_around_their_middle(pads: tuple[int, ...], count: int):
    nodes = [_conv("x", "y", "v"), _conv("x", "z", pads=pads)]
    graph = _graph(*nodes, outputs=("y", "z"), v=np.ones((2, 4, 1, 1)))
    assert len(sites_of(RULES["enlarge-conv"], graph)) == count


def _network(rng: np.random.Generator) -> Graph:
    """Return a small network with a residual, a concat, odd channel counts and a depthwise convolution."""
    same = {"pads": (1, 1, 1, 1)}
    nodes = [
        _conv("x", "a", "w1", **same),
        node("BatchNormalization", ["a", "s", "b", "m", "v"], ["n"], epsilon=1e-3),
        node("Relu", ["n"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=(2, 2), strides=(2, 2)),
        _conv("p", "c", "w2", **same),
        node("Add", ["c", "p"], ["d"]),
        node("Relu", ["d"], ["e"]),
        _conv("e", "f", "w3"),
        node("Sigmoid", ["f"], ["g"]),
        _conv("g", "h", "w4", group=24, **same),
        node("Relu", ["h"], ["i"]),
        _conv("i", "j", "w5"),
        node("Concat", ["j", "e"], ["y"], axis=1),
    ]
    shapes = {"w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "w3": (24, 16, 1, 1), "w4": (24, 1, 3, 3)}
    weights = {name: rng.standard_normal(shape) for name, shape in {**shapes, "w5": (32, 24, 1, 1)}.items()}
    normal = {name: rng.uniform(0.5, 1.5, 16) for name in ("s", "b", "m", "v")}
    return graph_of(nodes, {"x": (1, 3, 8, 8)}, {**weights, **normal}, ["y"])


def _closed(graph: Graph, names: list[str], block: int) -> Graph:
    """Apply rules until none applies any longer."""
    while True:
        found = (
            (RULES[name], site)
            for name in names
            for node in graph.order
            if node.operator in (RULES[name].anchors or ())
            for site in RULES[name].sites(graph, node, block)
        )
        first = next(found, None)
        if first is None:
            return graph
        rule, site = first
        graph = graph.rewritten(rule.rewrite(graph, site, block))


def test_all_rules_together_reach_what_onnx_runtime_makes(tmp_path: Path):
    rng, block = np.random.default_rng(0), block_here()
    graph = _network(rng)
    weights = Weights({})
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "all.onnx")
    options.log_severity_level = 3
    model = model_of(graph, weights, whole=True).SerializeToString()
    onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    best = onnx.load(tmp_path / "all.onnx")
    wanted = Counter(f"{node.domain}.{node.op_type}".removeprefix(".") for node in best.graph.node)

    fused = _closed(graph, ["conv-bn", "conv-relu", "conv-sigmoid"], block)
    moving = [name for name in RULES if name.startswith(("reorder-", "blocked-", "block-"))]
    after = _closed(fused, moving, block)

    assert Counter(node.operator for node in after.order) == wanted
    feeds = {"x": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)}
    [before], [now] = run_in_ort(graph, weights, feeds), run_in_ort(after, weights, feeds)
    np.testing.assert_allclose(now, before, rtol=1e-3, atol=1e-4)
