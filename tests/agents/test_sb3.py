"""Stable-Baselines3 through the adapter, and as the oracle of our PPO."""

import itertools

import dials
import gymnasium
import numpy as np
import ordering
import pytest

from irgym.agents.ppo import PPOConfig
from irgym.agents.problem import Problem
from irgym.agents.training import greedy_score
from irgym.core.env import TaskEnv
from irgym.core.errors import IrgymError
from irgym.core.reward import EpisodeCosts, LogSpeedup

sb3 = pytest.importorskip("irgym.agents.sb3")
pytest.importorskip("sb3_contrib")

PROBLEM = dials.problem(dials.CODES[7::30])


class DialsEnv(gymnasium.Env):
    """The dials for SB3; an action that does not apply wastes a step."""

    def __init__(self):
        self.action_space = gymnasium.spaces.Discrete(len(dials.SPACE.flat))
        self.observation_space = gymnasium.spaces.Box(0, 1, (34,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.task = PROBLEM.tasks[self.np_random.integers(len(PROBLEM.tasks))]
        self.state, self.steps = self.task.initial(), 0
        return self.task.observe(self.state), {}

    def action_masks(self):
        return dials.SPACE.flat_mask(self.task.mask(self.state))

    def step(self, action):
        if self.action_masks()[action]:
            self.state = self.task.step(self.state, dials.SPACE.flat[action])
        self.steps += 1
        done = self.task.terminal(self.state) or self.steps >= self.task.horizon
        cost = dials.cost(self.state[0], self.task.code).cost
        reward = LogSpeedup()(EpisodeCosts(800.0, 800.0, cost), done)
        return self.task.observe(self.state), reward, done, False, {}


def mean_return(policy):
    """Mean return of the greedy policy over all tasks."""
    total = 0.0
    for task in PROBLEM.tasks:
        state = task.initial()
        for _ in range(task.horizon):
            if not task.terminal(state):
                state = task.step(state, policy.act([task.observe(state)], [task.mask(state)], None)[0])
        total += np.log10(800.0 / dials.cost(state[0], task.code).cost)
    return total / len(PROBLEM.tasks)


@pytest.mark.slow
def test_our_ppo_reaches_what_maskable_ppo_reaches():
    ours, theirs = [], []
    for seed in range(2):
        config = PPOConfig(
            iterations=40, episodes=64, epochs=6, minibatch=64, lr=2e-3, lr_end=2e-3, entropy=0.02,
            entropy_end=0.02, hidden=(64, 64), actions="flat", seed=seed,
        )  # fmt: skip
        learner = config.build(Problem(PROBLEM.tasks, PROBLEM.evaluator, PROBLEM.reward))
        steps = sum(learner.iterate()[0].steps for _ in range(config.iterations))
        ours.append(greedy_score(learner.policy(), PROBLEM.tasks, PROBLEM))
        policy = sb3.train_sb3(
            "maskable-ppo", DialsEnv, dials.SPACE, steps=steps, environments=16, seed=seed, n_steps=16,
            n_epochs=6, batch_size=64, learning_rate=2e-3, ent_coef=0.02, gamma=1.0, gae_lambda=0.95,
        )  # fmt: skip
        theirs.append(mean_return(policy))
    # One dial wrong on one of the five codes is 1/15 of the best return.
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=dials.BEST_RETURN / 10)
    assert np.mean(ours) > 0.9 * dials.BEST_RETURN


@pytest.mark.parametrize("name", sb3.ALGORITHMS)
def test_every_algorithm_gives_a_policy(name):
    hyperparameters = {} if name == "dqn" else {"n_steps": 64}
    policy = sb3.train_sb3(name, DialsEnv, dials.SPACE, steps=128, environments=2, **hyperparameters)
    task = PROBLEM.tasks[0]
    states = [task.initial(), task.step(task.initial(), dials.SPACE.parse("turn_0_1"))]
    inputs = [task.observe(state) for state in states], [task.mask(state) for state in states]
    for row, mask in zip(policy.probabilities(*inputs), inputs[1], strict=True):
        assert row.sum() == pytest.approx(1.0)
        assert not row[~dials.SPACE.flat_mask(mask)].any()
    for rng in (None, np.random.default_rng(0)):
        for mask, action in zip(inputs[1], policy.act(*inputs, rng), strict=True):
            assert dials.SPACE.allows(mask, action)
    assert policy.act([], [], None) == []


@pytest.mark.parametrize("name", sb3.ALGORITHMS)
def test_every_algorithm_runs_on_a_task_and_reports_its_course(name, monkeypatch):
    monkeypatch.setattr("irgym.core.env.ENVIRONMENTS", ordering.ENVIRONMENTS)
    seen = []
    policy = sb3.train_sb3(
        name,
        lambda: TaskEnv("ordering", evaluator=ordering.Known()),
        ordering.SPACES[20],
        steps=500,
        environments=2,
        policy_kwargs={"net_arch": [16]},
        progress=lambda steps, mean: seen.append((steps, mean)),
        progress_every=200,
        **({"learning_starts": 100} if name == "dqn" else {"n_steps": 64}),
    )
    steps = [done for done, _ in seen]
    assert steps[0] == 200 and steps == sorted(set(steps)) and steps[-1] >= 500
    assert all(after - before >= 200 for before, after in itertools.pairwise(steps[:-1]))
    assert all(0.0 < mean < 1.0 for _, mean in seen)
    features = [
        module.out_features for module in policy.model.policy.modules() if hasattr(module, "out_features")
    ]
    assert 16 in features and max(features) <= 20


def test_unknown_algorithm():
    with pytest.raises(IrgymError, match="choose among maskable-ppo"):
        sb3.train_sb3("sac", DialsEnv, dials.SPACE, steps=1)
