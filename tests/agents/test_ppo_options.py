"""Every option of PPO, held against its formula, where one step on everything collected has a known loss."""

from dataclasses import replace
from typing import Any, NamedTuple

import dials
import numpy as np
import ordering
import pytest
import torch

from irgym.agents.algorithms.ppo import PPO, PPOConfig
from irgym.agents.episodes.advantages import advantages_and_returns
from irgym.agents.episodes.trajectories import Trajectories, join, select_episodes
from irgym.agents.learner import Statistics
from irgym.networks import likelihood
from irgym.networks.actor_critic import ActorCritic

PROBLEM = dials.problem(dials.CODES[7::30])
ONE_STEP = PPOConfig(
    episodes=32, epochs=1, minibatch=100_000, lr=1e-2, entropy=0.0, hidden=(16,), normalise_rewards=False
)


class Iteration(NamedTuple):
    """Inputs and statistics of an iteration; `learner` is in its state after it."""

    learner: PPO
    trajectories: Trajectories
    values: np.ndarray
    past: Trajectories | None
    policy_logp_of_past: np.ndarray
    statistics: Statistics


def log_probs(learner: PPO, trajectories: Trajectories) -> np.ndarray:
    legal, choices = torch.as_tensor(trajectories.legal), torch.as_tensor(trajectories.choices)
    with torch.inference_mode():
        scores = learner.network.actor(trajectories.observations)
        return likelihood.evaluate(scores, legal, choices, learner.layout).log_prob.numpy()


def watched(config: PPOConfig, earlier: int = 0, problem: Any = PROBLEM) -> Iteration:
    """Return the last iteration after some earlier ones."""
    learner = config.build(problem)
    for _ in range(earlier):
        learner.iterate()
    collect, seen = learner.collect, []

    def collect_and_look(*arguments):
        collected, past = collect(*arguments), learner.past
        of_past = np.zeros(0) if past is None else log_probs(learner, past)
        seen.append((collected[0], learner.values(collected[0]), past, of_past))
        return collected

    learner.collect = collect_and_look  # type: ignore[method-assign]
    _, statistics = learner.iterate()
    return Iteration(learner, *seen[0], statistics)


def estimates(config: PPOConfig, trajectories: Trajectories, values: np.ndarray):
    """Return importance weights without a limit, advantages and value targets of each step."""
    weights = np.exp(trajectories.policy_logp - trajectories.behaviour_logp)
    grids = [trajectories.grid(array) for array in (trajectories.rewards, values, weights)]
    place = trajectories.step, trajectories.episode
    return weights, *(a[place] for a in advantages_and_returns(*grids, config.gamma, config.gae_lambda))


@pytest.mark.parametrize("limit", [0.9, 1.2, 1e30])
@pytest.mark.parametrize("how", ["standard", "max-abs", "none"])
def test_the_policy_loss_has_normalised_advantages_and_limited_weights(how, limit):
    config = replace(ONE_STEP, advantages=how, importance_limit=limit, epsilon=0.5)
    _, trajectories, values, *_, statistics = watched(config)
    weights, advantages, _ = estimates(config, trajectories, values)
    assert weights.min() < 0.9 and 1.2 < weights.max() < 2.0
    if how == "standard":
        advantages = (advantages - np.mean(advantages)) / np.std(advantages)
    elif how == "max-abs":
        advantages = advantages / max(map(abs, advantages))
    expected = -np.mean([min(weight, limit) * a for weight, a in zip(weights, advantages, strict=True)])
    assert statistics.policy_loss == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("limit", [None, 0.02, 0.1])
def test_the_loss_of_a_value_that_moved_too_far_is_clipped(limit):
    config = replace(ONE_STEP, value_clip=limit, epochs=2)
    _, trajectories, old, *_, statistics = watched(config)
    new = watched(replace(config, epochs=1)).learner.values(trajectories)
    assert np.abs(new - old).max() > 0.1
    _, _, returns = estimates(config, trajectories, old)
    first = np.mean((old - returns) ** 2)
    second = (new - returns) ** 2
    if limit is not None:
        second = np.maximum(second, (np.clip(new, old - limit, old + limit) - returns) ** 2)
    assert statistics.value_loss == pytest.approx((first + second.mean()) / 2, rel=1e-4)


