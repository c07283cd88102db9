from itertools import pairwise
from typing import ClassVar

import dials
import numpy as np
import ordering
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.limits import Limited, Limits
from irgym.core.lockstep import play


class Short(dials.Dials):
    horizon = 2


class Still(dials.Dials):
    horizon = 0


class Wide(ordering.Passes):
    """Of another class than the others."""


TASKS = [Short((0, 1, 2)), dials.Dials((3, 3, 3)), Wide(1, 4), Still((1, 1, 1)), dials.Dials((4, 0, 1))]


def alone(task, number, seed):
    """The episode played by itself, each action drawn for its episode and step."""
    states, actions = [task.initial()], []
    while len(actions) < task.horizon and not task.terminal(states[-1]):
        actions.append(drawn(task, states[-1], number, len(actions), seed))
        states.append(task.step(states[-1], actions[-1]))
    return states, actions


def drawn(task, state, number, step, seed):
    return task.space.sample(task.mask(state), np.random.default_rng((seed, number, step)))


@given(st.lists(st.sampled_from(TASKS), max_size=8), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_each_episode_goes_as_if_it_were_alone(tasks, seed):
    turns = []

    def choose(turn):
        turns.append(turn)
        step = len(turns) - 1
        for place, task, seen, mask in zip(
            turn.episodes, turn.tasks, turn.observations(""), turn.masks, strict=True
        ):
            state = turn.states[turn.episodes.index(place)]
            assert task is tasks[place]
            assert np.array_equal(seen, task.observe(state))
            assert np.array_equal(mask.kinds, task.mask(state).kinds)
        return [
            drawn(task, state, place, step, seed)
            for place, task, state in zip(turn.episodes, turn.tasks, turn.states, strict=True)
        ]

    episodes = play(tasks, choose)
    expected = [alone(task, number, seed) for number, task in enumerate(tasks)]
    assert [(episode.states, episode.actions) for episode in episodes] == expected
    # One choice a step, for no episode that has ended.
    assert len(turns) == max((len(episode.actions) for episode in episodes), default=0)
    assert all(set(after.episodes) <= set(before.episodes) for before, after in pairwise(turns))


class Beside(dials.Dials):
    """A task that notes when its steps are begun and waited for."""

    runs_beside = True
    notes: ClassVar[list[str]] = []

    @classmethod
    def begin_many(cls, tasks, states, actions):
        cls.notes.append(f"begin {len(tasks)}")
        wait = super().begin_many(tasks, states, actions)

        def waited():
            cls.notes.append(f"wait {len(tasks)}")
            return wait()

        return waited


@pytest.mark.parametrize("wrap", [lambda task: task, lambda task: Limited(task, Limits(horizon=3))])
def test_two_halves_take_turns_where_steps_run_beside(wrap):
    tasks, turns = [wrap(Beside((number, 1, 2))) for number in range(5)], []

    def choose(turn):
        turns.append((turn.step, turn.episodes))
        rows = zip(turn.tasks, turn.states, turn.episodes, strict=True)
        return [drawn(task, state, place, turn.step, 0) for task, state, place in rows]

    Beside.notes.clear()
    episodes = play(tasks, choose)
    for number, (task, episode) in enumerate(zip(tasks, episodes, strict=True)):
        assert (episode.states, episode.actions) == alone(task, number, 0)
    assert Beside.notes[:6] == ["begin 3", "begin 2", "wait 3", "begin 3", "wait 2", "begin 2"]
    assert turns[:4] == [(0, [0, 1, 2]), (0, [3, 4]), (1, [0, 1, 2]), (1, [3, 4])]
    assert max(step for step, _ in turns) + 1 == max(len(episode.actions) for episode in episodes)
