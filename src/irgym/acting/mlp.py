"""Policies of multi-layer perceptrons without torch: they act at once, and wherever numpy is."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.acting.files import Content, Head, checked, read_arrays, restored
from irgym.acting.layout import ActionLayout
from irgym.acting.scoring import ScoringPolicy
from irgym.core.actions import BoolArray, Mask
from irgym.core.errors import IrgymError

FloatArray = NDArray[np.float32]

LIMIT = 10.0
"""Normalised inputs are clipped to this absolute value."""

ACTIVATIONS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "tanh": np.tanh,
    "relu": lambda rows: np.maximum(rows, np.float32(0.0)),
}


class MlpPolicy(ScoringPolicy):
    """An actor with the encoder `mlp`: the same scores as torch's but for rounding.

    Args:
        head: The actions and where the policy comes from.
        activation: One of `ACTIVATIONS`.
        weights: Those of the network, by torch's names.

    Attributes:
        finite: Whether all weights are finite numbers.
    """

    def __init__(self, head: Head, activation: str, weights: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(head.environment, head.targets)
        self._head = head
        self.finite = all(bool(np.isfinite(value).all()) for value in weights.values())
        self._activation = ACTIVATIONS[activation]
        layers = sorted({int(name.split(".")[2]) for name in weights if name.startswith("encoder.layers.")})
        self._layers = [_linear(weights, f"encoder.layers.{layer}") for layer in layers]
        self._scores = _linear(weights, "scores")
        self._norm = (
            (weights["encoder.norm.centre"], weights["encoder.norm.scale"])
            if "encoder.norm.centre" in weights
            else None
        )
        self._pairs: FloatArray | None = weights.get("pair_scores")
        self._inputs = len((self._layers or [self._scores])[0][0])

    @staticmethod
    def load(path: Path) -> "MlpPolicy | None":
        """Return the policy of a file; None for one of another network.

        Raises:
            StorageError: The file is missing, damaged, no policy, or of another format.
        """
        return restored(path, checked(path, "policy", read_arrays), _built)

    @property
    def layout(self) -> ActionLayout:
        """The meaning of the scores."""
        return self._head.layout

    @property
    def observation(self) -> str:
        """Name of the observation that it sees; empty: the task's default."""
        return self._head.observation

    @property
    def pair_scores(self) -> FloatArray | None:
        """What links slots; None where nothing does."""
        return self._pairs

    def check_observation(self, observation: Any) -> None:
        """Make sure that an observation has as many values as those of the training.

        Raises:
            IrgymError: It has not.
        """
        rows_of([observation], self._inputs)

    def scores(self, observations: Sequence[Any], masks: Sequence[Mask]) -> tuple[FloatArray, BoolArray]:
        """Return the scores of B states and what is legal there, both of shape [B, S, W].

        Raises:
            IrgymError: An observation has another number of values than those of the training.
        """
        rows = rows_of(observations, self._inputs)
        if self._norm is not None:
            centre, scale = self._norm
            rows = ((rows - centre) * scale).clip(-LIMIT, LIMIT)
        for weight, bias in self._layers:
            rows = self._activation(rows @ weight + bias)
        weight, bias = self._scores
        scores = (rows @ weight + bias).reshape(-1, self.layout.segments, self.layout.width)
        return scores, self.layout.legal(masks)


def _built(content: Content) -> MlpPolicy | None:
    """Return the policy of a file's content; None for one of another network."""
    encoder = content["encoder"]
    if content["network"] != "actor" or encoder["kind"] != "mlp":
        return None
    head = Head.of(content)
    return None if head.layout.pointed else MlpPolicy(head, encoder["activation"], content["weights"])


def rows_of(observations: Sequence[Any], count: int) -> FloatArray:
    """Return observations of `count` values each as rows of one array.

    Raises:
        IrgymError: One has another number of values.
    """
    rows = [np.asarray(one, dtype=np.float32).ravel() for one in observations]
    width = next((len(row) for row in rows if len(row) != count), None)
    if width is not None:
        raise IrgymError(
            f"the policy takes observations of {count} values but was given {width}: "
            "use it with the observation space that it was trained on"
        )
    return np.concatenate(rows).reshape(len(rows), count)


def _linear(weights: Mapping[str, NDArray[Any]], name: str) -> tuple[FloatArray, FloatArray]:
    """Return the weights of a linear layer, shape [inputs, outputs], and its biases."""
    return np.ascontiguousarray(weights[f"{name}.weight"].T), weights[f"{name}.bias"]
