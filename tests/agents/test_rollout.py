import math
import pickle
from dataclasses import dataclass, replace

import dials
import numpy as np
import ordering
import pytest
import torch
from steps import Discouraging, paid

from irgym.agents.episodes import rollout as rollouts
from irgym.agents.episodes.played import settle
from irgym.agents.episodes.rollout import draw_tasks, rollout
from irgym.agents.episodes.trajectories import (
    join,
    select_episodes,
    trajectories_from_state,
    trajectories_state,
)
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.core.capabilities import analysed, cost_features
from irgym.core.cost import Measurement, Outcome
from irgym.core.reward import (
    EpisodeCosts,
    LogSpeedup,
    PeriodicImprovement,
    RelativeImprovement,
    Saving,
    Shaped,
    potential,
)
from irgym.core.schedule import Schedule
from irgym.networks.encoders import MlpSpec
from irgym.policies import heads
from irgym.policies.layout import StructuredLayout

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
    "reward",
    [LogSpeedup(), RelativeImprovement(), RelativeImprovement(every=0), PeriodicImprovement(every=2)],
)
def test_trajectories_are_what_replaying_their_actions_gives(reward):
    tasks, trajectories, outcomes = play(reward)
    assert trajectories.episodes == 20
    assert {len(replayed(tasks, trajectories, n)[1]) for n in range(20)} >= {3, 4}
    for number in range(20):
        states, rows = replayed(tasks, trajectories, number)
        costs = [dials.cost(state[0], tasks[number].code).cost for state in states]
        asked = [0]
        for step, row in enumerate(rows, start=1):
            final = step == len(rows)
            previous = costs[asked[-1]]
            if final or (reward.every and step % reward.every == 0):
                asked.append(step)
            known = EpisodeCosts(costs[0], previous, costs[asked[-1]], asked=asked[-1] == step)
            assert trajectories.rewards[row] == pytest.approx(paid(reward, known, final))
        assert outcomes.first[number] == costs[0]
        assert outcomes.last[number] == costs[-1]
        assert outcomes.best[number] == min(costs[step] for step in asked)
    np.testing.assert_allclose(trajectories.returns(), outcomes.returns, rtol=1e-6)
    assert outcomes.steps == len(trajectories)


def test_a_reward_sees_the_states_and_the_action_of_each_step():
    tasks, trajectories, _ = play(Discouraging())
    assert len(set(trajectories.rewards.tolist())) > 3
    for number in range(20):
        states, rows = replayed(tasks, trajectories, number)
        for step, row in enumerate(rows):
            [action] = LAYOUT.actions(trajectories.choices[[row]])
            wanted = sum(states[step + 1][0]) - sum(states[step][0]) - float(action.kind == 0)
            assert trajectories.rewards[row] == wanted


class Compiled(dials.Dials):
    """Its compiler turns two dials right."""

    def pipeline(self, name):
        assert name == "two"
        return Schedule.parse(f"turn_0_{self.code[0]} turn_1_{self.code[1]}", dials.SPACE)


def test_a_reward_is_scaled_by_what_a_pipeline_saves_on_each_program():
    tasks = [Compiled(code) for code in ((0, 1, 2), (4, 4, 4), (0, 1, 2))]
    reward, evaluator = Saving("two"), Counting()
    problem = Problem(tasks, evaluator, reward)

    def choose(batch, legal):
        scores = np.zeros((len(legal), LAYOUT.segments, LAYOUT.width), dtype=np.float32)
        return heads.sample(scores, legal, LAYOUT, np.random.default_rng(1))

    trajectories, outcomes = rollout(tasks, problem, ENCODER, LAYOUT, choose)
    episodes = rollouts.play(tasks, RelativeImprovement(), ENCODER, LAYOUT, choose)
    costs = dials.Inline().evaluate(episodes.jobs)
    plain, _ = settle(episodes, tasks, costs, RelativeImprovement(), [None] * 3)
    assert evaluator.calls == 1 and outcomes.first.tolist() == [800.0] * 3
    assert trajectories.rewards.any()
    assert trajectories.rewards == pytest.approx(plain.rewards * 800.0 / (800.0 - 200.0))


def test_states_that_were_left_out_are_made_again_for_a_reward_that_asks_for_them():
    tasks = [dials.Dials(dials.CODES[place]) for place in range(3)]

    def choose(batch, legal):
        scores = np.zeros((len(legal), LAYOUT.segments, LAYOUT.width), dtype=np.float32)
        return heads.sample(scores, legal, LAYOUT, np.random.default_rng(0))

    episodes = rollouts.play(tasks, Discouraging(), ENCODER, LAYOUT, choose)
    costs = dials.Inline().evaluate(episodes.jobs)
    whole, _ = settle(episodes, tasks, costs, Discouraging(), [None] * 3)
    sent = pickle.loads(pickle.dumps(replace(episodes, states=[])))
    again, _ = settle(sent, tasks, costs, Discouraging(), [None] * 3)
    assert whole.rewards.any() and np.array_equal(whole.rewards, again.rewards)


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

    every: int = 0
    shaped: bool = False

    def __call__(self, costs, final):
        return math.log(costs.first / costs.current)


