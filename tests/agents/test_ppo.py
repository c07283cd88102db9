from dataclasses import replace

import dials
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trainings import learns

from irgym.agents import AGENTS
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.episodes.advantages import advantages_and_returns, group_advantages, normalise
from irgym.base.errors import IrgymError

LEARNS = PPOConfig(iterations=60, episodes=96, epochs=6, minibatch=128, lr=3e-3, entropy=0.1, hidden=(64, 64))
VARIANTS = {
    "plain": LEARNS,
    "flat": replace(LEARNS, actions="flat", entropy=0.02, iterations=40),
    "autoregressive": replace(LEARNS, actions="autoregressive", entropy=0.05),
    "group": replace(LEARNS, group=8),
    "epsilon": replace(LEARNS, epsilon=0.3),
    "mlir-rl": replace(LEARNS, advantages="max-abs", value_epochs=4, value_clip=0.5, target_kl=0.2),
    "reuse-random": replace(LEARNS, reuse="random", iterations=50),
    "reuse-top-k": replace(LEARNS, reuse="top-k", shared=True, iterations=50),
}


def learner_after(config, problem, iterations=None):
    learner = config.build(problem)
    for _ in range(config.iterations if iterations is None else iterations):
        learner.iterate()
    return learner


@pytest.mark.parametrize("name", VARIANTS)
def test_learns_the_dials(name):
    problem = dials.problem(dials.CODES[7::30])
    assert learns(VARIANTS[name], problem, 0.9 * dials.BEST_RETURN)


@pytest.mark.parametrize("name", ["epsilon", "mlir-rl", "reuse-random"])
def test_equal_seeds_give_equal_weights(name):
    problem = dials.problem(dials.CODES[7::30])
    weights = [learner_after(VARIANTS[name], problem, 4).network.state_dict() for _ in range(2)]
    other = learner_after(replace(VARIANTS[name], seed=1), problem, 4).network.state_dict()
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())
    assert not all(torch.equal(value, other[key]) for key, value in weights[0].items())


def test_a_group_is_compared_with_itself_alone():
    advantages = group_advantages(np.array([1.0, 3.0, 100.0, 100.0]), 2)
    assert advantages.tolist() == [-1.0, 1.0, 0.0, 0.0]


@given(st.integers(1, 6), st.integers(0, 1000), st.booleans())
@settings(max_examples=50, deadline=None)
def test_advantages_equal_the_sums_written_out(horizon, seed, on_policy):
    rng = np.random.default_rng(seed)
    gamma, lam = 0.9, 0.8
    rewards, values = rng.normal(size=(2, horizon, 1)).astype(np.float32)
    ratios = np.ones_like(rewards) if on_policy else rng.uniform(0.2, 2, (horizon, 1)).astype(np.float32)
    advantages, returns = advantages_and_returns(rewards, values, ratios, gamma, lam)
    weights = np.minimum(1, ratios[:, 0])
    ahead = np.append(values[:, 0], 0.0)
    deltas = rewards[:, 0] + gamma * ahead[1:] - ahead[:-1]
    for t in range(horizon):
        expected = sum(
            (gamma * lam) ** (k - t) * weights[t + 1 : k + 1].prod() * deltas[k] for k in range(t, horizon)
        )
        assert advantages[t, 0] == pytest.approx(expected, abs=1e-4)
        assert returns[t, 0] == pytest.approx(values[t, 0] + weights[t] * expected, abs=1e-4)


def test_with_lambda_1_on_policy_the_returns_are_the_rewards_to_go():
    rewards = np.arange(4, dtype=np.float32)[:, None]
    values = np.random.default_rng(0).normal(size=(4, 1)).astype(np.float32)
    _, returns = advantages_and_returns(rewards, values, np.ones_like(rewards), 1.0, 1.0)
    np.testing.assert_allclose(returns[:, 0], [6, 6, 5, 3], rtol=1e-5)


def test_normalisation():
    values = np.array([1.0, -4.0, 2.0], dtype=np.float32)
    standard = normalise(values, "standard")
    assert standard.mean() == pytest.approx(0, abs=1e-6)
    assert standard.std() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(normalise(values, "max-abs"), values / 4)
    assert normalise(values, "none") is values


def test_the_first_gradient_step_is_on_policy():
    problem = dials.problem(dials.CODES[:4])
    config = PPOConfig(episodes=64, epochs=1, minibatch=100_000, hidden=(16,), epsilon=0.5)
    _, statistics = config.build(problem).iterate()
    assert statistics.kl == pytest.approx(0, abs=1e-6)
    assert statistics.clip_fraction == 0


def test_the_pool_of_past_episodes_is_bounded():
    problem = dials.problem(dials.CODES[:4])
    learner = learner_after(PPOConfig(episodes=20, hidden=(8,), reuse="top-k", reuse_capacity=50), problem, 5)
    assert learner.past is not None
    assert learner.past.episodes == 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episodes": 0}, "episodes of PPO is 0"),
        ({"activation": "sine"}, "no activation 'sine'"),
        ({"epsilon": 1.0}, "epsilon of PPO"),
        ({"shared": True, "value_epochs": 2}, "value_epochs"),
        ({"episodes": 10, "group": 4}, "do not divide into groups of 4"),
        ({"group": 4, "reuse": "random"}, "set reuse to none"),
    ],
)
def test_senseless_values_are_refused(change, message):
    with pytest.raises(IrgymError, match=message):
        replace(PPOConfig(), **change).build(dials.problem())


def test_agents_are_found_by_name():
    assert AGENTS.load("ppo") is PPOConfig
    with pytest.raises(IrgymError, match="choose among ppo, dqn"):
        AGENTS.load("pp0")
