"""Saturation whose rules a tree search chooses: gains under tight limits, budgets, determinism."""

import pytest
from eqsat_graphs import TASO, array, assert_equal, random_graph, two_products
from small_graphs import BLOCK, graph_of

from irgym.base.errors import BaselineError
from irgym.envs.graph.eqsat.choosing import TreeSearch, chosen_saturation
from irgym.envs.graph.eqsat.costs import counted
from irgym.envs.graph.eqsat.optimising import Optimised, optimised, total
from irgym.envs.graph.eqsat.saturation import Growing, Limits
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node

SEARCH = TreeSearch(budget=4, depth=3)
NAMES = ("merge-matmul", "transpose-up-unary", "transpose-down-unary", "cancel-transposes")
FEW = tuple(rule for rule in TASO if rule.name in NAMES)
TIGHT = Limits(nodes=20)


def products_and_transpositions() -> Graph:
    """Return six products, merged in many ways in vain, and two transpositions that a few rules cancel."""
    nodes = [
        *(node("MatMul", ["x", f"w{place}"], [f"p{place}"]) for place in range(6)),
        node("Transpose", ["x"], ["t"], perm=(1, 0)),
        node("Relu", ["t"], ["r"]),
        node("Sigmoid", ["r"], ["s"]),
        node("Transpose", ["s"], ["y"], perm=(1, 0)),
    ]
    weights = {f"w{place}": array(8, 8) for place in range(6)}
    return graph_of(nodes, {"x": (3, 8)}, weights, [*(f"p{place}" for place in range(6)), "y"])


def searched(graph: Graph, limits: Limits, search: TreeSearch = SEARCH) -> Optimised:
    return optimised(graph, FEW, counted, BLOCK, limits, search=search)


def test_a_chosen_order_gains_where_the_fixed_order_meets_the_limit_first():
    graph = products_and_transpositions()
    fixed, chosen = optimised(graph, FEW, counted, BLOCK, TIGHT), searched(graph, TIGHT)
    assert "stopped at the limit of 20 operators in iteration 1" in fixed.words
    assert len(fixed.graph.nodes) == len(graph.nodes) == 10
    assert len(chosen.graph.nodes) == 8
    assert_equal(graph, chosen.graph)


def test_multi_pattern_rules_are_chosen_as_often_as_their_limit_allows():
    found = optimised(two_products(), TASO, counted, BLOCK, Limits(), search=SEARCH)
    assert len(found.graph.nodes) == 4 and found.saturation.saturated
    assert "chose the rules; saturated, with" in found.words
    none = searched(two_products(), Limits(multi=0))
    assert len(none.graph.nodes) == 5 and none.saturation.iterations[-1].matches == 0


def test_the_same_seed_chooses_the_same_rules():
    def built(seed: int) -> tuple[int, ...]:
        search = TreeSearch(budget=1, depth=1, seed=seed)
        found = searched(products_and_transpositions(), Limits(nodes=30), search)
        return tuple(iteration.matches for iteration in found.saturation.iterations)

    assert built(0) == built(0)
    assert len({built(seed) for seed in range(3)}) > 1


def test_limits_hold_in_simulations_too():
    graph, sizes = products_and_transpositions(), list[int]()

    def size(tensors: Tensors) -> float:
        sizes.append(len(tensors.egraph.nodes))
        return 1.0

    found = chosen_saturation(graph, FEW, BLOCK, TIGHT, size, SEARCH)
    assert all(iteration.nodes <= 20 for iteration in found.iterations[:-1])
    assert len(sizes) > 4 and max(sizes) <= 20 + len(("Concat", "MatMul", "Split")), "those of the last match"
    late = searched(graph, Limits(seconds=0.0))
    assert len(late.graph.nodes) == 10 and "with 0 simulations" in late.words
    assert "stopped at the limit of 0 s" in late.words
    some = searched(graph, Limits(nodes=1000, iterations=1))
    assert len(some.saturation.iterations) <= len(FEW)


def test_a_trial_leaves_no_trace():
    graph = products_and_transpositions()
    plain, tried = (Growing(graph, FEW, BLOCK, Limits()) for _ in range(2))
    for _ in range(2):
        with tried.trial():
            tried.apply(tried.untried())
            tried.apply(tried.untried())
            assert len(tried.tensors.egraph.nodes) > len(plain.tensors.egraph.nodes)
        assert tried.tensors.egraph.nodes == plain.tensors.egraph.nodes
        assert tried.untried() == plain.untried() != []
        assert tried.apply(tried.untried()) == plain.apply(plain.untried())
    assert tried.tensors.egraph.nodes == plain.tensors.egraph.nodes
    assert tried.tensors.weights.keys() == plain.tensors.weights.keys()


@pytest.mark.parametrize("seed", range(3))
def test_results_compute_the_same_and_are_no_worse_than_the_original(seed: int):
    graph = random_graph(seed)
    search = TreeSearch(budget=1, depth=1, seed=seed)
    found = optimised(graph, TASO, counted, BLOCK, Limits(nodes=20), search=search)
    assert total(found.graph, counted) <= total(graph, counted)
    assert_equal(graph, found.graph)


def test_models_with_graphs_of_their_own_are_refused():
    branch = Node("If", ("x",), ("z",), captured=("y",))
    graph = graph_of([node("Relu", ["x"], ["y"])], {"x": (3, 8)}, {}, ["y"])
    held = Graph.of([*graph.nodes.values(), branch], graph.types, {}, ["x"], ["z"], graph.opsets)
    with pytest.raises(BaselineError, match="operators that hold graphs"):
        searched(held, Limits())
