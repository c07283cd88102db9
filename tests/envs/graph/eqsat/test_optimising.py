"""Equality saturation of small graphs: gains that need several rewrites, limits, and equal results."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from small_graphs import BLOCK, graph_of

from irgym.base.errors import BaselineError
from irgym.envs.graph.costs.estimate import Rates, estimated
from irgym.envs.graph.eqsat.costs import Operator, Prices, counted
from irgym.envs.graph.eqsat.optimising import optimised
from irgym.envs.graph.eqsat.saturation import Limits, saturate
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.verification import error_of, run
from irgym.envs.graph.rules.catalogue import RULES

RNG = np.random.default_rng(0)
TASO = tuple(rule for rule in RULES if "TASO" in rule.source)
LIMITS = Limits(nodes=5_000, iterations=8, seconds=30)


def two_products() -> Graph:
    """Return two products of one input, a Relu of each, and their product: a gain only after a merge."""
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("MatMul", ["x", "v"], ["q"]),
        node("Relu", ["p"], ["r"]),
        node("Relu", ["q"], ["s"]),
        node("Mul", ["r", "s"], ["y"]),
    ]
    return graph_of(nodes, {"x": (3, 8)}, {"w": array(8, 8), "v": array(8, 8)}, ["y"])


def transposed() -> Graph:
    """Return two transpositions that cancel once one of them has moved."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=(1, 0)),
        node("Relu", ["t"], ["r"]),
        node("Sigmoid", ["r"], ["s"]),
        node("Transpose", ["s"], ["y"], perm=(1, 0)),
    ]
    return graph_of(nodes, {"x": (3, 8)}, {}, ["y"])


def many_products(count: int) -> Graph:
    products = [node("MatMul", ["x", f"w{place}"], [f"p{place}"]) for place in range(count)]
    weights = {f"w{place}": array(8, 8) for place in range(count)}
    return graph_of(products, {"x": (3, 8)}, weights, [product.name for product in products])


def roughly(operators: Sequence[Operator], needed: int) -> list[float]:
    """Return estimated times of operators."""
    del needed
    return [estimated(graph, operator, Rates(60.0, 20.0)) for graph, operator in operators]


def total(graph: Graph, prices: Prices) -> float:
    """Return the cost of a graph, where Identity costs nothing."""
    nodes = [operator for operator in graph.nodes.values() if operator.operator != "Identity"]
    return sum(prices([(graph, operator) for operator in nodes], 0))


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def assert_equal(before: Graph, after: Graph) -> None:
    assert after.outputs == before.outputs and after.inputs == before.inputs
    feeds = {name: array(*before.types[name].shape) for name in before.inputs}
    wanted, got = (run(graph, feeds, Weights({}), BLOCK) for graph in (before, after))
    for name, expected, other in zip(before.outputs, wanted, got, strict=True):
        assert after.types[name] == before.types[name]
        assert error_of(expected, other) < 1e-5


@pytest.mark.parametrize(
    ("graph", "best"),
    [(two_products(), ["MatMul", "Mul", "Relu", "Split"]), (transposed(), ["Relu", "Sigmoid"])],
    ids=["products", "transposes"],
)
def test_gains_that_no_single_rewrite_has_are_found(graph: Graph, best: list[str]):
    finder = Finder(RULES, BLOCK)
    for sites in finder.all(graph).values():
        for place, site in sites:
            after = graph.rewritten(finder.rules[place].rewrite(graph, site, BLOCK))
            assert len(after.nodes) >= len(graph.nodes), "a greedy search would find it too"
    found = optimised(graph, TASO, counted, BLOCK, LIMITS)
    assert sorted(operator.operator for operator in found.graph.nodes.values()) == best
    assert found.extraction.optimal and found.extraction.cost == len(best)
    assert_equal(graph, found.graph)


def test_multi_pattern_rules_end_after_their_iterations():
    graph = two_products()
    found = optimised(graph, TASO, counted, BLOCK, Limits(multi=0))
    assert len(found.graph.nodes) == len(graph.nodes)
    assert found.saturation.saturated and "the first 0 with multi-pattern rules" in found.words


def test_a_second_iteration_of_multi_pattern_rules_meets_the_limit():
    graph, limit = many_products(8), 1_000
    once, twice = (saturate(graph, TASO, BLOCK, Limits(nodes=limit, multi=multi)) for multi in (1, 2))
    assert once.saturated and once.iterations[-1].nodes < limit
    assert not twice.saturated
    assert twice.stopped == f"stopped at the limit of {limit:,} operators in iteration 2"