def weights_of(network: ActorCritic) -> torch.Tensor:
    return torch.cat([value.flatten() for value in network.state_dict().values()])


def test_the_epochs_end_with_the_one_whose_divergence_passes_the_target():
    runs = [watched(replace(ONE_STEP, epochs=epochs)) for epochs in range(1, 6)]
    sums = [epochs * run.statistics.kl for epochs, run in enumerate(runs, 1)]
    third, fourth = sums[2] - sums[1], sums[3] - sums[2]
    log_ratio = log_probs(runs[1].learner, runs[0].trajectories) - runs[0].trajectories.policy_logp
    assert third == pytest.approx(np.mean(np.exp(log_ratio) - 1 - log_ratio), rel=1e-3)
    assert 0 < third < fourth
    stopped = watched(replace(ONE_STEP, epochs=5, target_kl=(third + fourth) / 2)).learner
    assert torch.equal(weights_of(stopped.network), weights_of(runs[3].learner.network))
    assert not torch.equal(weights_of(stopped.network), weights_of(runs[4].learner.network))


@pytest.mark.parametrize("epochs", [1, 3])
def test_value_epochs_are_steps_of_the_value_alone(epochs):
    config = replace(ONE_STEP, value_epochs=epochs, epochs=2)
    learner, trajectories, old, *_, statistics = watched(config)
    _, _, returns = estimates(config, trajectories, old)
    network = config.build(PROBLEM).network
    optimiser = torch.optim.Adam(network.critic_parameters(), lr=config.lr, eps=1e-5)
    losses = []
    for _ in range(epochs):
        values = network.values(trajectories.observations, torch.as_tensor(trajectories.privileged))
        loss = (values - torch.as_tensor(returns)).square().mean()
        network.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.critic_parameters(), config.max_grad_norm)
        optimiser.step()
        losses.append(loss.item())
    assert statistics.value_loss == pytest.approx(np.mean(losses), rel=1e-4)
    np.testing.assert_allclose(learner.values(trajectories), network_values(network, trajectories), atol=1e-4)
    joint = watched(replace(config, value_epochs=0)).learner
    assert not np.allclose(learner.values(trajectories), joint.values(trajectories), atol=1e-4)


def network_values(network: ActorCritic, trajectories: Trajectories) -> np.ndarray:
    with torch.inference_mode():
        return network.values(trajectories.observations, torch.as_tensor(trajectories.privileged)).numpy()


def reused(config: PPOConfig) -> tuple[list[int], int]:
    """Return which past episodes explain the loss of the second iteration, and the one of the best return."""
    before = watched(config)
    learner, fresh, _, past, of_past, statistics = watched(config, earlier=1)
    assert past is not None and past.episodes == config.episodes
    assert not np.allclose(of_past, past.policy_logp), "the policy has changed since"
    now = replace(past, policy_logp=of_past)
    explain = []
    for place in range(past.episodes):
        encoder = learner.encoder
        both = join(select_episodes(now, np.array([place]), encoder), fresh, encoder)
        values = before.learner.values(both)
        weights, advantages, _ = estimates(config, both, values)
        loss = -np.mean(np.minimum(weights, config.importance_limit) * advantages)
        if statistics.policy_loss == pytest.approx(loss, rel=1e-4):
            explain.append(place)
    return explain, int(past.returns().argmax())


def test_reused_episodes_are_the_requested_ones_and_are_corrected():
    config = replace(ONE_STEP, episodes=5, advantages="none", reuse_episodes=1, lr=5e-2)
    best = [reused(replace(config, reuse="top-k", seed=seed)) for seed in range(6)]
    assert all(place in chosen for chosen, place in best)
    drawn = [reused(replace(config, reuse="random", seed=seed)) for seed in range(6)]
    assert all(len(chosen) == 1 for chosen, _ in drawn)
    assert len({place for chosen, _ in drawn for place in chosen}) > 2
    assert any(place not in chosen for chosen, place in drawn)


