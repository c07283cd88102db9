"""Trajectories: the steps of episodes as arrays, with selection, concatenation and serialisation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from irgym.core.actions import BoolArray
from irgym.networks.encoders import Batch, Encoder
from irgym.policies.layout import IntArray, padded_to

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class Trajectories:
    """The M steps of N episodes, in any order. S and W are the layout's segments and width.

    An episode ends in a terminal state or at its task's horizon, where its reward is paid: there is
    nothing to bootstrap from after its last step.

    Attributes:
        observations: The encoder's batch of M rows.
        legal: Shape [M, S, W], or [M, S, W + K] with up to K candidates.
        choices: Shape [M, S].
        policy_logp: Shape [M]; log-probabilities under the policy at the time.
        behaviour_logp: Shape [M]; log-probabilities under the sampling distribution.
        rewards: Shape [M].
        episode: Shape [M]; from 0 to N - 1.
        step: Shape [M]; from 0.
        privileged: Shape [M, K]; the critic's additional inputs. K is 0 unless the rollout requests them.
    """

    observations: Batch
    legal: BoolArray
    choices: IntArray
    policy_logp: FloatArray
    behaviour_logp: FloatArray
    rewards: FloatArray
    episode: IntArray
    step: IntArray
    privileged: FloatArray

    def __len__(self) -> int:
        return len(self.episode)

    @property
    def episodes(self) -> int:
        """N, the number of episodes."""
        return int(self.episode.max()) + 1 if len(self) else 0

    def grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return per-step values as an array of shape [longest episode, N], 0 after an episode's end."""
        padded = np.zeros((int(self.step.max()) + 1, self.episodes), dtype=values.dtype)
        padded[self.step, self.episode] = values
        return padded

    def scripts(self) -> list[IntArray]:
        """Return the choices of each episode in order, N arrays of shape [steps, S]."""
        order = np.lexsort((self.step, self.episode))
        ends = np.cumsum(np.bincount(self.episode, minlength=self.episodes))
        return np.split(self.choices[order], ends[:-1])

    def returns(self) -> NDArray[np.float64]:
        """Return the sum of the rewards of each episode, shape [N]."""
        returns = np.zeros(self.episodes)
        np.add.at(returns, self.episode, self.rewards)
        return returns

    def returns_to_go(self, gamma: float) -> FloatArray:
        """Return the discounted sum of the rewards from each step on, shape [M]."""
        to_go = self.grid(self.rewards).astype(np.float64)
        for t in reversed(range(len(to_go) - 1)):
            to_go[t] += gamma * to_go[t + 1]
        return to_go[self.step, self.episode].astype(np.float32)


ARRAYS = ("legal", "choices", "policy_logp", "behaviour_logp", "rewards", "episode", "step", "privileged")


def join_legal(parts: Sequence[BoolArray]) -> BoolArray:
    """Return the legality of all steps as one array, padded to the widest part."""
    width = max(part.shape[-1] for part in parts)
    return np.concatenate([padded_to(part, width) for part in parts])


def select_episodes(trajectories: Trajectories, episodes: IntArray, encoder: Encoder) -> Trajectories:
    """Return the given episodes, renumbered in that order."""
    numbers = np.full(trajectories.episodes, -1, dtype=np.int64)
    numbers[episodes] = np.arange(len(episodes))
    chosen = select_steps(trajectories, np.flatnonzero(numbers[trajectories.episode] >= 0), encoder)
    return replace(chosen, episode=numbers[chosen.episode])


def select_steps(trajectories: Trajectories, rows: IntArray, encoder: Encoder) -> Trajectories:
    """Return the given steps; episode numbers stay."""
    arrays = {name: getattr(trajectories, name)[rows] for name in ARRAYS}
    return Trajectories(encoder.select(trajectories.observations, torch.as_tensor(rows)), **arrays)


def join(older: Trajectories, newer: Trajectories, encoder: Encoder) -> Trajectories:
    """Return the episodes of both, the older first."""
    arrays = {name: np.concatenate([getattr(older, name), getattr(newer, name)]) for name in ARRAYS[1:]}
    arrays["legal"] = join_legal([older.legal, newer.legal])
    arrays["episode"][len(older) :] += older.episodes
    return Trajectories(encoder.join([older.observations, newer.observations]), **arrays)


def trajectories_state(trajectories: Trajectories) -> dict[str, Any]:
    """Return everything as tensors, for a checkpoint."""
    arrays = {name: torch.as_tensor(getattr(trajectories, name)) for name in ARRAYS}
    return {"observations": trajectories.observations, **arrays}


def trajectories_from_state(state: dict[str, Any]) -> Trajectories:
    """Return the trajectories of a state from `trajectories_state`."""
    return Trajectories(state["observations"], **{name: state[name].numpy() for name in ARRAYS})
