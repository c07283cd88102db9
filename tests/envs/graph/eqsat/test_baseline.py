"""The baseline `tensat` on an exported model, and the environment with TASO's rules only."""

from dataclasses import replace
from typing import Any

import pytest

from irgym.base.errors import IrgymError
from irgym.comparing.method_names import parse_method
from irgym.core import capabilities
from irgym.core.baseline import TIMEOUT_S
from irgym.core.catalogue import environment_of
from irgym.core.cost import Call, Measurement, Outcome
from irgym.envs.graph.costs import measuring
from irgym.envs.graph.costs.signature import Signature
from irgym.envs.graph.environment import GRAPH, GRAPH_TASO
from irgym.envs.graph.eqsat import costs, running
from irgym.envs.graph.eqsat.choosing import TreeSearch
from irgym.envs.graph.eqsat.saturation import Limits
from irgym.envs.graph.eqsat.settings import SaturationOptions
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.strategies.backtracking import Backtracking

URI = GRAPH.dataset("tiny").train[0]


def limited(call: Call, iterations: int, **changes: Any) -> tuple[Any, ...]:
    """Return the arguments of a call of the baseline, with fewer iterations and other changed settings."""
    *before, settings = call.arguments
    options = replace(settings.options, limits=Limits(iterations=iterations))
    return (*before, replace(settings, options=options, **changes))


def test_costs_are_compared_under_any_objective():
    task = GRAPH.task(URI).under("nodes")
    call = capabilities.baseline_call(task, "tensat", task.initial())
    versus = running.against(*limited(call, iterations=2))
    assert versus.ours_ns == len(task.graph.nodes) and versus.baseline_ns < versus.ours_ns
    assert versus.ratios == (versus.baseline_ns / versus.ours_ns,)
    assert "stopped at the limit of 2 iterations" in versus.detail
    [tensat] = [baseline for baseline in GRAPH.baselines if baseline.name == "tensat"]
    assert tensat.any_objective and "graph-peers" in tensat.remedy


def test_a_tree_search_for_the_order_of_the_rules_is_a_baseline_too():
    alias = f"graph-taso:{URI.removeprefix('graph:')}"
    task = GRAPH_TASO.task(alias).under("nodes")
    call = capabilities.baseline_call(task, "mcts-geb", task.initial())
    *before, settings = call.arguments
    assert settings.search == TreeSearch()
    options = replace(settings.options, limits=Limits(nodes=100), search=TreeSearch(budget=1, depth=1))
    quick = replace(settings, options=options)
    versus = running.against(*before, quick)
    assert versus.baseline_ns < versus.ours_ns == len(task.graph.nodes)
    assert "a tree search with" in versus.detail and "limit of 100 operators" in versus.detail
    [mcts] = [baseline for baseline in GRAPH_TASO.baselines if baseline.name == "mcts-geb"]
    assert mcts.any_objective and "graph-peers" in mcts.remedy


def test_limits_and_extraction_are_options():
    task = GRAPH.task(URI).under("nodes")
    name = "tensat:nodes=70,iterations=3,multi=0,seconds=700,extraction=greedy,extraction_s=90"
    settings = capabilities.baseline_call(task, name, task.initial()).arguments[-1]
    assert settings.options == SaturationOptions(Limits(70, 3, 0, 700.0), "greedy", 90.0)
    assert settings.options.timeout_s == TIMEOUT_S + 580 + 30 and SaturationOptions().timeout_s == TIMEOUT_S
    versus = running.against(
        *capabilities.baseline_call(task, "tensat:nodes=70,extraction=greedy", task.initial()).arguments
    )
    assert "limit of 70 operators" in versus.detail and "by its cheapest tree;" in versus.detail
    name = "mcts-geb:budget=3,depth=2,exploration=0.5,seed=4,nodes=90"
    settings = capabilities.baseline_call(task, name, task.initial()).arguments[-1]
    assert settings.search == TreeSearch(3, 2, 0.5, 4) and settings.options.limits == Limits(nodes=90)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tensat:budget=3", "tensat has no option 'budget': choose among nodes, iterations, multi, seconds"),
        ("tensat:nodes=0", "nodes of tensat is '0'"),
        ("tensat:extraction=beam", "extraction of tensat is 'beam': choose"),
        ("mcts-geb:budget=many", "budget of mcts-geb is 'many'"),
    ],
)
def test_bad_options_are_refused_with_the_good_ones(name: str, words: str):
    with pytest.raises(IrgymError, match=words):
        parse_method(name, GRAPH, load_policy=lambda name: pytest.fail(name))


def test_costs_under_model_are_those_of_measured_operators(monkeypatch: pytest.MonkeyPatch):
    kinds: set[str] = set()

    def timed(signature: Signature, threads: int) -> Measurement:
        assert threads == 1
        kinds.add(signature.text)
        return Measurement(Outcome.OK, (1.0 if signature.operator.endswith("Conv") else 100.0,))

    monkeypatch.setattr(costs, "measure", timed)
    task = GRAPH.task(URI).under("model")
    call = capabilities.baseline_call(task, "tensat", task.initial())
    versus = running.against(*limited(call, iterations=2))
    operators = [node.operator for node in task.graph.nodes.values()]
    assert versus.ours_ns == sum(1.0 if operator == "Conv" else 100.0 for operator in operators)
    assert len(versus.ratios) == 1 and versus.baseline_ns < versus.ours_ns
    assert f", {len(kinds)} distinct operators measured in 0 s; " in versus.detail


def test_results_are_timed_in_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measuring, "ROUNDS", 1)
    monkeypatch.setattr(measuring, "LONGER_NS", 0)
    task = GRAPH.task(URI)
    call = capabilities.baseline_call(task, "tensat", task.initial())
    versus = running.against(*limited(call, iterations=1, rounds=2))
    assert len(versus.ratios) == 2 and versus.baseline_ns > 0
    assert "level off" in versus.detail or "level all" in versus.detail
    assert "distinct operators measured in" in versus.detail


def test_tasos_rules_alone():
    alias = f"graph-taso:{URI.removeprefix('graph:')}"
    assert environment_of(alias) is GRAPH_TASO and environment_of(URI) is GRAPH
    whole, some = GRAPH.task(URI), GRAPH_TASO.task(alias)
    assert some.uri == whole.uri and some.space is whole.space
    allowed = set(some.mask(some.initial()).candidates)
    assert allowed < set(whole.mask(whole.initial()).candidates)
    names = {rule.name for rule in some.rules}
    assert {some.space.kinds[kind].name for kind, _ in allowed} <= names
    assert "merge-conv" in names and "block-conv" not in names
    more = {rule.name for rule in whole.restricted("TASO", "NchwcTransformer").rules}
    assert names < more < {rule.name for rule in whole.rules} and "block-conv" in more
    settings = capabilities.baseline_call(some, "tensat", some.initial()).arguments[-1]
    assert set(settings.rules) == names


def test_tasos_search_with_tasos_rules():
    class Known:
        def evaluate(self, jobs):
            return [job.known for job in jobs]

    task = GRAPH_TASO.task(URI).under("nodes")
    found = run_search(Backtracking(), task, Known(), SearchRequest(Budget(evaluations=12), seed=0))
    assert found.cost < found.first_cost
    text = found.schedule.text(task.space)
    assert text and "@*" not in text, "a rule everywhere is no rewrite of TASO's"
    assert {action.partition("@")[0] for action in text.split()} <= {rule.name for rule in task.rules}
