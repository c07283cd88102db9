"""The tree that a search walked, as it is recorded."""

import json
import math

import pytest

from irgym.core.schedule import Schedule, replay
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.tree import SearchTree


def walked(name, task, evaluator, policy=None, evaluations=40):
    tree = SearchTree()
    request = SearchRequest(Budget(evaluations), 3, policy, evaluated=tree.add)
    return tree, run_search(SEARCHES.load(name)(), task, evaluator, request)


@pytest.mark.parametrize("name", SEARCHES.builtin)
def test_a_tree_has_each_schedule_with_its_cost(name, task, evaluator, policy):
    tree, result = walked(name, task, evaluator, policy)
    rows = json.loads(json.dumps(tree.to_json(task.space), allow_nan=False))
    assert [row["id"] for row in rows] == list(range(len(rows)))
    assert sorted(row["tried"] for row in rows if row["tried"]) == list(range(1, tree.tried + 1))
    schedules = {None: ""}
    programs = set()
    for row in rows:
        text = f"{schedules[row['parent']]} {row['action']}".strip()
        schedules[row["id"]] = text
        assert row["parent"] is None or row["parent"] < row["id"]
        if row["tried"] is not None:
            state = replay(task, Schedule.parse(text, task.space))
            [measurement] = evaluator.evaluate([task.job(state)])
            assert row["failed"] == math.isinf(measurement.cost)
            assert row["cost"] == (None if row["failed"] else measurement.cost)
            programs.add(task.key(state))
    assert len(programs) == result.evaluations
    best = [row for row in rows if row["best"]]
    assert best[-1]["cost"] == result.cost == tree.least
    assert schedules[best[-1]["id"]] == Schedule(tree.best).text(task.space)


def test_observing_changes_nothing(task, evaluator):
    _, observed = walked("mcts", task, evaluator)
    alone = run_search(SEARCHES.load("mcts")(), task, evaluator, SearchRequest(Budget(40), 3))
    assert observed.schedule == alone.schedule and observed.evaluations == alone.evaluations
