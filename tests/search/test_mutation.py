import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irgym.base.errors import ScheduleError
from irgym.core.schedule import Candidate, Schedule, candidate_of, replay
from irgym.search.budget import Budget
from irgym.search.minimise import minimise
from irgym.search.mutation import mutate, random_action, random_episode, splice
from irgym.search.request import SearchRequest
from irgym.search.session import Session
from irgym.search.walks import alone, together

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def session(task, evaluator):
    return Session(task, evaluator, SearchRequest(Budget(100)))


@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_new_schedules_replay_within_the_horizon(session, seed):
    rng = np.random.default_rng(seed)
    left, right = (alone(session, random_episode(session, rng))[-1] for _ in range(2))
    changed = together(session, [mutate(session, left, rng), splice(session, left, right, rng)])
    for node in (left, *changed):
        assert replay(session.task, node.schedule) == node.state
        assert len(node.schedule) <= session.task.horizon


@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_minimised_schedules_reach_the_same_program_and_cannot_lose_an_action(session, seed):
    task = session.task
    node = alone(session, random_episode(session, np.random.default_rng(seed)))[-1]
    shortest = minimise(task, node)
    short = shortest.schedule
    text = task.key(node.state)
    assert task.key(replay(task, short)) == text
    assert len(short) <= len(node.schedule)
    assert minimise(task, shortest) == shortest and task.key(shortest.state) == text


def test_minimise_drops_what_has_no_effect(task):
    wordy = Schedule.parse("right left set_4 right right left set_2 right", task.space)
    assert minimise(task, candidate_of(task, wordy)).schedule.text(task.space) == "set_4 right set_2"


def test_a_schedule_that_no_longer_applies_is_named(task):
    found = Candidate(task.initial(), Schedule.parse("set_4 stop right", task.space))
    with pytest.raises(ScheduleError, match=r"does not apply when it is run again.* set_4 stop right"):
        minimise(task, found)


def test_every_kind_is_equally_likely(task):
    rng = np.random.default_rng(0)
    actions = [action for action in task.space.flat if task.space.kinds[action.kind].name != "left"]
    kinds = [random_action(actions, rng).kind for _ in range(900)]
    counts = np.bincount(kinds, minlength=4)
    assert counts[0] == 0 and all(abs(count - 300) < 70 for count in counts[1:])


def test_mutation_reaches_different_programs(session):
    rng = np.random.default_rng(1)
    node = alone(session, random_episode(session, rng))[-1]
    changed = together(session, [mutate(session, node, rng) for _ in range(200)])
    texts = {session.task.key(child.state) for child in changed}
    assert len(texts) > 20
