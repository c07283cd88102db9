"""Where a state has too many actions to list, searches consider a random choice of them."""

import numpy as np
import pytest

from irgym.search import SEARCHES, branches
from irgym.search.budget import Budget
from irgym.search.mutation import random_walk
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.session import Session
from irgym.search.walks import alone


@pytest.fixture(autouse=True)
def few_branches(monkeypatch):
    monkeypatch.setattr(branches, "BRANCHES", 3)


def test_a_node_keeps_its_choice(task, evaluator):
    at = Session(task, evaluator, SearchRequest(Budget(10)))
    assert not at.countable(at.root)
    actions = at.actions(at.root)
    assert len(actions) == 3 == len(set(actions)) and at.actions(at.root) == actions
    assert all(task.space.allows(task.mask(at.root.state), action) for action in actions)
    assert all(task.space.kinds[action.kind].ends is None for action in actions)


def test_walks_draw_from_all_actions(task, evaluator):
    at, rng = Session(task, evaluator, SearchRequest(Budget(10))), np.random.default_rng(0)
    first = {alone(at, random_walk(at, at.root, 1, rng))[-1].schedule.actions[0] for _ in range(200)}
    assert len(first) > 3
    assert len(alone(at, random_walk(at, at.root, 5, rng))) == 6


@pytest.mark.parametrize("name", SEARCHES.builtin)
def test_every_search_keeps_its_budget_and_is_deterministic(name, task, evaluator, policy):
    first, second = (
        run_search(SEARCHES.load(name)(), task, evaluator, SearchRequest(Budget(60), 3, policy))
        for _ in range(2)
    )
    assert first.evaluations <= 60 and first.schedule == second.schedule and first.cost <= first.first_cost
