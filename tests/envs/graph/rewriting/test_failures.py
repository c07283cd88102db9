"""Rules that fail at their sites: the site is removed, the failure is counted and logged."""

import logging
from dataclasses import replace

import pytest
from small_graphs import BLOCK, graph_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.rewriting.building import RuleError
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.transitions import applied, rewritten
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import EVERYWHERE, GraphState

SOUND = {rule.name: rule for rule in RULES}


def planted(**changes: str) -> Rule:
    """Return a wrong rule for Relu."""
    rule = replace(SOUND["merge-relus"], name="planted", shared=(), before="y = Relu(x)", where="True")
    return replace(rule, **changes)


FAILING = {
    "type": planted(after="y = Transpose(x, perm=(1, 0))"),
    "index": planted(after="y = Reshape(x, whole(x.shape[7]))"),
    "value": planted(after="y = MatMul(x, x)"),
}


def relus() -> Graph:
    nodes = [node("Relu", ["x"], ["y"]), node("Tanh", ["y"], ["t"]), node("Relu", ["t"], ["z"])]
    return graph_of(nodes, {"x": (2, 3)}, {}, ["z"])


def state_of(finder: Finder) -> GraphState:
    graph = relus()
    return GraphState(graph, graph.digest, finder.all(graph))


@pytest.mark.parametrize("kind", FAILING)
def test_a_rule_that_fails_leaves_the_graph_and_the_candidate_goes(
    kind: str, caplog: pytest.LogCaptureFixture
):
    finder = Finder([FAILING[kind], SOUND["merge-relus"]], BLOCK)
    state = state_of(finder)
    assert set(state.candidates) == {(0, "y"), (0, "z"), (0, EVERYWHERE)}
    with caplog.at_level(logging.WARNING):
        after = rewritten(finder, state, 0, state.candidates[0, "y"])
    assert after.graph is state.graph and set(after.candidates) == {(0, "z")}
    assert finder.failures.counts == {"planted": 1}
    assert "the rule planted fails at y" in caplog.text
    last = rewritten(finder, after, 0, after.candidates[0, "z"])
    assert not last.candidates and finder.failures.total == 2


def test_a_rule_that_fails_at_one_of_all_places_is_applied_at_the_others():
    rule = planted(after="y = Abs(x) if x.name == 'x' else Transpose(x, perm=(1, 0))")
    finder = Finder([rule], BLOCK)
    state = state_of(finder)
    graph, rewrites = applied(finder, state, 0, state.candidates[0, EVERYWHERE])
    assert len(rewrites) == 1 and sorted(operator.operator for operator in graph.nodes.values()) == [
        "Abs",
        "Relu",
        "Tanh",
    ]
    assert finder.failures.counts == {"planted": 1}


def test_a_condition_that_fails_costs_that_place():
    rule = planted(where="x.name == 'x' or x.shape[7] > 0", after="y = Abs(x)")
    finder = Finder([rule], BLOCK)
    assert set(state_of(finder).candidates) == {(0, "y")}
    assert finder.failures.counts == {"planted": 1}
    graph = relus()
    with pytest.raises(RuleError, match="the condition of planted fails: IndexError"):
        list(rule.sites(graph, graph.nodes["z"], BLOCK))


def test_equality_saturation_leaves_such_places_out():
    pytest.importorskip("egglog")
    from irgym.envs.graph.eqsat.saturation import Limits, saturate

    saturated = saturate(relus(), [FAILING["type"], SOUND["merge-relus"]], BLOCK, Limits(seconds=20))
    assert saturated.tensors.failures.counts["planted"] > 0