def test_other_limits_are_stated():
    graph = many_products(4)
    assert saturate(graph, TASO, BLOCK, Limits(seconds=0.0)).stopped == (
        "stopped at the limit of 0 s in iteration 1"
    )
    assert saturate(graph, TASO, BLOCK, Limits(iterations=1)).stopped == "stopped at the limit of 1 iteration"


def random_graph(seed: int) -> Graph:
    """Return random products, sums, transpositions, concats and splits of square matrices."""
    rng = np.random.default_rng(seed)
    nodes: list[Node] = []
    values = ["x", "z"]
    for place in range(12):
        first, other = (values[int(rng.integers(len(values)))] for _ in range(2))
        name = f"n{place}"
        kind = str(rng.choice(["MatMul", "Add", "Mul", "Transpose", "Relu", "weight", "joined"]))
        if kind == "weight":
            nodes.append(node("MatMul", [first, str(rng.choice(["w", "v"]))], [name]))
        elif kind == "joined":
            nodes.append(node("Concat", [first, other], [f"{name}.both"], axis=1))
            nodes.append(node("Relu", [f"{name}.both"], [f"{name}.r"]))
            nodes.append(node("Split", [f"{name}.r", "sizes"], [name, f"{name}.b"], axis=1))
            values.append(f"{name}.b")
        elif kind == "Transpose":
            nodes.append(node(kind, [first], [name], perm=(1, 0)))
        else:
            nodes.append(node(kind, [first] if kind == "Relu" else [first, other], [name]))
        values.append(name)
    weights = {"w": array(4, 4), "v": array(4, 4), "sizes": np.array([4, 4])}
    return graph_of(nodes, {"x": (4, 4), "z": (4, 4)}, weights, values[-2:])


@pytest.mark.parametrize("seed", range(8))
def test_extracted_graphs_compute_the_same(seed: int):
    graph = random_graph(seed)
    limits = Limits(nodes=1_500, iterations=4, seconds=10)
    for rules, prices in ((TASO, counted), (RULES, roughly)):
        found = optimised(graph, rules, prices, BLOCK, limits, extraction_s=2)
        assert len(found.graph.order) == len(found.graph.nodes), "no circles"
        assert total(found.graph, prices) <= total(graph, prices)
        assert_equal(graph, found.graph)


def test_equal_outputs_and_outputs_that_are_inputs_keep_their_names():
    nodes = [
        node("Transpose", ["x"], ["t"], perm=(1, 0)),
        node("Transpose", ["t"], ["y"], perm=(1, 0)),
        node("Relu", ["x"], ["r"]),
        node("Relu", ["y"], ["s"]),
    ]
    graph = graph_of(nodes, {"x": (3, 8)}, {}, ["y", "r", "s"])
    found = optimised(graph, TASO, counted, BLOCK, LIMITS).graph
    assert sorted(operator.operator for operator in found.nodes.values()) == ["Identity", "Identity", "Relu"]
    assert_equal(graph, found)


def test_models_with_graphs_of_their_own_are_refused():
    graph = graph_of([node("Relu", ["x"], ["y"])], {"x": (3, 8)}, {}, ["y"])
    branch = Node("If", ("x",), ("z",), captured=("y",))
    held = Graph.of([*graph.nodes.values(), branch], graph.types, {}, ["x"], ["z"], graph.opsets)
    with pytest.raises(BaselineError, match="tensat takes no models with operators that hold graphs"):
        optimised(held, TASO, counted, BLOCK, LIMITS)


ALONE = """
import gc, sys, weakref
gc.disable()
sys.path.insert(0, {toys!r})
from small_graphs import BLOCK, graph_of
from irgym.envs.graph.eqsat.saturation import Limits, saturate
from irgym.envs.graph.ir.node import node
graph = graph_of([node("Relu", ["x"], ["y"])], {{"x": (2, 2)}}, {{}}, ["y"])
saturated = saturate(graph, [], BLOCK, Limits())
held = weakref.ref(saturated.tensors.egraph)
del saturated
assert held() is None
"""


def test_an_e_graph_is_freed_at_once():
    """Left to garbage collection, it may be dropped in another thread, which egglog refuses."""
    toys = str(Path(__file__).parents[3] / "toys")
    subprocess.run([sys.executable, "-c", ALONE.format(toys=toys)], check=True)
