"""Encoders in numpy: the same features as those of `irgym.networks`, of N networks, but for rounding."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from irgym.base.errors import IrgymError
from irgym.core.candidates import CandidateObservation
from irgym.policies.layers import (
    FloatArray,
    IntArray,
    Weights,
    hidden_layers,
    normalisation,
    side_by_side,
    summaries,
)


class Encoded(NamedTuple):
    """Features of a batch of states and of their candidates.

    Attributes:
        states: Shape [N, B, features].
        candidates: Shape [N, M, features of a candidate], state after state; None where there are none.
        counts: Shape [B]; the number of candidates of each state. They add up to M.
        unchanged: Shape [N, B, features of a candidate]; what ends an episode, as a candidate that changes
            nothing. None where endings are scored by the state's features.
    """

    states: FloatArray
    candidates: FloatArray | None
    counts: IntArray
    unchanged: FloatArray | None = None


class PlainEncoder(Protocol):
    """From observations to features."""

    def collate(self, observations: Sequence[Any]) -> Any:
        """Return the observations as one batch.

        Raises:
            IrgymError: They are not what the networks were trained on.
        """
        ...

    def encode(self, batch: Any) -> Encoded:
        """Return the features of a batch."""
        ...


class Perceptron:
    """Fully connected layers over observations that flatten to a fixed number of values."""

    def __init__(self, networks: Sequence[Weights], settings: Mapping[str, Any]) -> None:
        self._inputs = int(settings["inputs"])
        self._norm = normalisation(networks, "encoder.norm")
        self._layers = hidden_layers(networks, "encoder.layers", settings["activation"])

    def collate(self, observations: Sequence[Any]) -> FloatArray:
        """Return observations as rows."""
        return rows_of(observations, self._inputs)

    def encode(self, batch: FloatArray) -> Encoded:
        """Return the features of rows."""
        return Encoded(self._layers(self._norm(batch)), None, np.zeros(len(batch), dtype=np.int64))


class CandidateBatch(NamedTuple):
    """States and their candidates.

    Attributes:
        states: Shape [B, F].
        rows: Shape [M, G]; the candidates, those of the first state first.
        counts: Shape [B]; how many of these each state has.
    """

    states: FloatArray
    rows: FloatArray
    counts: IntArray


class CandidateLayers:
    """Fully connected layers over each candidate, and over the state with a summary of all of them."""

    def __init__(self, networks: Sequence[Weights], settings: Mapping[str, Any]) -> None:
        self._widths = int(settings["state"]), int(settings["candidate"])
        self._states = normalisation(networks, "encoder.norm")
        self._rows = normalisation(networks, "encoder.candidate_norm")
        self._each = hidden_layers(networks, "encoder.each", settings["activation"])
        self._whole = hidden_layers(networks, "encoder.whole", settings["activation"])

    def collate(self, observations: Sequence[Any]) -> CandidateBatch:
        """Return states and candidates."""
        return candidates_of(observations, self._widths)

    def encode(self, batch: CandidateBatch) -> Encoded:
        """Return the features of states and candidates."""
        states, rows, counts = batch
        each = self._each(self._rows(rows))
        number = np.log1p(counts, dtype=np.float32)[None, :, None]
        whole = self._whole(side_by_side([self._states(states), summaries(each, counts), number]))
        return Encoded(whole, each, counts)


def rows_of(observations: Sequence[Any], count: int) -> FloatArray:
    """Return observations of `count` values each as rows of one array.

    Raises:
        IrgymError: One has another number of values.
    """
    rows = [np.asarray(observation, dtype=np.float32).ravel() for observation in observations]
    width = next((len(row) for row in rows if len(row) != count), None)
    if width is not None:
        raise IrgymError(
            f"the policy takes observations of {count} values but was given {width}: "
            "use it with the observation space that it was trained on"
        )
    return np.concatenate(rows).reshape(len(rows), count)


def candidates_of(observations: Sequence[Any], widths: tuple[int, int]) -> CandidateBatch:
    """Return observations as states and candidates.

    Args:
        observations: What tasks showed.
        widths: The lengths of a state's vector and of a candidate's row.

    Raises:
        IrgymError: One has no candidates' rows, or other widths.
    """
    for observation in observations:
        if not isinstance(observation, CandidateObservation) or widths != (
            observation.state.size,
            observation.candidates.shape[-1],
        ):
            raise IrgymError(
                "the policy takes observations of {} values with candidates of {} and was given others: "
                "use it with the observation that it was trained on".format(*widths)
            )
    return CandidateBatch(
        np.stack([observation.state for observation in observations], dtype=np.float32),
        np.concatenate([observation.candidates for observation in observations], dtype=np.float32),
        np.array([len(observation.candidates) for observation in observations], dtype=np.int64),
    )
