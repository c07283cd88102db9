"""Wrappers of the JIT CSE gymnasium: a bonus for the best action, and normalised observations."""

import math
from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from irgym.envs.cse.jitcse.env import JitCseEnv
from irgym.envs.cse.jitcse.methods import COLUMNS, CompiledMethod, CompileFailed

OPTIMAL_BONUS = 0.05
SUBOPTIMAL_PENALTY = -0.01
NEUTRAL_PENALTY = -0.005

UNUSED = ("shared_const", "type_struct")
"""Columns that the original leaves out."""

_LEAST = {"cost_ex": 1.0, "cost_sz": 1.0}
_GREATEST = {"cost_ex": 80.0, "cost_sz": 54.0, "use_count": 567.0, "def_count": 189.0}
_LOGARITHMIC = {"use_wt_cnt": 14.309, "def_wt_cnt": 13.616}
_REST = {"distinct_locals": 5.0, "local_occurrences": 6.0, "enreg_count": 734.0}


class OptimalCseWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds `OPTIMAL_BONUS` to the reward of an action that gains as much as the best action.

    An action without effect on the score gets `NEUTRAL_PENALTY`; stopping while another action would gain
    gets `SUBOPTIMAL_PENALTY`. All actions are tried in order to know the best.
    """

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, and adjust the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not truncated and info["action_is_valid"]:
            reward = float(reward) + self._more(info)
        return observation, float(reward), terminated, truncated, info

    def _more(self, info: dict[str, Any]) -> float:
        previous: CompiledMethod = info["previous"]
        current: CompiledMethod = info["current"]
        if info["action"] is None:
            best = self._best(info["method_index"], previous, None)
            return SUBOPTIMAL_PENALTY if _less(best, previous.perf_score) else 0.0
        if math.isclose(current.perf_score, previous.perf_score):
            return NEUTRAL_PENALTY
        if current.perf_score < previous.perf_score:
            best = self._best(info["method_index"], previous, info["action"])
            return 0.0 if _less(best, current.perf_score) else OPTIMAL_BONUS
        return 0.0

    def _best(self, index: str, method: CompiledMethod, but: int | None) -> float:
        """Return the least score with one more candidate shared, candidate `but` aside."""
        compiler = cast(JitCseEnv, self.env.unwrapped).compiler
        best = math.inf
        for candidate in method.cse_candidates:
            if candidate.can_apply and candidate.index != but:
                try:
                    tried = compiler.compile(index, [*method.cses_chosen, candidate.index])
                except CompileFailed:
                    continue
                best = min(best, tried.perf_score)
        return best


class NormalizeFeaturesWrapper(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Scales observations to [0, 1] by the ranges of the original's training methods.

    Weighted counts are scaled by their logarithms. Values out of range are clipped.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        shape = cast(gymnasium.spaces.Box, env.observation_space).shape
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, shape, np.float32)
        greatest = {**_GREATEST, **_LOGARITHMIC, **_REST}
        self._least = np.array([_LEAST.get(name, 0.0) for name in COLUMNS], dtype=np.float32)
        self._range = np.array([greatest.get(name, 1.0) for name in COLUMNS], dtype=np.float32) - self._least
        self._logarithmic = np.array([name in _LOGARITHMIC for name in COLUMNS])

    def observation(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a scaled observation; rows without a candidate stay 0."""
        seen = np.where(self._logarithmic, np.log1p(observation), observation)
        return np.clip((seen - self._least) / self._range, 0.0, 1.0).astype(np.float32)


class RemoveFeaturesWrapper(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Leaves columns out of observations.

    Args:
        env: The environment.
        columns: Names of the columns.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], columns: Sequence[str] = UNUSED) -> None:
        super().__init__(env)
        self._kept = [place for place, name in enumerate(COLUMNS) if name not in columns]
        space = cast(gymnasium.spaces.Box, env.observation_space)
        low, high = space.low[:, self._kept], space.high[:, self._kept]
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)

    def observation(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return an observation without the columns."""
        return observation[:, self._kept]


def _less(first: float, second: float) -> bool:
    return first < second and not math.isclose(first, second)
