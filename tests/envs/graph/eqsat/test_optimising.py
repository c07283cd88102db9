"""Equality saturation of small graphs: gains that need several rewrites, limits, and equal results."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from eqsat_graphs import (
    LIMITS,
    TASO,
    assert_equal,
    many_products,
    random_graph,
    transposed,
    two_products,
)
from small_graphs import BLOCK, graph_of

from irgym.base.errors import BaselineError
from irgym.envs.graph.costs.estimate import Rates, estimated
from irgym.envs.graph.eqsat import extraction
from irgym.envs.graph.eqsat.costs import Operator, Prices, counted
from irgym.envs.graph.eqsat.optimising import optimised
from irgym.envs.graph.eqsat.saturation import Limits, saturate
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rules.catalogue import RULES


def roughly(operators: Sequence[Operator], needed: int) -> list[float]:
    """Return estimated times of operators."""
    del needed
    return [estimated(graph, operator, Rates(60.0, 20.0)) for graph, operator in operators]


def total(graph: Graph, prices: Prices) -> float:
    """Return the cost of a graph, where Identity costs nothing."""
    nodes = [operator for operator in graph.nodes.values() if operator.operator != "Identity"]
    return sum(prices([(graph, operator) for operator in nodes], 0))


@pytest.mark.parametrize(
    ("graph", "best"),
    [(two_products(), ["MatMul", "Mul", "Relu", "Split"]), (transposed(), ["Relu", "Sigmoid"])],
    ids=["products", "transposes"],
)
def test_gains_that_no_single_rewrite_has_are_found(graph: Graph, best: list[str]):
    finder = Finder(RULES, BLOCK)
    for sites in finder.all(graph).values():
        for (place, _), (site,) in sites:
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


def test_a_value_may_become_a_constant():
    weights = {"w": np.arange(64, dtype=np.int8).reshape(8, 8), "s": np.asarray(0.5, np.float32)}
    nodes = [node("DequantizeLinear", ["w", "s"], ["v"]), node("MatMul", ["x", "v"], ["y"])]
    graph = graph_of(nodes, {"x": (3, 8)}, weights, ["y"])
    fold = [rule for rule in RULES if rule.name == "fold-dequantize"]
    found = optimised(graph, fold, counted, BLOCK, LIMITS)
    assert [operator.operator for operator in found.graph.nodes.values()] == ["MatMul"]
    assert_equal(graph, found.graph)


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


def test_a_graph_that_costs_more_than_the_original_is_not_taken(monkeypatch: pytest.MonkeyPatch):
    nodes = [
        node("Transpose", ["x"], ["t"], perm=(1, 0)),
        node("Relu", ["t"], ["r"]),
        node("Sigmoid", ["t"], ["s"]),
    ]
    graph = graph_of(nodes, {"x": (3, 8)}, {}, ["r", "s"])

    def prices(operators: Sequence[Operator], needed: int) -> list[float]:
        """Return costs by which each output is cheaper with a separate transposition."""
        shapes = [held.types[operator.inputs[0]].shape for held, operator in operators]
        kinds = [operator.operator for _, operator in operators]
        return [
            6.0 if kind == "Transpose" else 1.0 if shape == (8, 3) else 0.1
            for kind, shape in zip(kinds, shapes, strict=True)
        ]

    assert not optimised(graph, TASO, prices, BLOCK, LIMITS).kept
    monkeypatch.setattr(extraction._Program, "solve", lambda program, seconds: (None, 1))
    found = optimised(graph, TASO, prices, BLOCK, LIMITS)
    assert found.extraction.cost > 8.0 and found.kept and found.graph is graph
    assert found.words.endswith("it costs more than the original, which is kept")
