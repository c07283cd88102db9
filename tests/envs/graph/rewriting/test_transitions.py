"""A rule at all of its sites: at once, and one after the other."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from fuzz.graph.making.open_graphs import OpenMaker
from small_graphs import BLOCK, graph_of

from irgym.core.actions import Action
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.rewriting import transitions
from irgym.envs.graph.rewriting.rule import Site
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.transitions import StepCache, applied, rewritten
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import EVERYWHERE, GraphState

FINDER = Finder(RULES, BLOCK)
SOUND = {rule.name: rule for rule in RULES}


def state_of(graph: Graph) -> GraphState:
    return GraphState(graph, graph.digest, FINDER.all(graph))


def one_after_the_other(state: GraphState, place: int, sites: tuple[Site, ...]) -> Graph:
    for name in [site.name for site in sites]:
        if (place, name) in state.candidates:
            state = rewritten(FINDER, state, place, state.candidates[place, name])
    return state.graph


def assert_equal_ways(state: GraphState) -> int:
    """Apply each rule that has several sites in both ways; return how many rules had."""
    several = [key for key in state.candidates if key[1] == EVERYWHERE]
    for place, name in several:
        sites = state.candidates[place, name]
        graph, _ = applied(FINDER, state, place, sites)
        assert graph.digest == one_after_the_other(state, place, tuple(sites)).digest, RULES[place].name
    return len(several)


@pytest.mark.parametrize(
    "uri", ["graph://bert?layers=1&hidden=32&heads=2&sequence=8", "graph://squeezenet1_1?size=64"]
)
def test_networks(uri: str):
    task = GRAPH.task(uri)
    assert assert_equal_ways(task.initial()) > 1


def test_random_graphs_with_open_sizes():
    graphs = [OpenMaker(np.random.default_rng(seed), "float32").grown(40) for seed in range(12)]
    assert sum(assert_equal_ways(state_of(graph)) for graph in graphs) > 10


def test_sites_in_a_chain_are_rewritten_in_order():
    nodes = [node("Relu", [f"v{place}"], [f"v{place + 1}"]) for place in range(9)]
    state = state_of(graph_of(nodes, {"v0": (2, 3)}, {}, ["v9"]))
    assert assert_equal_ways(state) > 0


def test_sites_of_a_condition_that_looks_far_are_rewritten_one_by_one():
    rule = replace(SOUND["merge-relus"], where="x.finite in (True, False)")
    assert rule.far
    finder = Finder([rule], BLOCK)
    nodes = [node("Relu", [f"v{place}"], [f"v{place + 1}"]) for place in range(6)]
    graph = graph_of(nodes, {"v0": (2, 3)}, {}, ["v6"])
    state = GraphState(graph, graph.digest, finder.all(graph))
    after, rewrites = applied(finder, state, 0, state.candidates[0, EVERYWHERE])
    assert len(after.nodes) == 1 and len(rewrites) == 5


def test_distant_sites_take_one_rewrite_of_the_graph(monkeypatch: pytest.MonkeyPatch):
    nodes = []
    for place in range(20):
        nodes += [
            node("Relu", [f"v{place}"], [f"a{place}"]),
            node("Relu", [f"a{place}"], [f"b{place}"]),
            node("Tanh", [f"b{place}"], [f"c{place}"]),
            node("Sin", [f"c{place}"], [f"d{place}"]),
            node("Cos", [f"d{place}"], [f"v{place + 1}"]),
        ]
    state = state_of(graph_of(nodes, {"v0": (2, 3)}, {}, ["v20"]))
    [(place, sites)] = [
        (place, sites)
        for (place, name), sites in state.candidates.items()
        if name == EVERYWHERE and RULES[place].name == "merge-relus"
    ]
    calls: list[Rewrite] = []
    whole = Graph.rewritten
    monkeypatch.setattr(
        Graph, "rewritten", lambda self, rewrite, dead=(): calls.append(rewrite) or whole(self, rewrite, dead)
    )
    graph, rewrites = transitions.applied(FINDER, state, place, sites)
    assert len(rewrites) == 20 and len(graph.nodes) == 80 and len(calls) == 1


def test_a_copied_cache_of_steps_starts_empty():
    """Steps are found by the identity of states, and a copied task has other states."""
    state = state_of(graph_of([node("Relu", ["x"], ["y"])], {"x": (2, 3)}, {}, ["y"]))
    cache, action = StepCache(), Action(0)
    assert cache.step(state, action, lambda: state) is state
    after = replace(state)
    assert copy.deepcopy(cache).step(state, action, lambda: after) is after
