import math
from dataclasses import dataclass

import dials
import numpy as np
import pytest
import torch

from irgym.agents.rollout import draw_tasks, rollout
from irgym.agents.trajectories import join, select_episodes, trajectories_from_state, trajectories_state
from irgym.core.cost import Measurement, Outcome
from irgym.core.errors import IrgymError
from irgym.core.reward import EpisodeCosts, LogSpeedup, RelativeImprovement
from irgym.nets import heads
from irgym.nets.encoders import MlpSpec
from irgym.nets.layout import StructuredLayout

LAYOUT = StructuredLayout(dials.SPACE)
ENCODER = MlpSpec(34, (4,)).build()


class Counting(dials.Inline):
    """Counts calls and jobs; fails where the cost is one of `failing`."""

    def __init__(self, failing=()):
        self.calls, self.jobs, self.failing = 0, [], failing

    def evaluate(self, jobs):
        self.calls += 1
        self.jobs += jobs
        results = super().evaluate(jobs)
        return [Measurement(Outcome.CRASH) if result.cost in self.failing else result for result in results]


def play(reward, evaluator=None, seed=0, codes=((0, 1, 2), (3, 3, 3), (4, 0, 1)), episodes=20):
    rng = np.random.default_rng(seed)
    problem = dials.problem(codes, reward)
    problem = type(problem)(problem.tasks, evaluator or Counting(), reward)
    tasks = draw_tasks(problem.tasks, episodes, rng)

    def choose(batch, legal):
        scores = np.zeros((len(legal), LAYOUT.segments, LAYOUT.width), dtype=np.float32)
        return heads.sample(scores, legal, LAYOUT, rng)

    return tasks, *rollout(tasks, problem, ENCODER, LAYOUT, choose)


def replayed(tasks, trajectories, number):
    """The states of an episode, from its recorded actions; checks observations and masks on the way."""
    task = tasks[number]
    states = [task.initial()]
    rows = np.flatnonzero(trajectories.episode == number)
    rows = rows[np.argsort(trajectories.step[rows])]
    assert trajectories.step[rows].tolist() == list(range(len(rows)))
    for row in rows:
        assert np.array_equal(trajectories.observations[row].numpy(), task.observe(states[-1]))
        assert np.array_equal(trajectories.legal[row], LAYOUT.legal([task.mask(states[-1])])[0])
        states.append(task.step(states[-1], LAYOUT.actions(trajectories.choices[[row]])[0]))
    assert task.terminal(states[-1]) or len(rows) == task.horizon
    assert not any(task.terminal(state) for state in states[:-1])
    return states, rows


@pytest.mark.parametrize(
    "reward", [LogSpeedup(), RelativeImprovement(), RelativeImprovement(every_step=False)]
)
def test_trajectories_are_what_replaying_their_actions_gives(reward):
    tasks, trajectories, outcomes = play(reward)
    assert trajectories.episodes == 20
    assert {len(replayed(tasks, trajectories, n)[1]) for n in range(20)} >= {3, 4}
    for number in range(20):
        states, rows = replayed(tasks, trajectories, number)
        costs = [dials.cost(state[0], tasks[number].code).cost for state in states]
        for place, row in enumerate(rows):
            final = place == len(rows) - 1
            previous = costs[place] if reward.every_step else costs[0]
            expected = reward(EpisodeCosts(costs[0], previous, costs[place + 1]), final)
            assert trajectories.rewards[row] == pytest.approx(expected)
        assert outcomes.first[number] == costs[0]
        assert outcomes.last[number] == costs[-1]
        measured = costs if reward.every_step else [costs[0], costs[-1]]
        assert outcomes.best[number] == min(measured)
    np.testing.assert_allclose(trajectories.returns(), outcomes.returns, rtol=1e-6)
    assert outcomes.steps == len(trajectories)


def test_every_distinct_state_is_asked_for_once_in_a_single_call():
    evaluator = Counting()
    _, _, outcomes = play(LogSpeedup(), evaluator)
    assert evaluator.calls == 1
    assert outcomes.evaluations == len(evaluator.jobs) < 40


def test_a_failed_evaluation_costs_only_its_episode():
    _, _, outcomes = play(LogSpeedup(failure=-5.0), Counting(failing=(400.0,)))
    failed = np.isinf(outcomes.last)
    assert 0 < failed.sum() < 20
    assert outcomes.failures > 0
    assert (outcomes.returns[failed] == -5.0).all()
    assert (outcomes.returns[~failed] >= 0).all()


def test_without_a_first_cost_the_reward_is_zero():
    _, trajectories, outcomes = play(RelativeImprovement(), Counting(failing=(800.0,)))
    assert np.isinf(outcomes.first).all()
    assert not trajectories.rewards.any()


def test_select_join_and_state_keep_episodes_whole():
    _, trajectories, _ = play(LogSpeedup())
    chosen = np.array([7, 2, 11])
    few = select_episodes(trajectories, chosen, ENCODER)
    np.testing.assert_array_equal(few.returns(), trajectories.returns()[chosen])
    both = join(few, trajectories, ENCODER)
    assert both.episodes == 23
    np.testing.assert_array_equal(both.returns(), [*few.returns(), *trajectories.returns()])
    again = trajectories_from_state(trajectories_state(both))
    assert torch.equal(again.observations, both.observations)
    np.testing.assert_array_equal(again.grid(again.choices[:, 0]), both.grid(both.choices[:, 0]))
    for place, number in enumerate(chosen):
        np.testing.assert_array_equal(
            few.grid(few.choices[:, 0])[:, place], trajectories.grid(trajectories.choices[:, 0])[:, number]
        )


def test_draw_tasks_repeats_none_before_all_were_drawn():
    tasks = dials.problem().tasks
    drawn = draw_tasks(tasks, 300, np.random.default_rng(0))
    counts = [sum(task is other for other in drawn) for task in tasks]
    assert sum(counts) == 300
    assert set(counts) == {2, 3}


@dataclass(frozen=True)
class Spread:
    """A reward that would divide by zero for a task that cannot move."""

    every_step: bool = False
    shaped: bool = False

    def __call__(self, costs, final):
        return math.log(costs.first / costs.current)


def test_no_action_anywhere_is_the_users_to_mend(monkeypatch):
    monkeypatch.setattr(dials.Dials, "horizon", 0)
    with pytest.raises(IrgymError, match="no action applies"):
        play(Spread())
