"""Networks in numpy that score actions: an encoder and a head, of an actor or of Q-networks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import BoolArray
from irgym.policies.encoders import CandidateLayers, Encoded, Perceptron, PlainEncoder
from irgym.policies.graphs import GraphLayers
from irgym.policies.layers import FloatArray, IntArray, Linear, Weights
from irgym.policies.layout import ActionLayout

ENCODERS: Mapping[str, Callable[[Sequence[Weights], Mapping[str, Any]], PlainEncoder]] = {
    "mlp": Perceptron,
    "candidates": CandidateLayers,
    "graph": GraphLayers,
}
"""By the names that files have for them; those of all other networks are read by torch."""


class ScoringHead(Protocol):
    """From features to scores."""

    def __call__(self, encoded: Encoded, legal: BoolArray) -> FloatArray:
        """Return scores of shape [B, S, W + K].

        Args:
            encoded: Features of B states.
            legal: Of the same shape, or wider.

        Raises:
            ValueError: A mask has more candidates than its observation has rows, or fewer.
        """
        ...


class ActorHead:
    """Scores of an actor; see `irgym.networks.actor_critic.Actor`."""

    def __init__(self, networks: Sequence[Weights], layout: ActionLayout) -> None:
        self._shape = layout.segments, layout.width
        self._scores = Linear(networks, "scores")
        self._pointer = _Pointer(networks, layout) if layout.pointed else None

    def __call__(self, encoded: Encoded, legal: BoolArray) -> FloatArray:
        """Return the scores of the one network."""
        fixed = self._scores(encoded.states)[0].reshape(-1, *self._shape)
        if self._pointer is None:
            return fixed
        pointed = self._pointer(encoded, legal)
        fixed[:, 0] = self._pointer.with_endings(fixed[:, 0], encoded)
        scores = np.pad(fixed, ((0, 0), (0, 0), (0, pointed.shape[-1])))
        scores[:, 0, self._shape[1] :] = pointed
        return scores


class ValueHead:
    """The mean of the values of Q-networks; see `irgym.networks.q_network.QNetwork`."""

    def __init__(self, networks: Sequence[Weights], layout: ActionLayout) -> None:
        self._value = Linear(networks, "value")
        self._advantage = Linear(networks, "advantage")
        self._pointer = _Pointer(networks, layout) if layout.pointed else None

    def __call__(self, encoded: Encoded, legal: BoolArray) -> FloatArray:
        """Return the values, shape [B, 1, W + K]."""
        value = self._value(encoded.states).mean(axis=0)
        advantages = self._advantage(encoded.states).mean(axis=0)
        if self._pointer is None:
            mean = advantages.mean(axis=-1, keepdims=True)
            return (value + advantages - mean)[:, None]
        advantages = self._pointer.with_endings(advantages, encoded)
        advantages = np.concatenate([advantages, self._pointer(encoded, legal)], axis=-1)
        there = legal[:, 0, : advantages.shape[-1]]
        total = (advantages * there).sum(axis=-1, keepdims=True)
        mean = total / np.maximum(there.sum(axis=-1, keepdims=True), 1)
        return (value + advantages - mean.astype(np.float32))[:, None]


class _Pointer:
    """Scores candidates by their features and the state's; see `irgym.networks.candidates.PointerHead`."""

    def __init__(self, networks: Sequence[Weights], layout: ActionLayout) -> None:
        self._width = layout.width
        self._ends = layout.ends
        self._asks = Linear(networks, "pointer.state")
        self._asked = Linear(networks, "pointer.candidate")
        self._score = Linear(networks, "pointer.score")

    def __call__(self, encoded: Encoded, legal: BoolArray) -> FloatArray:
        """Return the mean of the networks' scores, padded with 0, shape [B, K]."""
        states, candidates, counts, _ = encoded
        assert candidates is not None
        check_rows(legal[:, 0, self._width :].sum(axis=-1), counts)
        scores = self._scores(np.repeat(self._asks(states), counts, axis=1), candidates)
        padded = np.zeros((len(counts), counts.max(initial=0)), dtype=np.float32)
        padded[np.arange(padded.shape[-1]) < counts[:, None]] = scores
        return padded

    def with_endings(self, fixed: FloatArray, encoded: Encoded) -> FloatArray:
        """Return scores of shape [B, W], those of endings by the unchanged state where it is encoded."""
        if encoded.unchanged is None:
            return fixed
        ending = self._scores(self._asks(encoded.states), encoded.unchanged)
        return np.where(self._ends, ending[:, None], fixed)

    def _scores(self, asked: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._score(np.tanh(asked + self._asked(candidates))).mean(axis=0)[:, 0]


def check_rows(listed: NDArray[np.int64], rows: IntArray) -> None:
    """Make sure that each state's mask has as many candidates as its observation has rows; both shape [B].

    Raises:
        ValueError: It has more, or fewer.
    """
    if not np.array_equal(listed, rows):
        row = int((listed != rows).nonzero()[0][0])
        raise ValueError(
            f"an observation has {rows[row]} candidates and its mask {listed[row]}: "
            "give the observation a row for each pair of the mask, in the same order"
        )


HEADS: Mapping[str, Callable[[Sequence[Weights], ActionLayout], ScoringHead]] = {
    "actor": ActorHead,
    "q": ValueHead,
    "q-ensemble": ValueHead,
}
"""By the names that files have for their networks."""


def members_of(weights: Weights, count: int) -> list[Weights]:
    """Return the weights of each network of an ensemble of so many."""
    starts = [f"members.{number}." for number in range(count)]
    return [
        {name.removeprefix(start): value for name, value in weights.items() if name.startswith(start)}
        for start in starts
    ]
