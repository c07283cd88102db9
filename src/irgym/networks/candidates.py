"""Candidates in networks: an encoder of their features, and the head that scores them.

The candidates of a batch are concatenated, state after state, with their number for each state; only scores
are padded.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from irgym.base.errors import IrgymError
from irgym.core.actions import BoolArray
from irgym.core.candidates import CandidateObservation
from irgym.networks.encoders import Batch, Encoder, RunningNorm, hidden_layers, orthogonal_linear
from irgym.networks.ragged import Ragged
from irgym.policies.encoders import candidates_of
from irgym.policies.layout import ActionLayout
from irgym.policies.scorers import check_rows

CandidateBatch: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""States, shape [B, F]; their candidates, shape [M, G]; and how many of these each state has, shape [B]."""


class Encoded(NamedTuple):
    """Features of a batch of states and of their candidates.

    Attributes:
        states: Shape [B, features].
        candidates: Shape [M, candidate_features], state after state.
        counts: Shape [B]; the number of candidates of each state. They add up to M.
        unchanged: Shape [B, candidate_features]; what ends an episode, as a candidate that changes nothing.
            None where the head scores the endings from the state's features.
    """

    states: Tensor
    candidates: Tensor
    counts: Tensor
    unchanged: Tensor | None = None


class CandidateEncoder(Encoder):
    """An encoder that has features for each candidate too.

    Attributes:
        candidate_features: Length of a candidate's feature vector.
        no_op: Whether `encode` returns features of the unchanged state too, by which endings are scored.
    """

    candidate_features: int
    no_op: bool = False

    @abstractmethod
    def encode(self, batch: Batch) -> Encoded:
        """Return the features of the states and of their candidates, those in the order of the masks."""

    def forward(self, batch: Batch) -> Tensor:
        """Return the features of the states, shape [B, features]."""
        return self.encode(batch).states


