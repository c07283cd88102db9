"""Monte Carlo tree search: how its tree widens, and what a policy that leads it changes."""

from collections.abc import Sequence
from typing import Any

import passes
import pytest

from irgym.core.actions import Action
from irgym.core.cost import Evaluator
from irgym.policies.policy import Policy
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.result import SearchResult
from irgym.search.run import run_search
from irgym.search.strategies.mcts import MonteCarloTreeSearch
from irgym.search.tree import SearchTree


class Knowing:
    """Sets the right values from left to right."""

    observation = ""

    def __init__(self, task: Any) -> None:
        self.space = task.space

    def act(
        self, observations: Sequence[Any], masks: Sequence[Any], rng: Any, temperature: float = 1.0
    ) -> list[Action]:
        assert rng is not None
        return [self.space.parse(self._word(seen.cursor, seen.values)) for seen in observations]

    def _word(self, cursor: int, values: tuple[int, ...]) -> str:
        wanted = (4, 2, 2, 8)[cursor]
        if values[cursor] != wanted:
            return f"set_{wanted}"
        return "right" if cursor < len(values) - 1 else "left"


def search(
    strategy: MonteCarloTreeSearch,
    task: Any,
    evaluator: Evaluator,
    evaluations: int,
    seed: int = 0,
    policy: Policy | None = None,
) -> tuple[SearchResult, SearchTree]:
    tree = SearchTree()
    request = SearchRequest(Budget(evaluations), seed, policy, evaluated=tree.add)
    return run_search(strategy, task, evaluator, request), tree


@pytest.mark.parametrize(("widening", "children"), [(0.0, 1), (1.0, 4)])
def test_a_state_has_as_many_children_as_its_visits_to_a_power(
    widening: float, children: int, task: Any, evaluator: Evaluator
):
    """Of the root, to the left of which there is no cell, whose value is none of three others."""
    strategy = MonteCarloTreeSearch(rollout=0, widening=widening)
    _, tree = search(strategy, task, evaluator, 12)
    assert len(tree.root.branches) == children


@pytest.mark.parametrize("seed", range(3))
def test_a_policy_draws_the_children_and_the_episodes(
    seed: int, task: Any, evaluator: Evaluator, optimum: float
):
    strategy = MonteCarloTreeSearch(rollout=12, batch=1)
    led, _ = search(strategy, task, evaluator, 12, seed, Knowing(task))
    alone, _ = search(strategy, task, evaluator, 12, seed)
    assert led.cost == optimum < alone.cost


def test_schedules_hold_no_actions_without_effect(policy: Any):
    """Uniform choices, most of them of passes that do nothing."""
    task, seen = passes.PassTask(passes.URIS[0]), list[str]()
    policy.space = task.space
    request = SearchRequest(
        Budget(60),
        0,
        policy,
        evaluated=lambda nodes, costs: seen.extend(node.schedule.text(task.space) for node in nodes),
    )
    run_search(MonteCarloTreeSearch(), task, passes.PassBench(), request)
    assert len(set(seen)) >= 60 and max(text.count("fold") for text in seen) > 1
    assert not any("idle" in text for text in seen)


def test_without_a_policy_it_finds_the_optimum_behind_worse_states(
    task: Any, evaluator: Evaluator, optimum: float
):
    results = [search(MonteCarloTreeSearch(), task, evaluator, 150, seed)[0] for seed in range(6)]
    assert sum(result.cost == optimum for result in results) >= 3
    again, _ = search(MonteCarloTreeSearch(), task, evaluator, 150, seed=5)
    assert again.schedule == results[5].schedule


@pytest.mark.parametrize("widening", [0.5, 1.0])
def test_it_ends_by_itself_when_everything_was_seen(
    widening: float, task: Any, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("irgym.search.session.STALL", 200)
    result, _ = search(MonteCarloTreeSearch(widening=widening), task, evaluator, 10_000)
    assert 64 < result.evaluations <= 256