def test_epsilon_is_the_share_of_uniform_actions_and_falls_to_its_end():
    config = replace(ONE_STEP, epsilon=0.4, epsilon_end=0.1, iterations=3, actions="flat")
    for earlier, epsilon in enumerate([0.4, 0.3, 0.2, 0.1, 0.1]):
        _, trajectories, *_, statistics = watched(config, earlier)
        assert statistics.epsilon == pytest.approx(epsilon)
        uniform = 1 / trajectories.legal.sum(axis=(1, 2))
        mixture = (1 - epsilon) * np.exp(trajectories.policy_logp) + epsilon * uniform
        np.testing.assert_allclose(np.exp(trajectories.behaviour_logp), mixture, rtol=1e-4)


def test_a_group_is_on_one_program_and_its_mean_is_the_baseline():
    config = replace(ONE_STEP, group=4, advantages="none")
    _, trajectories, *_, statistics = watched(config)
    starts = trajectories.observations[torch.as_tensor(trajectories.step == 0)].numpy()
    programs = starts[trajectories.episode[trajectories.step == 0].argsort()].reshape(8, 4, -1)
    assert (programs == programs[:, :1]).all()
    assert len(np.unique(programs[:, 0], axis=0)) > 1
    returns = trajectories.returns()
    mean = np.repeat(returns.reshape(8, 4).mean(axis=1), 4)
    expected = -np.mean([returns[episode] - mean[episode] for episode in trajectories.episode])
    assert statistics.policy_loss == pytest.approx(expected, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_the_value_moves_the_policys_layers_only_where_they_are_shared(shared):
    learner = replace(ONE_STEP, shared=shared).build(PROBLEM)
    trajectories, _ = learner.collect()
    layers = list(learner.network.actor.encoder.parameters())
    before = [value.clone() for value in layers]
    values = learner.network.values(trajectories.observations, torch.as_tensor(trajectories.privileged))
    learner.descent.step(values.sum())
    moved = [not torch.equal(*pair) for pair in zip(before, layers, strict=True)]
    assert all(moved) if shared else not any(moved)


@pytest.mark.parametrize("actions", ["structured", "autoregressive", "flat"])
def test_actions_are_laid_out_as_asked(actions):
    learner = replace(ONE_STEP, actions=actions).build(PROBLEM)
    assert learner.layout.kind == actions == learner.policy().network.layout.kind
    assert (learner.network.actor.pair_scores is not None) == (actions == "autoregressive")


@pytest.mark.parametrize("value_features", [False, True])
def test_value_features_reach_the_value(value_features):
    problem = ordering.problem(passes=4)
    learner, trajectories, values, *_ = watched(
        replace(ONE_STEP, value_features=value_features, lr=1e-9, lr_end=1e-9), problem=problem
    )
    assert trajectories.privileged.shape[1] == (2 if value_features else 0)
    np.testing.assert_allclose(values, learner.values(trajectories), atol=1e-4)
    if value_features:
        [first] = np.unique(trajectories.privileged[trajectories.step == 0], axis=0)
        assert first.tolist() == [1.0, 1.0]
        other = learner.values(replace(trajectories, privileged=trajectories.privileged + 0.5))
        assert np.abs(other - values).max() > 1e-3


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("normalised", [False, True])
def test_rewards_are_divided_by_the_deviation_of_all_returns_so_far(gamma, normalised):
    config = replace(ONE_STEP, normalise_rewards=normalised, gamma=gamma, episodes=16)
    learner, returns = config.build(PROBLEM), []
    for _ in range(3):
        trajectories, _ = learner.collect()
        for episode in range(trajectories.episodes):
            rows = trajectories.episode == episode
            rewards = trajectories.rewards[rows][trajectories.step[rows].argsort()]
            returns += [
                sum(gamma**k * later for k, later in enumerate(rewards[t:])) for t in range(len(rewards))
            ]
    expected = 1 / np.std(returns) if normalised else 1.0
    assert learner.scale.factor == pytest.approx(expected, rel=1e-4)


def test_inputs_are_normalised_by_the_statistics_of_the_rollouts():
    learner, trajectories, *_ = watched(replace(ONE_STEP, normalise_observations=True, lr=1e-9, lr_end=1e-9))
    inputs = trajectories.observations.numpy()
    norm = learner.network.actor.encoder.norm
    np.testing.assert_allclose(norm.mean.numpy(), inputs.mean(axis=0), atol=1e-5)
    assert ONE_STEP.build(PROBLEM).network.actor.encoder.norm is None
