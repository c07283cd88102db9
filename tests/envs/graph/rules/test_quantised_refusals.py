"""Rules for quantised numbers on small graphs: where they apply, and wrong variants, whose results differ."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_graphs import BLOCK, applied, graph_of, operators_of, sites_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.sizes import symbol
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import run, verify
from irgym.envs.graph.rules import integer_products, quantised, signs

RULES = {rule.name: rule for group in (quantised, integer_products, signs) for rule in group.RULES}
BYTES = np.arange(256).reshape(16, 16)
WHOLE = {"int8": BYTES.astype(np.int16) - 128, "uint8": BYTES}
SCALE = np.asarray(0.1, np.float32)


def of(kind: str, number: Any) -> Any:
    return np.asarray(number, kind)


def whole(kind: str) -> TensorType:
    return TensorType(kind, (16, 16))


def feeds_of(graph: Graph) -> dict[str, Any]:
    """Return all integers of 8 bits for each input of them, and numbers far beyond their range for others."""
    rng, found = np.random.default_rng(0), {}
    for name in graph.inputs:
        kind = graph.types[name]
        if kind.dtype in WHOLE:
            found[name] = np.resize(rng.permutation(WHOLE[kind.dtype].reshape(-1)), kind.shape)
        else:
            found[name] = rng.standard_normal(kind.shape) * 40
        found[name] = found[name].astype(kind.dtype)
    return found


def keeps(rule: Rule, graph: Graph) -> bool:
    """Say whether the rule applies, and the results after it are equal bit for bit."""
    feeds = feeds_of(graph)
    before = run(graph, feeds, Weights({}), BLOCK)
    after = run(applied(rule, graph), feeds, Weights({}), BLOCK)
    return all(
        wanted.dtype == got.dtype and np.array_equal(wanted, got)
        for wanted, got in zip(before, after, strict=True)
    )


def careless(name: str, *left_out: str) -> Rule:
    """Return a rule without some of its conditions."""
    rule = RULES[name]
    where = rule.where
    for condition in left_out:
        assert condition in where
        where = where.replace(condition, "True")
    return replace(rule, where=where)


def chain(kind: str, nodes: Sequence[Node], weights: Mapping[str, Any], shape: Any = (16, 16)) -> Graph:
    return graph_of(nodes, {"x": TensorType(kind, shape)}, {"s": SCALE, **weights}, ["y"])


def pair(kind: str, *, r: Any = SCALE, z: Any = 3, t: Any = 3, other: str = "") -> Graph:
    """Return integers that become numbers and integers again."""
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["d"]), node("QuantizeLinear", ["d", "r", "t"], ["y"])]
    return chain(kind, nodes, {"z": of(kind, z), "r": r, "t": of(other or kind, t)})


def blocks(graph: Graph, name: str) -> Graph:
    """Return a graph with a node that has a scale for each block of elements."""
    changed = replace(graph.nodes[name], attributes=(("block_size", 2),))
    nodes = [changed if other.name == name else other for other in graph.nodes.values()]
    return Graph.of(nodes, graph.types, graph.weights, graph.inputs, graph.outputs, [("", 21)])


def twice(kind: str, z: int, other: str, t: int) -> Graph:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        node("QuantizeLinear", ["d", "s", "t"], ["q"]),
        node("DequantizeLinear", ["q", "s", "t"], ["y"]),
    ]
    return chain(kind, nodes, {"z": of(kind, z), "t": of(other, t)})


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_pair_cancels(kind: str):
    assert keeps(RULES["cancel-quantize-dequantize"], pair(kind))
    assert operators_of(applied(RULES["cancel-quantize-dequantize"], pair(kind))) == ["Identity"]


@pytest.mark.parametrize(
    "graph",
    [
        pair("int8", r=np.asarray(0.2, np.float32)),
        pair("int8", t=4),
        pair("int8", other="uint8"),
        blocks(pair("int8"), "y"),
    ],
)
def test_a_pair_with_other_parameters_stays(graph: Graph):
    assert sites_of(RULES["cancel-quantize-dequantize"], graph) == []


@pytest.mark.parametrize("scale", [0.0, 1e-42, 1e38, np.inf, np.nan])
def test_a_pair_with_an_extreme_scale_stays(scale: float):
    extreme = np.asarray(scale, np.float32)
    graph = pair("uint8", r=extreme)
    same = {"x": graph.types["x"]}
    nodes = [graph.nodes["d"], replace(graph.nodes["y"], inputs=("d", "s", "z"))]
    graph = graph_of(nodes, same, {"s": extreme, "z": of("uint8", 3)}, ["y"])
    assert sites_of(RULES["cancel-quantize-dequantize"], graph) == []


def test_a_pair_along_different_axes_stays():
    along = {"s": np.linspace(0.1, 0.9, 16).astype(np.float32), "z": np.arange(16, dtype=np.uint8)}
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["d"], axis=-1),
        node("QuantizeLinear", ["d", "s", "z"], ["y"], axis=1),
    ]
    assert keeps(RULES["cancel-quantize-dequantize"], chain("uint8", nodes, along))
    nodes[1] = node("QuantizeLinear", ["d", "s", "z"], ["y"], axis=0)
    graph = chain("uint8", nodes, along)
    assert sites_of(RULES["cancel-quantize-dequantize"], graph) == []
    assert not keeps(careless("cancel-quantize-dequantize", "along(s, x.rank, q, d)"), graph)


def test_a_pair_between_signed_and_unsigned_numbers_is_skipped_where_nothing_saturates():
    rule = RULES["skip-requantize"]
    assert keeps(rule, twice("int8", -5, "uint8", 123))
    assert keeps(rule, twice("uint8", 128, "int8", 0))
    for graph in (
        twice("int8", -5, "uint8", 122),
        twice("uint8", 128, "int8", 1),
        twice("int8", 0, "int8", 1),
    ):
        assert sites_of(rule, graph) == []
        assert not keeps(careless("skip-requantize", "fits(z, t)"), graph)


def before_quantising(activation: Node, zero: int, **bounds: float) -> Graph:
    nodes = [activation, node("QuantizeLinear", ["a", "s", "z"], ["y"])]
    weights = {name: np.asarray(bound, np.float32) for name, bound in bounds.items()}
    return chain("float32", nodes, {"z": of("uint8", zero), **weights})


def test_saturation_replaces_a_relu_where_nothing_is_below_zero():
    relu = node("Relu", ["x"], ["a"])
    assert keeps(RULES["quantize-relu"], before_quantising(relu, 0))
    graph = before_quantising(relu, 1)
    assert sites_of(RULES["quantize-relu"], graph) == []
    assert not keeps(careless("quantize-relu", "saturates(s, z, 0, None)"), graph)


def test_saturation_replaces_a_clip_at_the_ends_of_the_range():
    clip = node("Clip", ["x", "low", "high"], ["a"])
    rule, wrong = RULES["quantize-clip"], careless("quantize-clip", "saturates(s, z, low, high)")
    assert keeps(rule, before_quantising(clip, 0, low=0, high=25.5))
    for low, high in ((0.1, 25.5), (0, 25.3)):
        graph = before_quantising(clip, 0, low=low, high=high)
        assert sites_of(rule, graph) == []
        assert not keeps(wrong, graph)


def test_a_relu_of_numbers_that_are_not_negative_goes():
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["d"]), node("Relu", ["d"], ["y"])]
    assert keeps(RULES["relu-dequantize"], chain("int8", nodes, {"z": of("int8", -128)}))
    graph = chain("int8", nodes, {"z": of("int8", -127)})
    assert sites_of(RULES["relu-dequantize"], graph) == []
    assert not keeps(careless("relu-dequantize", "saturates(s, z, 0, None)"), graph)


def pooled(scale: Any, zero: Any) -> Graph:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        node("MaxPool", ["d"], ["y"], kernel_shape=(2, 2), strides=(2, 2)),
    ]
    return chain("uint8", nodes, {"s": np.asarray(scale, np.float32), "z": zero}, (1, 2, 8, 8))


def test_a_pool_takes_integers_if_the_scale_is_positive_and_one():
    rule = RULES["dequantize-down-move"]
    assert keeps(rule, pooled(0.1, of("uint8", 3)))
    assert sites_of(rule, pooled([0.1, 0.2], of("uint8", [3, 4]))) == []
    negative = pooled(-0.1, of("uint8", 3))
    assert sites_of(rule, negative) == []
    assert not keeps(careless("dequantize-down-move", "positive(s)"), negative)


def test_a_folded_constant_is_what_the_operator_computes():
    weights = {
        "w": of("int8", np.arange(-8, 8).reshape(4, 4)),
        "s": np.linspace(0.1, 0.4, 4).astype(np.float32),
    }
    nodes = [node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0), node("MatMul", ["x", "d"], ["y"])]
    given = {"x": (3, 4)}
    graph = graph_of(nodes, given, {**weights, "z": of("int8", [0, 1, 2, 3])}, ["y"])
    assert keeps(RULES["fold-dequantize"], graph)
    assert operators_of(applied(RULES["fold-dequantize"], graph)) == ["MatMul"]
    assert sites_of(RULES["fold-dequantize"], blocks(graph, "d")) == []


def products(v: Any, p: Any = None, r: Any = None, **weights: Any) -> Graph:
    """Return two products of integers with weights w and v, and zero points p and r."""
    zeros = {name: zero for name, zero in (("p", p), ("r", r)) if zero is not None}
    nodes = [
        node("MatMulInteger", ["x", "w", "a", *(["p"] if p is not None else [])], ["y"]),
        node("MatMulInteger", ["x", "v", "a", *(["r"] if r is not None else [])], ["z"]),
    ]
    known = {"w": of("uint8", BYTES), "v": v, "a": of("uint8", 7), **zeros, **weights}
    return graph_of(nodes, {"x": whole("uint8")}, known, ["y", "z"])


@pytest.mark.parametrize(("p", "r"), [(None, None), (3, 3), (3, 4), (3, [4, 5])])
def test_products_of_one_array_of_integers_are_merged(p: Any, r: Any):
    v = of("uint8", BYTES[:, :2])
    zeros = [zero if zero is None else of("uint8", zero) for zero in (p, r)]
    graph = products(v, *zeros)
    assert keeps(RULES["merge-matmul-integer"], graph)
    after = applied(RULES["merge-matmul-integer"], graph)
    assert operators_of(after) == ["MatMulInteger", "Split"]


def test_products_of_other_integers_are_not_merged():
    rule = RULES["merge-matmul-integer"]
    assert sites_of(rule, products(of("int8", BYTES % 128))) == []
    assert sites_of(rule, products(of("uint8", BYTES), of("uint8", 3))) == []


def test_one_zero_point_does_not_serve_two_weights():
    rule = RULES["merge-matmul-integer"]
    wrong = replace(rule, after=rule.after.replace("and alike(p, r)", ""))
    graph = products(of("uint8", BYTES), of("uint8", 3), of("uint8", 4))
    assert keeps(rule, graph) and not keeps(wrong, graph)


def test_products_are_merged_whatever_the_size_of_the_batch():
    graph = products(of("uint8", BYTES), of("uint8", 3), of("uint8", 4))
    rows = symbol("rows")
    nodes = list(graph.nodes.values())
    weights = {name: weight.array for name, weight in graph.weights.items()}
    wide = graph_of(nodes, {"x": TensorType("uint8", (rows, 16))}, weights, ["y", "z"])
    assert applied(RULES["merge-matmul-integer"], wide).types["y"].shape == (rows, 16)


def linear(scale: float, zero: int) -> Graph:
    """Return two quantised products of one array, the second with another scale and zero point."""
    first, second = (["x", "s", "a", name, "s", "p", f"h{name}", f"o{name}"] for name in "wv")
    nodes = [node("QLinearMatMul", first, ["y"]), node("QLinearMatMul", second, ["z"])]
    weights = {
        "s": SCALE,
        "a": of("uint8", 7),
        "p": of("uint8", 0),
        "w": of("uint8", BYTES),
        "v": of("uint8", BYTES.T),
    }
    ends = {"hw": 99.0, "ow": of("uint8", 5), "hv": scale, "ov": of("uint8", zero)}
    ends = {name: np.asarray(end, np.float32) if name[0] == "h" else end for name, end in ends.items()}
    return graph_of(nodes, {"x": whole("uint8")}, {**weights, **ends}, ["y", "z"])


def test_quantised_products_are_merged_if_their_results_have_one_scale():
    rule = RULES["merge-qlinear-matmul"]
    assert keeps(rule, linear(99.0, 5))
    for graph in (linear(98.0, 5), linear(99.0, 6)):
        assert sites_of(rule, graph) == []
        assert not keeps(careless("merge-qlinear-matmul", "alike(h, i)", "alike(o, u)"), graph)


def convolutions(group: int) -> Graph:
    w = of("uint8", np.arange(4 * 9 * (4 // group)).reshape(4, 4 // group, 3, 3) % 256)
    weights = {"w": w, "v": w[::-1].copy(), "a": of("uint8", 7)}
    nodes = [
        node("ConvInteger", ["x", "w", "a"], ["y"], group=group, pads=(1, 1, 1, 1)),
        node("ConvInteger", ["x", "v", "a"], ["z"], group=group, pads=(1, 1, 1, 1)),
    ]
    return graph_of(nodes, {"x": TensorType("uint8", (1, 4, 4, 4))}, weights, ["y", "z"])


def test_convolutions_of_integers_are_merged_unless_they_have_groups():
    assert keeps(RULES["merge-conv-integer"], convolutions(1))
    assert sites_of(RULES["merge-conv-integer"], convolutions(2)) == []


def scaled(second: str) -> Graph:
    """Return products that become numbers, by two scales of the weights and one or two of the array."""
    nodes = [
        node("MatMulInteger", ["x", "w", "a"], ["p"]),
        node("Cast", ["p"], ["c"], to=1),
        node("Mul", ["s", "f"], ["u"]),
        node("Mul", ["c", "u"], ["y"]),
        node("MatMulInteger", ["x", "v", "a"], ["q"]),
        node("Cast", ["q"], ["d"], to=1),
        node("Mul", [second, "g"], ["k"]),
        node("Mul", ["d", "k"], ["z"]),
    ]
    inputs = {"x": whole("uint8"), "s": TensorType("float32", ()), "r": TensorType("float32", ())}
    weights = {"w": of("uint8", BYTES), "v": of("uint8", BYTES.T), "a": of("uint8", 7)}
    weights |= {"f": SCALE, "g": np.linspace(0.1, 0.7, 16).astype(np.float32)}
    return graph_of(nodes, inputs, weights, ["y", "z"])


def test_products_that_become_numbers_are_merged_with_their_scales():
    rule = RULES["merge-matmul-integer-scaled"]
    assert keeps(rule, scaled("s"))
    assert operators_of(applied(rule, scaled("s"))) == ["Cast", "MatMulInteger", "Mul", "Mul", "Split"]
    assert sites_of(rule, scaled("r")) == []


def signed_pair(kind: str, *, known: bool = True) -> Graph:
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    inputs = {"x": TensorType("float32", (16, 16))} | ({} if known else {"s": TensorType("float32", ())})
    return graph_of(nodes, inputs, ({"s": SCALE} if known else {}) | {"z": of(kind, 5)}, ["y"])


def test_signed_numbers_become_unsigned():
    rule = RULES["unsigned-pair"]
    graph = signed_pair("int8")
    after = applied(rule, graph)
    assert keeps(rule, graph)
    assert [after.types[name].dtype for name in after.nodes if name != "y"] == ["uint8"]
    assert sites_of(rule, after) == sites_of(rule, signed_pair("uint8")) == []
    assert sites_of(rule, signed_pair("int8", known=False)) == []


def test_each_signed_operator_becomes_unsigned_once():
    rng = np.random.default_rng(0)
    for name, rule in RULES.items():
        if name.startswith("unsigned-qlinear"):
            instance = verify(rule, rng, BLOCK)
            [site] = sites_of(rule, instance.graph, "float64")
            after = instance.graph.rewritten(rule.rewrite(instance.graph, site, BLOCK))
            assert sites_of(rule, after, "float64") == [], name


def test_a_wrong_unsigned_zero_point_is_noticed():
    rule = RULES["unsigned-pair"]
    wrong = replace(
        rule, after="y = DequantizeLinear(QuantizeLinear(x, s, unsigned(z)), s, like(unsigned(z), 132))"
    )
    assert not keeps(wrong, signed_pair("int8"))
