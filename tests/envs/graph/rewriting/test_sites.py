"""Sites of all rules, updated from one state to the next."""

import numpy as np
from small_graphs import BLOCK, graph_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.rewriting.sites import Finder, Sites
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import GraphState


def named(sites: Sites) -> set[tuple[int, str]]:
    return {(place, site.name) for many in sites.values() for place, site in many}


def normalised_then_masked() -> Graph:
    """Return a layer normalisation in parts, whose quotient may be infinite, far above a softmax."""
    nodes = [
        node("ReduceMean", ["x", "axes"], ["m"], keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Pow", ["d", "two"], ["p"]),
        node("ReduceMean", ["p", "axes"], ["v"], keepdims=1),
        node("Add", ["v", "e"], ["o"]),
        node("Sqrt", ["o"], ["r"]),
        node("Div", ["d", "r"], ["q"]),
        node("Mul", ["q", "g"], ["k"]),
        node("Add", ["k", "b"], ["h0"]),
        *(node("Relu", [f"h{place}"], [f"h{place + 1}"]) for place in range(30)),
        node("Softmax", ["h30"], ["s"]),
        node("IsNaN", ["s"], ["n"]),
        node("Where", ["n", "zero", "s"], ["y"]),
    ]
    weights = {"two": np.array(2.0), "e": np.array(1e-5), "g": np.ones(4), "b": np.ones(4)}
    return graph_of(nodes, {"x": (3, 4)}, {**weights, "axes": np.array([-1]), "zero": np.array(0.0)}, ["y"])


def test_a_rewrite_that_reveals_more_about_values_adds_sites_far_away():
    places = {rule.name: place for place, rule in enumerate(RULES)}
    finder, graph = Finder(RULES, BLOCK), normalised_then_masked()
    sites = finder.all(graph)
    assert places["softmax-no-nan"] not in {place for place, _ in named(sites)}
    [site] = [
        site for many in sites.values() for place, site in many if place == places["layer-normalization"]
    ]
    rewrite = RULES[places["layer-normalization"]].rewrite(graph, site, BLOCK)
    after = graph.rewritten(rewrite)
    found = named(finder.after(sites, graph, [rewrite], after))
    assert found == named(finder.all(after))
    assert places["softmax-no-nan"] in {place for place, _ in found}


def test_names_that_changed_places_make_another_state():
    """If a search confused them, it would find schedules that do not replay."""

    def state(relu: str, tanh: str) -> GraphState:
        nodes = [node("Relu", ["x"], [relu]), node("Tanh", ["x"], [tanh]), node("Add", [relu, tanh], ["y"])]
        graph = graph_of(nodes, {"x": (3, 4)}, {}, ["y"])
        return GraphState(graph, graph.digest, Finder(RULES, BLOCK).all(graph))

    first, other = state("a", "b"), state("b", "a")
    assert first == state("a", "b")
    assert first.digest == other.digest
    assert first != other
