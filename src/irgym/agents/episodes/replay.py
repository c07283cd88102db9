"""Prioritised experience replay (Schaul et al., arXiv 1511.05952) of n-step transitions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from irgym.agents.episodes.trajectories import Trajectories
from irgym.core.actions import BoolArray
from irgym.networks.encoders import Batch, Encoder
from irgym.policies.layout import IntArray, with_candidates

FloatArray = NDArray[np.float32]


class SumTree:
    """Binary tree of the sums of non-negative weights, for sampling in proportion to them in log time.

    Node 1 is the root, the children of node i are 2i and 2i + 1, and the leaves are the weights.
    """

    def __init__(self, capacity: int) -> None:
        self.leaves = 1 << (capacity - 1).bit_length()
        self.nodes = np.zeros(2 * self.leaves)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.nodes[1])

    def __getitem__(self, places: IntArray) -> NDArray[np.float64]:
        return self.nodes[self.leaves + places]

    def __setitem__(self, places: IntArray, weights: NDArray[np.float64] | float) -> None:
        """Set weights; a repeated place gets one of its weights."""
        nodes = self.leaves + places
        self.nodes[nodes] = weights
        while nodes[0] > 1:
            nodes = nodes >> 1
            self.nodes[nodes] = self.nodes[2 * nodes] + self.nodes[2 * nodes + 1]

    def find(self, masses: NDArray[np.float64]) -> IntArray:
        """Return where the running sum of the weights passes each mass, from 0 up to but without `total`."""
        nodes = np.ones(len(masses), dtype=np.int64)
        masses = masses.copy()
        for _ in range(self.leaves.bit_length() - 1):
            left = self.nodes[2 * nodes]
            # Rounding may leave a mass beyond the left sum although the right one is empty.
            right = (masses >= left) & (self.nodes[2 * nodes + 1] > 0)
            masses -= np.where(right, left, 0.0)
            nodes = 2 * nodes + right
        return nodes - self.leaves


@dataclass(frozen=True)
class Transitions:
    """A batch of n-step transitions.

    Attributes:
        observations: Batch of B rows.
        legal: Shape [B, 1, F + K], with up to K candidates in these states.
        choices: Shape [B]; the flat actions taken.
        rewards: Shape [B]; discounted sum of the rewards until the next state.
        discounts: Shape [B]; discount of the next state's value; 0 where there is no next state.
        next_observations: Batch of B rows; arbitrary where the discount is 0.
        next_legal: Shape [B, 1, F + K], with up to K candidates in the next states.
        weights: Shape [B]; importance weights, the greatest being 1.
        places: Shape [B]; places of the transitions in the replay.
    """

    observations: Batch
    legal: Tensor
    choices: Tensor
    rewards: Tensor
    discounts: Tensor
    next_observations: Batch
    next_legal: Tensor
    weights: Tensor
    places: IntArray


class Replay:
    """A ring buffer of the newest `capacity` steps.

    The steps of an episode lie side by side, so the state n steps later is a place in the ring too:
    each observation is kept once. A later step is never overwritten before an earlier one. All candidates of
    a state are legal, so that of these their number is kept.

    Attributes:
        capacity: Number of steps.
        size: Number of steps held.
    """

    def __init__(self, capacity: int, actions: int, encoder: Encoder, alpha: float) -> None:
        self.capacity = capacity
        self.size = 0
        self._encoder = encoder
        self._alpha = alpha
        self._head = 0
        self._observations: list[Any] = []
        self._legal: BoolArray = np.zeros((capacity, 1, actions), dtype=np.bool_)
        self._candidates: IntArray = np.zeros(capacity, dtype=np.int64)
        self._choices: IntArray = np.zeros(capacity, dtype=np.int64)
        self._rewards: FloatArray = np.zeros(capacity, dtype=np.float32)
        self._discounts: FloatArray = np.zeros(capacity, dtype=np.float32)
        self._next: IntArray = np.zeros(capacity, dtype=np.int64)
        self._tree = SumTree(capacity)
        self._greatest = 1.0

    def add(self, trajectories: Trajectories, n: int, gamma: float, errors: FloatArray | None = None) -> None:
        """Add all steps as n-step transitions.

        Args:
            trajectories: M steps.
            n: Steps between the two states of a transition.
            gamma: Discount.
            errors: Shape [M]; temporal-difference errors, as `prioritise` takes them. Without them the steps
                get the greatest priority seen so far.
        """
        order = np.lexsort((trajectories.step, trajectories.episode))[-self.capacity :]
        rewards, ahead = n_step(trajectories, order, n, gamma)
        observations = self._encoder.separate(trajectories.observations)
        places = (self._head + np.arange(len(order))) % self.capacity
        for place, row in zip(places.tolist(), order.tolist(), strict=True):
            if place < len(self._observations):
                self._observations[place] = observations[row]
            else:
                self._observations.append(observations[row])
        fixed = self._legal.shape[-1]
        self._legal[places] = trajectories.legal[order, :, :fixed]
        self._candidates[places] = trajectories.legal[order, 0, fixed:].sum(axis=-1)
        self._choices[places] = trajectories.choices[order, 0]
        self._rewards[places] = rewards
        self._discounts[places] = np.where(ahead > 0, gamma**n, 0.0)
        self._next[places] = (places + ahead) % self.capacity
        if errors is None:
            self._tree[places] = self._greatest**self._alpha
        else:
            self.prioritise(places, errors[order])
        self._head = int((self._head + len(order)) % self.capacity)
        self.size = min(self.capacity, self.size + len(order))

    def sample(self, count: int, beta: float, rng: np.random.Generator) -> Transitions:
        """Draw transitions in proportion to priority ** alpha, one from each of `count` equal shares.

        Args:
            count: B.
            beta: Exponent of the importance weights (equation 1 and section 3.4 of the paper).
            rng: Source of randomness.
        """
        total = self._tree.total
        places = self._tree.find((np.arange(count) + rng.random(count)) * (total / count))
        weights = (self._tree[places] / total * self.size) ** -beta
        following = self._next[places]
        return Transitions(
            observations=self._batch(places),
            legal=self._legal_at(places),
            choices=torch.as_tensor(self._choices[places]),
            rewards=torch.as_tensor(self._rewards[places]),
            discounts=torch.as_tensor(self._discounts[places]),
            next_observations=self._batch(following),
            next_legal=self._legal_at(following),
            weights=torch.as_tensor((weights / weights.max()).astype(np.float32)),
            places=places,
        )

    def _batch(self, places: IntArray) -> Batch:
        return self._encoder.collate([self._observations[place] for place in places.tolist()])

    def _legal_at(self, places: IntArray) -> Tensor:
        legal, counts = self._legal[places], self._candidates[places]
        return torch.as_tensor(with_candidates(legal, counts) if counts.any() else legal)

    def prioritise(self, places: IntArray, errors: FloatArray) -> None:
        """Set the priorities to the absolute temporal-difference errors."""
        priorities = np.abs(errors).astype(np.float64) + 1e-6
        self._greatest = max(self._greatest, float(priorities.max()))
        self._tree[places] = priorities**self._alpha

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors and plain values."""
        held = slice(0, self.size)
        return {
            "size": self.size,
            "head": self._head,
            "greatest": self._greatest,
            "observations": self._encoder.collate(self._observations) if self.size else None,
            "legal": torch.as_tensor(self._legal[held]),
            "candidates": torch.as_tensor(self._candidates[held]),
            "choices": torch.as_tensor(self._choices[held]),
            "rewards": torch.as_tensor(self._rewards[held]),
            "discounts": torch.as_tensor(self._discounts[held]),
            "next": torch.as_tensor(self._next[held]),
            "nodes": torch.as_tensor(self._tree.nodes),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`, exactly."""
        self.size, self._head, self._greatest = state["size"], state["head"], state["greatest"]
        self._observations = self._encoder.separate(state["observations"]) if self.size else []
        for name in ("legal", "candidates", "choices", "rewards", "discounts", "next"):
            getattr(self, f"_{name}")[: self.size] = state[name].numpy()
        self._tree.nodes = state["nodes"].numpy().copy()


def n_step(trajectories: Trajectories, order: IntArray, n: int, gamma: float) -> tuple[FloatArray, IntArray]:
    """Return the rewards of n-step transitions, and how many steps ahead their next state is.

    Args:
        trajectories: M steps.
        order: Rows sorted by episode and step.
        n: Number of steps.
        gamma: Discount.

    Returns:
        Both of the shape of `order`; where the episode ends within n steps, 0 steps ahead.
    """
    episode = trajectories.episode[order]
    rewards = trajectories.rewards[order]
    total = rewards.copy()
    for ahead in range(1, min(n, len(order))):
        same = episode[:-ahead] == episode[ahead:]
        total[:-ahead] += np.where(same, np.float32(gamma**ahead) * rewards[ahead:], 0.0)
    steps = np.zeros(len(order), dtype=np.int64)
    if n < len(order):
        steps[:-n] = np.where(episode[:-n] == episode[n:], n, 0)
    return total, steps


def first_errors(
    trajectories: Trajectories, taken: FloatArray, best: FloatArray, n: int, gamma: float, scale: float
) -> FloatArray:
    """Return the n-step temporal-difference errors of steps, from the values of their actor.

    Ape-X (arXiv 1803.00933) derives initial priorities from them.

    Args:
        trajectories: M steps.
        taken: Shape [M]; the value of the action taken.
        best: Shape [M]; the greatest value of a legal action.
        n: Number of steps.
        gamma: Discount.
        scale: Factor on the rewards.

    Returns:
        Shape [M].
    """
    order = np.lexsort((trajectories.step, trajectories.episode))
    rewards, ahead = n_step(trajectories, order, n, gamma)
    following = best[order[np.arange(len(order)) + ahead]]
    bootstrapped = np.where(ahead > 0, np.float32(gamma**n) * following, 0.0)
    errors = np.empty(len(order), dtype=np.float32)
    errors[order] = scale * rewards + bootstrapped - taken[order]
    return errors
