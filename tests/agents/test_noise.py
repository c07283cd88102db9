"""Demonstrations with random actions between."""

import numpy as np
import pytest
import rewriting

from irgym.agents.imitation.cloning import ImitationConfig, clone
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.imitation.noise import noisy
from irgym.core.schedule import Schedule, replay, states_along
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search

BUDGET = Budget(evaluations=200)


@pytest.fixture(scope="module")
def shown() -> list[Demonstration]:
    search = SEARCHES.load("greedy2")()
    found = [
        run_search(search, task, rewriting.Known(), SearchRequest(BUDGET, seed=0)) for task in rewriting.TRAIN
    ]
    return [
        Demonstration(task, demonstration.schedule, demonstration.cost)
        for task, demonstration in zip(rewriting.TRAIN, found, strict=True)
        if demonstration.schedule.actions
    ]


def test_noise_leads_to_the_same_program(shown: list[Demonstration]):
    rng = np.random.default_rng(0)
    made = [(demonstration, noisy(demonstration, rng)) for demonstration in shown]
    assert sum(copy is not None for _, copy in made) > len(made) / 10
    for demonstration, copy in made:
        if copy is None:
            continue
        task, actions = demonstration.task, copy.schedule.actions
        assert task.key(replay(task, copy.schedule)) == task.key(replay(task, demonstration.schedule))
        assert copy.noise and len(actions) <= task.horizon
        rest = iter(demonstration.schedule.actions)
        assert all(action in rest for place, action in enumerate(actions) if place not in copy.noise)


def test_noise_is_not_learnt(shown: list[Demonstration]):
    rng = np.random.default_rng(1)
    pairs = [
        (demonstration, copy)
        for demonstration in shown
        for copy in [noisy(demonstration, rng)]
        if copy and 0 in copy.noise
    ]
    demonstration, copy = next((a, b) for a, b in pairs if a.schedule.actions[0] != b.schedule.actions[0])
    policy = clone(ImitationConfig(epochs=200, lr=5e-3, hidden=(32,)), [demonstration, *[copy] * 5])
    task = demonstration.task
    [first, *_] = states_along(task, Schedule())
    given = [task.observe(first, policy.observation)], [task.mask(first)]
    learnt, drawn = (
        policy.log_probability(*given, [each.schedule.actions[0]])[0] for each in (demonstration, copy)
    )
    assert np.exp(learnt) > 0.9 > 0.1 > np.exp(drawn)


def test_an_empty_schedule_gets_no_noise():
    task = rewriting.TRAIN[0]
    assert noisy(Demonstration(task, Schedule(), 1.0), np.random.default_rng(0)) is None
