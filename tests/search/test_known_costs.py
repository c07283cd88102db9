"""Searches where costs are known to the states, many actions do nothing, and transitions are what is slow."""

import time
from itertools import pairwise

import numpy as np
import pytest
from passes import SPACE, URIS, PassBench, PassTask

from irgym.core.schedule import Schedule, candidate_of, replay
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.minimise import minimise
from irgym.search.mutation import random_walk
from irgym.search.request import SearchRequest
from irgym.search.rollouts import outcome, rollout
from irgym.search.run import run_search
from irgym.search.session import Session
from irgym.search.walks import alone, follow

SEARCH_NAMES = [name for name in SEARCHES.builtin if name not in ("guided", "rollout", "screened")]
DEEP = URIS[2]


def search(name, task, budget, seed=0):
    return run_search(SEARCHES.load(name)(), task, PassBench(), SearchRequest(budget, seed))


@pytest.mark.parametrize("name", [name for name in SEARCH_NAMES if name != "exhaustive"])
def test_finds_what_takes_eight_passes_in_order(name):
    result = search(name, PassTask(DEEP), Budget(400))
    assert result.first_cost == 261.0 and result.cost < 115.0
    assert [finalist.schedule for finalist in result.finalists] == [result.schedule]
    assert "idle" not in result.schedule.text(SPACE)


@pytest.mark.parametrize("name", [name for name in SEARCH_NAMES if name not in ("greedy", "greedy2", "taso")])
def test_goes_on_although_most_actions_do_nothing(name):
    assert search(name, PassTask(DEEP), Budget(400), seed=1).evaluations == 400


@pytest.mark.timed
@pytest.mark.parametrize("name", SEARCH_NAMES)
def test_slow_transitions_do_not_break_the_time_limit(name):
    task = PassTask(DEEP, pause_s=0.0001)
    started = time.perf_counter()
    result = search(name, task, Budget(seconds=0.3))
    assert result.evaluations > 1 and time.perf_counter() - started < 1.0


def test_random_walks_have_effect_at_every_step():
    session = Session(PassTask(DEEP), PassBench(), SearchRequest(Budget(10)))
    path = alone(session, random_walk(session, session.root, 20, np.random.default_rng(0)))
    assert len(path) == 21
    assert all(before.state.ops != after.state.ops for before, after in pairwise(path))


def test_following_leaves_out_what_does_nothing():
    session = Session(PassTask(URIS[0]), PassBench(), SearchRequest(Budget(10)))
    wordy = Schedule.parse("idle3 fold0 fold0 idle3 fold7 fold1", SPACE)
    assert (
        alone(session, follow(session, session.root, wordy.actions))[-1].schedule.text(SPACE) == "fold0 fold1"
    )


def test_minimising_drops_what_does_nothing_with_few_transitions():
    task = PassTask(URIS[0])
    wordy = Schedule.parse(" ".join(f"idle{k}" for k in range(30)) + " fold0 fold1 stop", SPACE)
    short = minimise(task, candidate_of(task, wordy)).schedule
    assert short.text(SPACE) == "fold0 fold1" and task.steps < 90
    assert replay(task, short).ops == replay(task, wordy).ops


class Fixed:
    """A policy that goes through actions in an order; what the mask rules out is passed over."""

    observation = ""

    def __init__(self, *names):
        self.actions = [SPACE.parse(name) for name in names]

    def act(self, observations, masks, rng, temperature=1.0):
        [mask] = masks
        while not SPACE.allows(mask, self.actions[0]):
            del self.actions[0]
        return [self.actions.pop(0)]


def test_an_episode_comes_to_its_best_state_and_does_not_stop_before_its_end():
    task = PassTask(DEEP)
    task.horizon = 4
    policy = Fixed("stop", "fold0", "stop", "fold1", "expand4", "expand7", "fold2")
    [path] = rollout(task, policy, 1, None)
    costs = [task.job(node.state).known.cost for node in path]
    assert len(path) == 5 and not path[-1].state.stopped
    best = outcome(task, path)
    assert task.job(best.state).known.cost == min(costs) < costs[-1]