def test_no_action_anywhere_is_the_users_to_mend(monkeypatch):
    monkeypatch.setattr(dials.Dials, "horizon", 0)
    with pytest.raises(IrgymError, match="no action applies"):
        play(Spread())


class Analysed(ordering.Passes):
    """Only this form has an analysis, and it remembers how its states were stepped."""

    calls = ()

    def analysed(self):
        return self

    @classmethod
    def step_many(cls, tasks, states, actions):
        cls.calls = (*cls.calls, [task.seed for task in tasks])
        return super().step_many(tasks, states, actions)


class Bare(ordering.Passes):
    def analysed(self):
        return Analysed(self.seed, self.passes)

    def analysis(self, state):
        raise AssertionError("not analysed")


class Shorter(Analysed):
    calls = ()
    horizon = 3


def order(tasks, reward=None, privileged=False):
    rng, layout = np.random.default_rng(0), StructuredLayout(tasks[0].space)

    def choose(batch, legal):
        scores = np.zeros((len(legal), layout.segments, layout.width), dtype=np.float32)
        return heads.sample(scores, legal, layout, rng)

    problem = Problem(tasks, ordering.Known(), reward or RelativeImprovement())
    encoder = MlpSpec(2 * tasks[0].passes, (4,)).build()
    return rollout(tasks, problem, encoder, layout, choose, privileged=privileged)


def states_of(task, trajectories, number):
    """The states of an episode, first to last."""
    states = [task.initial()]
    for choice in trajectories.choices[trajectories.episode == number, 0]:
        states.append(task.step(states[-1], task.space.flat[choice]))
    return states


@pytest.mark.parametrize("base", [RelativeImprovement(), LogSpeedup()])
def test_shaped_rewards_use_the_potentials_of_every_state(base):
    tasks = [Bare(seed, 4) for seed in (3, 1, 3)]
    reward = Shaped(base, gamma=0.9, weight=2.0)
    plain, shaped = order(tasks, base)[0], order(tasks, reward)[0]
    assert plain.privileged.shape == shaped.privileged.shape == (15, 0)
    np.testing.assert_array_equal(plain.choices, shaped.choices)
    for number, task in enumerate(tasks):
        potentials = [potential(analysed(task), state) for state in states_of(task, plain, number)]
        potentials[-1] = 0.0
        shaping = 2.0 * (0.9 * np.array(potentials[1:]) - np.array([*potentials[:-1]]))
        own = plain.episode == number
        np.testing.assert_allclose(shaped.rewards[own], plain.rewards[own] + shaping, rtol=1e-5, atol=1e-6)


def test_the_critics_privileged_input_is_the_analysis_before_each_step():
    tasks = [Bare(seed, 4) for seed in (3, 1)]
    trajectories, _ = order(tasks, privileged=True)
    for number, task in enumerate(tasks):
        expected = [
            cost_features(analysed(task), state) for state in states_of(task, trajectories, number)[:-1]
        ]
        np.testing.assert_allclose(trajectories.privileged[trajectories.episode == number], expected)
    encoder = MlpSpec(8, (4,)).build()
    both = join(trajectories, select_episodes(trajectories, np.array([1]), encoder), encoder)
    assert both.privileged.shape == (15, 2)
    again = trajectories_from_state(trajectories_state(both))
    np.testing.assert_array_equal(again.privileged, both.privileged)


def test_a_task_without_analysis_says_so():
    rng = np.random.default_rng(0)
    problem = dials.problem(dials.CODES[:3])

    def choose(batch, legal):
        scores = np.zeros((len(legal), LAYOUT.segments, LAYOUT.width), dtype=np.float32)
        return heads.sample(scores, legal, LAYOUT, rng)

    with pytest.raises(IrgymError, match="set value_features to false"):
        rollout(problem.tasks, problem, ENCODER, LAYOUT, choose, privileged=True)


def test_one_call_steps_all_episodes_of_a_class():
    Analysed.calls = Shorter.calls = ()
    tasks = [Analysed(5, 4), Shorter(6, 4), Analysed(7, 4), Shorter(8, 4), Analysed(5, 4)]
    trajectories, outcomes = order(tasks)
    assert Analysed.calls == ([5, 7, 5],) * 5
    assert Shorter.calls == ([6, 8],) * 3
    assert np.bincount(trajectories.episode).tolist() == [5, 3, 5, 3, 5]
    for number, task in enumerate(tasks):
        last = states_of(task, trajectories, number)[-1]
        assert outcomes.last[number] == task.cost(last).cost