@dataclass(frozen=True)
class CandidateSpec:
    """Fully connected layers over each candidate, and over the state with a summary of all of them.

    Attributes:
        state: F, the length of the state's vector.
        candidate: G, the length of a candidate's row.
        hidden: Widths of the hidden layers, of both.
        activation: One of `ACTIVATIONS`.
        normalise: Whether inputs are brought to mean 0 and deviation 1, by running statistics.
        kind: Name in `ENCODERS`.
    """

    state: int
    candidate: int
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    normalise: bool = False
    kind: str = "candidates"

    @classmethod
    def suited_to(
        cls, observation: Any, hidden: Sequence[int], activation: str, *, normalise: bool = False
    ) -> "CandidateSpec":
        """Return a specification for observations of this one's widths.

        Raises:
            IrgymError: It has no candidates, or there is no hidden layer.
        """
        if not isinstance(observation, CandidateObservation) or not hidden:
            raise IrgymError(
                "the encoder candidates reads a CandidateObservation and needs a hidden layer: change "
                "encoder or hidden"
            )
        widths = len(observation.state), observation.candidates.shape[1]
        return cls(*widths, tuple(hidden), activation, normalise)

    def build(self) -> "Candidates":
        """Return a freshly initialised encoder."""
        return Candidates(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `spec_from_dict` reads back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "CandidateSpec":
        """Return the specification that `to_dict` wrote."""
        hidden = tuple(values["hidden"])
        return cls(values["state"], values["candidate"], hidden, values["activation"], values["normalise"])


class Candidates(CandidateEncoder):
    """Encodes each candidate with the same weights; their mean, maximum and number go to the state's layers.

    The order of the candidates changes nothing but the order of their features (Zaheer et al., "Deep Sets",
    arXiv 1703.06114).
    """

    def __init__(self, spec: CandidateSpec) -> None:
        super().__init__()
        self.features = self.candidate_features = spec.hidden[-1]
        self._widths = spec.state, spec.candidate
        self.norm = RunningNorm(spec.state) if spec.normalise else None
        self.candidate_norm = RunningNorm(spec.candidate) if spec.normalise else None
        self.each = hidden_layers((spec.candidate, *spec.hidden), spec.activation)
        self.whole = hidden_layers((spec.state + 2 * spec.hidden[-1] + 1, *spec.hidden), spec.activation)

    def collate(self, observations: Sequence[Any]) -> CandidateBatch:
        """Return the observations as one batch.

        Raises:
            IrgymError: One of them has no candidates' rows, or other widths.
        """
        states, rows, counts = candidates_of(observations, self._widths)
        return torch.as_tensor(states), torch.as_tensor(rows), torch.as_tensor(counts)

    def separate(self, batch: CandidateBatch) -> list[CandidateObservation]:
        """Return the observations."""
        states, rows, counts = batch
        parts = Ragged(rows, counts).separate()
        return [
            CandidateObservation(state.numpy(), part.numpy())
            for state, part in zip(states, parts, strict=True)
        ]

    def join(self, batches: Sequence[CandidateBatch]) -> CandidateBatch:
        """Return the observations of all batches as one."""
        states, rows, counts = (torch.cat(parts) for parts in zip(*batches, strict=True))
        return states, rows, counts

    def select(self, batch: CandidateBatch, rows: Tensor | slice) -> CandidateBatch:
        """Return some observations."""
        states, candidates, counts = batch
        chosen = Ragged(candidates, counts).select(rows)
        return states[rows], chosen.rows, chosen.counts

    def encode(self, batch: CandidateBatch) -> Encoded:
        """Return the features of the states and of their candidates."""
        states, rows, counts = batch
        if self.norm is not None and self.candidate_norm is not None:
            states, rows = self.norm.forward(states), self.candidate_norm.forward(rows)
        each = cast(Tensor, self.each(rows))
        own, number = Ragged(each, counts), counts[:, None].log1p()
        whole = cast(Tensor, self.whole(torch.cat([states, own.mean(), own.greatest(), number], dim=-1)))
        return Encoded(whole, each, counts)

    def adapt(self, batch: CandidateBatch) -> None:
        """Update the input statistics, if inputs are normalised."""
        states, rows, _ = batch
        if self.norm is not None and self.candidate_norm is not None:
            self.norm.adapt(states)
            self.candidate_norm.adapt(rows)


class PointerHead(nn.Module):
    """Scores each candidate independently, by its features and those of its state.

    score = w . tanh(A state + B candidate), as in pointer networks (Vinyals et al., arXiv 1506.03134).

    Args:
        encoder: Encoder of the features.
        ends: Shape [W]; which of the fixed alternatives end the episode.
        gain: Gain of the last layer's initial weights.
    """

    ends: Tensor

    def __init__(self, encoder: CandidateEncoder, ends: BoolArray, gain: float) -> None:
        super().__init__()
        self.register_buffer("ends", torch.as_tensor(ends), persistent=False)
        width = encoder.candidate_features
        self.state = orthogonal_linear(encoder.features, width, gain=1.0)
        self.candidate = orthogonal_linear(encoder.candidate_features, width, gain=1.0)
        self.score = orthogonal_linear(width, 1, gain)

    def forward(self, encoded: Encoded) -> Tensor:
        """Return scores, padded with 0, shape [B, greatest number of candidates]."""
        states, candidates, counts, _ = encoded
        scores = self._scores(cast(Tensor, self.state(states)).repeat_interleave(counts, dim=0), candidates)
        there = torch.arange(int(counts.max()), device=counts.device) < counts[:, None]
        return scores.new_zeros(there.shape).masked_scatter(there, scores)

    def _scores(self, asked: Tensor, candidates: Tensor) -> Tensor:
        return cast(Tensor, self.score(torch.tanh(asked + self.candidate(candidates))))[:, 0]

    def beside(self, fixed: Tensor, encoded: Encoded, legal: Tensor | None = None) -> Tensor:
        """Append the scores of K candidates to those of the fixed alternatives.

        Where the unchanged state is encoded like a candidate, its score becomes that of each ending.

        Args:
            fixed: Shape [B, S, W].
            encoded: The features of B states and of their candidates.
            legal: Shape [B, S, W + K], or wider, where the masks are at hand: checked against the features.

        Returns:
            Shape [B, S, W + K]; 0 in segments other than the first.

        Raises:
            ValueError: A mask has more candidates than its observation has rows, or fewer.
        """
        if legal is not None:
            listed = legal[:, 0, fixed.shape[-1] :].sum(dim=-1)
            check_rows(listed.numpy(force=True), encoded.counts.numpy(force=True))
        pointed = self.forward(encoded)[:, None]
        if encoded.unchanged is not None:
            ending = self._scores(cast(Tensor, self.state(encoded.states)), encoded.unchanged)
            ends = functional.pad(self.ends[None], (0, 0, 0, fixed.shape[1] - 1))
            fixed = torch.where(ends, ending[:, None, None], fixed)
        return torch.cat([fixed, functional.pad(pointed, (0, 0, 0, fixed.shape[1] - 1))], dim=-1)


def pointer_for(encoder: Encoder, layout: ActionLayout, gain: float = 0.01) -> PointerHead | None:
    """Return the head for the candidates of a layout; None if it has none.

    Raises:
        IrgymError: The encoder has no features for them, or scores endings as one and there are none.
    """
    if not layout.pointed:
        if isinstance(encoder, CandidateEncoder) and encoder.no_op:
            raise IrgymError("these actions name no candidates for a no-op to be among: leave no_op out")
        return None
    if not isinstance(encoder, CandidateEncoder):
        raise IrgymError(
            "these actions name candidates that the observation or its encoder does not show: observe a "
            "CandidateObservation, and leave encoder empty"
        )
    return PointerHead(encoder, layout.ends, gain)
