from dataclasses import replace

import dials
import numpy as np
import pytest
import torch
from trainings import learns

from irgym.agents.algorithms.dqn import DQNConfig
from irgym.base.errors import IrgymError
from irgym.core.reward import RelativeImprovement

LEARNS = DQNConfig(
    iterations=80,
    episodes=32,
    updates=24,
    lr=1e-3,
    lr_end=1e-4,
    exploration=0.7,
    target_every=32,
    hidden=(64, 64),
    replay=10_000,
)


@pytest.mark.parametrize("reward", [None, RelativeImprovement()], ids=["at the end", "every step"])
def test_learns_the_dials(reward):
    problem = dials.problem(dials.CODES[7::30], reward)
    best = dials.BEST_RETURN if reward is None else 7 / 8
    assert learns(LEARNS, problem, 0.9 * best)


def test_exploration_ends_where_it_is_told_to():
    learner = replace(LEARNS, iterations=10, episodes=4).build(dials.problem(dials.CODES[:2]))
    epsilons = [learner.iterate()[1].epsilon for _ in range(10)]
    assert epsilons == sorted(epsilons, reverse=True) and epsilons[0] > LEARNS.epsilon_end
    assert epsilons[-1] == pytest.approx(LEARNS.epsilon_end)


def test_equal_seeds_give_equal_weights():
    problem = dials.problem(dials.CODES[7::30])
    weights = []
    for seed in (0, 0, 1):
        learner = replace(LEARNS, seed=seed, warmup=128).build(problem)
        for _ in range(5):
            learner.iterate()
        weights.append(learner.network.state_dict())
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())
    assert not all(torch.equal(value, weights[2][key]) for key, value in weights[0].items())


def test_targets_take_the_online_networks_legal_action_and_the_target_networks_value():
    problem = dials.problem(dials.CODES[:5])
    learner = replace(LEARNS, warmup=64, target_every=1000).build(problem)
    for _ in range(6):
        learner.iterate()
    transitions = learner.replay.sample(64, 0.4, np.random.default_rng(0))
    targets = learner._targets(transitions)
    with torch.no_grad():
        online = learner.network(transitions.next_observations)[:, 0]
        older = learner.target(transitions.next_observations)[:, 0]
    assert not torch.equal(online, older)
    assert learner.scale.factor > 2
    for row in range(64):
        legal = transitions.next_legal[row, 0]
        best = max(range(len(legal)), key=lambda a: float(online[row, a]) if legal[a] else -1e30)
        reward = learner.scale.factor * transitions.rewards[row]
        expected = reward + transitions.discounts[row] * older[row, best]
        assert targets[row] == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("change", [{"episodes": 0}, {"replay": 10}, {"activation": "sine"}])
def test_senseless_values_are_refused(change):
    with pytest.raises(IrgymError, match="choose"):
        replace(DQNConfig(), **change).build(dials.problem())
