"""Observations with their masks, for learners that read masks there."""

import gymnasium
import numpy as np
import pytest

import irgym  # noqa: F401  (registers)
from irgym.core.cost import Measurement, Outcome
from irgym.gym.masked import MaskedObservation


class Invented:
    """One cost for everything."""

    def evaluate(self, jobs):
        return [Measurement(Outcome.OK, (1000.0,)) for _ in jobs]


@pytest.mark.parametrize("dtype", [np.bool_, np.float32])
def test_the_mask_is_that_of_the_state(dtype):
    inner = gymnasium.make("irgym/Loops-v0", programs=["loops://mm/8x8x8"], evaluator=Invented())
    env = MaskedObservation(inner, dtype)
    seen, info = env.reset(seed=0)
    for _ in range(5):
        assert env.observation_space.contains(seen)
        assert seen["action_mask"].astype(bool).tolist() == info["action_mask"].tolist()
        seen, *_, info = env.step(int(seen["action_mask"].argmax()))
    env.close()
