"""The learners on a toy of pass ordering, with all that they share; each solves it in seconds."""

from dataclasses import replace

import ordering
import pytest
import torch
from trainings import learns

from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.conformance.training import check_training
from irgym.core.reward import LogSpeedup, RelativeImprovement, Shaped

PPO = PPOConfig(
    iterations=30,
    episodes=32,
    epochs=6,
    minibatch=100,
    lr=5e-3,
    lr_end=1e-3,
    gamma=0.95,
    hidden=(32, 32),
    normalise_observations=True,
)
A2C = A2CConfig(iterations=250, episodes=8, lr=3e-3, gamma=0.95, hidden=(32, 32), normalise_observations=True)
DQN = DQNConfig(
    iterations=40,
    episodes=32,
    updates=16,
    lr=2e-3,
    lr_end=5e-4,
    gamma=0.9,
    exploration=0.4,
    hidden=(32, 32),
    normalise_observations=True,
)
LEARN = {
    "ppo": (PPO, 0.97),
    "value features": (replace(PPO, value_features=True), 0.97),
    "a2c": (A2C, 0.95),
    "dqn": (DQN, 0.85),
}


@pytest.mark.parametrize("name", LEARN)
def test_learns_the_order(name):
    config, share = LEARN[name]
    problem = ordering.problem(passes=10)
    assert learns(config, problem, share * ordering.best_return(problem.tasks))


def test_learns_the_order_from_a_reward_at_the_end_that_is_shaped():
    dense = ordering.problem(passes=10)
    shaped = ordering.problem(passes=10, reward=Shaped(LogSpeedup(), gamma=PPO.gamma, weight=1.0))
    assert learns(PPO, shaped, 0.9 * ordering.best_return(dense.tasks), judge=dense)


EVERYTHING = {
    "ppo": replace(PPO, episodes=8, value_features=True, reuse="random", value_epochs=1, epsilon=0.2),
    "a2c": replace(A2C, value_features=True),
    "dqn": replace(DQN, episodes=8, updates=4, warmup=64, replay=512),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_it_keeps_the_rules(name):
    check_training(EVERYTHING[name], ordering.problem(passes=4, reward=Shaped(RelativeImprovement())))


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_statistics_are_those_of_all_rollouts(name):
    learner = replace(EVERYTHING[name], episodes=4).build(ordering.problem(passes=4))
    steps = sum(learner.iterate()[0].steps for _ in range(3))
    networks = (learner.network, learner.target) if name == "dqn" else (learner.network.actor,)
    for network in networks:
        assert int(network.encoder.norm.count) == steps
    if name != "dqn":
        assert torch.equal(learner.network.critic.norm.mean, learner.network.actor.encoder.norm.mean)


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_unit_of_rewards_does_not_matter(name):
    class Scaled:
        every, shaped = 1, False

        def __init__(self, factor):
            self.factor = factor

        def __call__(self, transition):
            return self.factor * RelativeImprovement()(transition)

    learners = [EVERYTHING[name].build(ordering.problem(passes=4, reward=Scaled(k))) for k in (1.0, 1024.0)]
    for _ in range(3):
        for learner in learners:
            learner.iterate()
    assert learners[0].scale.factor == pytest.approx(1024 * learners[1].scale.factor)
    for first, second in zip(*(learner.network.parameters() for learner in learners), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-4)


def test_equal_returns_have_no_scale():
    learner = replace(A2C, normalise_rewards=False).build(ordering.problem(passes=4))
    learner.iterate()
    assert learner.scale.factor == 1.0
