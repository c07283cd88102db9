"""Sites of all rules, updated from one state to the next."""

from dataclasses import replace

import numpy as np
import pytest
from fuzz.graph.making.open_graphs import OpenMaker
from small_graphs import BLOCK, graph_of

from irgym.core.actions import Action
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.rewriting.sites import Finder, Sites
from irgym.envs.graph.rewriting.transitions import rewritten
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import GraphState


def named(sites: Sites) -> set[tuple[int, str]]:
    return {key for many in sites.values() for key, _ in many}


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
        site
        for many in sites.values()
        for (place, _), (site,) in many
        if place == places["layer-normalization"]
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


@pytest.mark.parametrize("uri", [*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test])
def test_the_finder_finds_what_each_rule_finds_by_itself(uri: str):
    """It leaves out rules by the operators around a node; that must not cost a site."""
    graph = GRAPH.task(uri).graph
    alone = {
        (place, site.name)
        for place, rule in enumerate(RULES)
        for anchor in graph.nodes.values()
        for site in rule.sites(graph, anchor, BLOCK)
    }
    assert named(Finder(RULES, BLOCK).all(graph)) == alone
    assert len(alone) > 5


def test_sites_of_random_graphs_with_open_sizes_are_kept_up_to_date():
    finder, steps = Finder(RULES, BLOCK), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        graph = OpenMaker(rng, "float32").grown(40)
        state = GraphState(graph, graph.digest, finder.all(graph))
        for _ in range(8):
            if not (keys := [*state.candidates]):
                break
            place, name = keys[rng.integers(len(keys))]
            state = rewritten(finder, state, place, state.candidates[place, name])
            assert named(state.sites) == named(finder.all(state.graph)), RULES[place].name
            steps += 1
    assert steps > 50


@pytest.mark.parametrize("rule", ["cancel-concat", "slice-of-concat"])
def test_a_rewrite_that_makes_one_root_independent_of_another_adds_their_sites(rule: str):
    cut = node("Split", ["c", "sizes"], ["p", "q"], axis=0)
    if rule == "slice-of-concat":
        cut = node("Slice", ["c", "three", "six", "zero"], ["q"])
    nodes = [
        node("MatMul", ["a", "w"], ["y"]),
        node("Concat", ["y", "k"], ["c"], axis=0),
        cut,
        node("Relu", ["q"], ["r"]),
        node("MatMul", ["r", "w"], ["z"]),
    ]
    numbers = {"zero": [0], "three": [3], "six": [6], "sizes": [3, 3]}
    weights = {"w": np.ones((4, 4)), **{name: np.array(value) for name, value in numbers.items()}}
    outputs = ["y", "z", "p"] if rule == "cancel-concat" else ["y", "z"]
    graph = graph_of(nodes, {"a": (3, 4), "k": (3, 4)}, weights, outputs)
    finder, places = Finder(RULES, BLOCK), {known.name: place for place, known in enumerate(RULES)}
    state = GraphState(graph, graph.digest, finder.all(graph))
    merging = places["merge-matmul-rows"]
    assert merging not in {place for place, _ in state.candidates}
    [key] = [key for key in state.candidates if key[0] == places[rule]]
    after = rewritten(finder, state, key[0], state.candidates[key])
    assert merging in {place for place, _ in after.candidates}
    assert named(after.sites) == named(finder.all(after.graph))


def test_sites_stay_in_the_order_of_a_new_search():
    task, rng = GRAPH.task(GRAPH.dataset("tiny").train[1]), np.random.default_rng(0)
    state = task.initial()
    for _ in range(20):
        everything = task.finder.all(state.graph)
        assert [*state.sites] == [*everything] == [*state.graph.nodes]
        assert list(state.candidates) == list(replace(state, sites=everything).candidates)
        kind, name = task.mask(state).candidates[rng.integers(len(task.mask(state).candidates))]
        state = task.step(state, Action(kind, candidate=name))
