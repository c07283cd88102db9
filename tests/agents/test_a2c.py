from dataclasses import fields, replace

import dials
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainings import learns

from irgym.agents import AGENTS
from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.episodes.advantages import advantages_and_returns
from irgym.base.errors import IrgymError

LEARNS = A2CConfig(iterations=150, episodes=64, lr=5e-3, entropy=0.2, hidden=(64, 64))
VARIANTS = {
    "plain": LEARNS,
    "n-step": replace(LEARNS, n_step=3, gae_lambda=1.0),
    "adam": replace(LEARNS, optimiser="adam", lr=1e-2, shared=True),
    "flat": replace(LEARNS, actions="flat", lr=3e-3, entropy=0.02),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_learns_the_dials(name):
    problem = dials.problem(dials.CODES[7::30])
    assert learns(VARIANTS[name], problem, 0.9 * dials.BEST_RETURN)


@given(st.integers(1, 7), st.integers(1, 8), st.integers(0, 1000), st.sampled_from([0.0, 0.8, 1.0]))
@settings(max_examples=60, deadline=None)
def test_n_step_advantages_equal_the_sums_written_out(horizon, n, seed, lam):
    rng = np.random.default_rng(seed)
    gamma = 0.9
    rewards, values = rng.normal(size=(2, horizon, 1)).astype(np.float32)
    advantages, targets = advantages_and_returns(rewards, values, np.ones_like(rewards), gamma, lam, n)
    ahead = np.append(values[:, 0], 0.0)
    deltas = rewards[:, 0] + gamma * ahead[1:] - ahead[:-1]
    for t in range(horizon):
        end = min(t + n, horizon)
        expected = sum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, end))
        assert advantages[t, 0] == pytest.approx(expected, abs=1e-4)
        if lam == 1.0:
            returns = sum(gamma ** (k - t) * rewards[k, 0] for k in range(t, end))
            assert targets[t, 0] == pytest.approx(returns + gamma ** (end - t) * ahead[end], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episodes": 0}, "episodes of A2C is 0"),
        ({"n_step": 0}, "n_step of A2C"),
        ({"lr": 0.0}, "lr of A2C"),
        ({"hidden": (0,)}, "hidden of A2C"),
        ({"activation": "sine"}, "no activation 'sine'"),
        ({"shared": True, "value_features": True}, "value_features need a separate"),
        ({"value_features": True}, "set value_features to false"),
    ],
)
def test_senseless_values_are_refused(change, message):
    with pytest.raises(IrgymError, match=message):
        replace(A2CConfig(), **change).build(dials.problem())


def test_it_is_found_by_name_and_has_no_field_of_ppo():
    assert AGENTS.load("a2c") is A2CConfig
    assert not {"clip", "epochs", "minibatch", "epsilon", "reuse"} & {
        field.name for field in fields(A2CConfig)
    }
