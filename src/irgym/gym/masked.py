"""Observations with their masks, for learners that read masks there, as TorchRL's and RLlib's do."""

from typing import Any

import gymnasium
import numpy as np


class MaskedObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows a dictionary of the observation and the `action_mask`, of which 1 says that an action applies.

    Args:
        env: An environment with `action_masks()`, such as `irgym/Loops-v0`.
        dtype: Type of the mask: truth values, shown as 8-bit integers, or float32, as RLlib reads it.
        observation: Key of the observation: RLlib's example of a masked module reads `observations`.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], dtype: Any = np.bool_, observation: str = "observation"
    ) -> None:
        super().__init__(env)
        whole = np.dtype(dtype) == np.bool_
        self._dtype: Any = np.int8 if whole else dtype
        self._key = observation
        self._unwrapped: Any = env.unwrapped
        actions: Any = env.action_space
        size = int(np.sum(getattr(actions, "nvec", getattr(actions, "n", 0))))
        masks = gymnasium.spaces.MultiBinary(size) if whole else gymnasium.spaces.Box(0, 1, (size,), dtype)
        self.observation_space = gymnasium.spaces.Dict(
            {observation: env.observation_space, "action_mask": masks}
        )

    def observation(self, observation: Any) -> dict[str, Any]:
        """Return an observation with its mask."""
        mask = self._unwrapped.action_masks().astype(self._dtype)
        return {self._key: observation, "action_mask": mask}
