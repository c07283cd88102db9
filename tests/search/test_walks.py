"""Walks that a session takes forward together."""

from collections.abc import Sequence

import numpy as np
import pytest
from passes import SPACE, URIS, PassBench, PassTask

from irgym.core.actions import Action
from irgym.core.schedule import Candidate, Schedule, replay
from irgym.search.budget import Budget
from irgym.search.mutation import mutate, random_walk
from irgym.search.request import SearchRequest
from irgym.search.session import Exhausted, Session
from irgym.search.walks import alone, follow, together

FOLDS = [f"fold{place}" for place in (0, 1, 0, 2, 1, 3)]


class CountedTask(PassTask):
    """A task that notes how many states each call steps."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.sizes: list[int] = []

    def step_batch(self, states: Sequence[object], actions: Sequence[Action]) -> list[object]:
        self.sizes.append(len(states))
        return [self.step(state, action) for state, action in zip(states, actions, strict=True)]


def session(task: PassTask, seconds: float | None = None) -> Session:
    return Session(task, PassBench(), SearchRequest(Budget(1000, seconds)))


def words(node: Candidate) -> str:
    return node.schedule.text(SPACE)


def test_walks_together_lead_where_each_leads_alone() -> None:
    texts = [" ".join(FOLDS[:count]) for count in range(7)]
    schedules = [Schedule.parse(text, SPACE).actions for text in texts]
    at = session(PassTask(URIS[2]))
    found = together(at, [follow(at, at.root, actions) for actions in schedules])
    other = session(PassTask(URIS[2]))
    assert found == [alone(other, follow(other, other.root, actions)) for actions in schedules]


def test_each_step_of_all_walks_is_one_call() -> None:
    task = CountedTask(URIS[2])
    at = session(task)
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    paths = together(at, [random_walk(at, at.root, 5, rng) for rng in rngs])
    assert {len(path) for path in paths} == {6}
    assert max(task.sizes) > 4 and len(task.sizes) < sum(task.sizes) / 2


def test_transitions_are_made_once() -> None:
    task = CountedTask(URIS[2])
    at = session(task)
    actions = Schedule.parse("fold0 fold1", SPACE).actions
    together(at, [follow(at, at.root, actions) for _ in range(5)])
    assert task.steps == 2
    alone(at, follow(at, at.root, actions))
    assert task.steps == 2


def test_equal_seeds_give_equal_changes() -> None:
    def changed() -> list[str]:
        at, rng = session(PassTask(URIS[2])), np.random.default_rng(3)
        root = alone(at, random_walk(at, at.root, 10, rng))[-1]
        return [words(node) for node in together(at, [mutate(at, root, rng) for _ in range(20)])]

    assert changed() == changed()


def test_when_the_time_is_up_what_the_walks_have_reached_is_evaluated() -> None:
    at = session(PassTask(URIS[2]), 1e-9)
    two = [Schedule.parse(text, SPACE).actions for text in ("fold0 fold1", "fold1 fold0")]
    at.costs([at.root])
    with pytest.raises(Exhausted):
        together(at, [follow(at, at.root, actions) for actions in two])
    assert at.evaluations == 3 and at.best_cost < at.first_cost


@pytest.mark.parametrize("remembered", [1, 10_000])
def test_halves_that_run_beside_lead_where_each_walk_leads_alone(monkeypatch, remembered: int) -> None:
    monkeypatch.setattr("irgym.search.session.TRANSITIONS", remembered)
    monkeypatch.setattr(CountedTask, "runs_beside", True)
    at, rng = session(CountedTask(URIS[2])), np.random.default_rng(5)
    root = alone(at, random_walk(at, at.root, 10, rng))[-1]
    for _ in range(5):
        changed = together(at, [mutate(at, root, rng) for _ in range(20)])
        assert [replay(at.task, node.schedule) for node in changed] == [node.state for node in changed]


def test_no_walks_have_no_results() -> None:
    at = session(PassTask(URIS[2]))
    assert together(at, []) == []
