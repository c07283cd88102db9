"""PPO's gradient steps as MLIR RL's code takes them: minibatches, the value's own steps, recomputation."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import dials
import numpy as np
import pytest
import torch

from irgym.agents.algorithms.ppo import KL, PPO, PPOConfig, Steps
from irgym.agents.episodes.advantages import advantages_and_returns
from irgym.agents.episodes.trajectories import Trajectories
from irgym.base.errors import IrgymError

PROBLEM = dials.problem(dials.CODES[7::30])
CONFIG = PPOConfig(
    episodes=16, epochs=1, minibatch=100_000, lr=3e-2, entropy=0.0, hidden=(16,), normalise_rewards=False
)


def collected(**options: Any) -> tuple[PPO, Trajectories, Steps]:
    learner = replace(CONFIG, **options).build(PROBLEM)
    trajectories, _ = learner.collect()
    steps, _ = learner._estimate_advantages(trajectories)
    return learner, trajectories, steps


@pytest.mark.parametrize("over", ["iteration", "minibatch"])
def test_advantages_are_normalised_over_what_the_option_says(over):
    learner, trajectories, _ = collected(advantages="none")
    learner = replace(learner.config, advantages="max-abs", normalise_over=over).build(PROBLEM)
    steps, _ = learner._estimate_advantages(trajectories)
    raw = replace(learner.config, advantages="none").build(PROBLEM)._estimate_advantages(trajectories)[0]
    greatest = raw.advantages.abs().max()
    small = min(learner._minibatches(steps, 5), key=lambda part: float(part.advantages.abs().max()))
    loss = learner._policy_step(small, 0.0)[1]
    divisor = 1.0 if over == "iteration" else small.advantages.abs().max()
    assert float(loss) == pytest.approx(float(-(small.advantages / divisor).mean()), rel=1e-4)
    if over == "minibatch":
        assert small.advantages.abs().max() < 0.99 * greatest, "otherwise the two are the same"


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("k1", lambda r: -r),
        ("k2", lambda r: r**2 / 2),
        ("k3", lambda r: np.exp(r) - 1 - r),
    ],
)
def test_the_divergence_is_estimated_as_named(name, formula):
    learner, trajectories, steps = collected(kl_estimator=name)
    assert float(learner._policy_step(steps, 0.0)[KL]) == pytest.approx(0.0, abs=1e-6)
    log_ratio = learner._log_probs(trajectories) - trajectories.policy_logp
    assert np.abs(log_ratio).max() > 0.05
    assert float(learner._policy_step(steps, 0.0)[KL]) == pytest.approx(formula(log_ratio).mean(), rel=1e-3)


def test_old_log_probabilities_are_those_before_each_pass():
    recomputed, fixed = (
        replace(CONFIG, epochs=3, recompute=recompute).build(PROBLEM).iterate()[1].kl
        for recompute in (True, False)
    )
    assert recomputed == pytest.approx(0.0, abs=1e-6)
    assert fixed is not None and fixed > 1e-3


def test_advantages_are_of_the_values_after_their_training():
    for recompute in (True, False):
        learner, trajectories, steps = collected(
            value_epochs=5, recompute=recompute, advantages="none", gae_lambda=0.5
        )
        before = learner.values(trajectories)
        policy_loss = learner._learn(steps, trajectories).policy_loss
        after = learner.values(trajectories)
        assert np.abs(after - before).max() > 0.05
        rewards, values, ratios = (
            trajectories.grid(array)
            for array in (trajectories.rewards, after if recompute else before, np.ones_like(before))
        )
        advantages, _ = advantages_and_returns(rewards, values, ratios, 1.0, 0.5)
        expected = -advantages[trajectories.step, trajectories.episode].mean()
        assert policy_loss == pytest.approx(expected, rel=1e-3)


def test_the_value_has_its_own_minibatch_and_learning_rate(monkeypatch):
    sizes, rates = [], []
    learner, trajectories, steps = collected(value_epochs=1, value_minibatch=10, value_lr=0.5, lr_end=3e-3)
    assert learner.value_descent is not None
    taken = learner.value_descent.step
    original = learner._values
    monkeypatch.setattr(learner, "_values", lambda part: sizes.append(len(part.returns)) or original(part))
    monkeypatch.setattr(learner.value_descent, "step", lambda loss: rates.append(1) or taken(loss))
    learner._learn_values(steps)
    count = len(trajectories.rewards)
    assert sizes == [10] * (count // 10) + ([count % 10] if count % 10 else [])
    assert len(rates) == len(sizes)
    learner.iteration = learner.config.iterations  # where annealing has ended
    learner.iterate()
    assert learner.value_descent.state_dict()["param_groups"][0]["lr"] == pytest.approx(0.05)
    assert learner.descent.state_dict()["param_groups"][0]["lr"] == pytest.approx(3e-3)


@pytest.mark.parametrize("name", ["value_minibatch", "value_lr"])
def test_options_of_separate_values_are_refused_in_joint_steps(name):
    with pytest.raises(IrgymError, match=f"{name} is of separate value epochs: set value_epochs to 1"):
        replace(CONFIG, **{name: 1}).build(PROBLEM)


def test_a_training_with_all_of_them_resumes_exactly():
    config = replace(
        CONFIG, value_epochs=2, value_minibatch=7, value_lr=1e-2, recompute=True, kl_estimator="k2",
        normalise_over="minibatch", minibatch=9, epochs=2,
    )  # fmt: skip
    first, second = config.build(PROBLEM), config.build(PROBLEM)
    first.iterate()
    second.load_state_dict(deepcopy(first.state_dict()))
    assert replace(first.iterate()[1], values_s=None) == replace(second.iterate()[1], values_s=None)
    for weights, others in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(weights, others)
