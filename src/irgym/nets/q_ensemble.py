"""Several Q-networks that decide together by the mean of their values."""

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from irgym.acting.layout import ActionLayout
from irgym.acting.mlp import LIMIT
from irgym.nets.candidates import CandidateBatch, Candidates, PointerHead, check_rows
from irgym.nets.encoders import Batch, Encoder, EncoderSpec, RunningNorm
from irgym.nets.q_network import QNetwork

Floats: TypeAlias = NDArray[np.float32]


class QEnsemble(nn.Module):
    """The mean of the values of networks that have learnt apart; for acting, not for learning.

    What they differ in, such as what each made of the noise of few data, cancels out (Anschel et al.,
    Averaged-DQN, arXiv 1611.01929). Over candidates all of them are computed at once, and by numpy: with
    layers as small as these most of torch's time is not spent on numbers.

    Args:
        spec: The encoder of each.
        layout: A layout of one segment.
        observation: Name of what the encoders read.
        members: How many networks.

    Attributes:
        members: The networks. Their weights must not change after the first use.
        layout: The layout.
    """

    kind = "q-ensemble"

    def __init__(
        self, spec: EncoderSpec, layout: ActionLayout, observation: str = "", members: int = 1
    ) -> None:
        super().__init__()
        self.spec = spec
        self.layout = layout
        self.members = nn.ModuleList(QNetwork(spec, layout, observation) for _ in range(members))

    @property
    def encoder(self) -> Encoder:
        """The first one's encoder; the others collate the same."""
        return self._networks[0].encoder

    @property
    def _networks(self) -> Sequence[QNetwork]:
        return cast(Sequence[QNetwork], self.members)

    @torch.inference_mode()
    def forward(self, batch: Batch, legal: Tensor | None = None) -> Tensor:
        """Return the values of all actions, shape [B, 1, W + K]; see `QNetwork.forward`."""
        if legal is None or not isinstance(self.encoder, Candidates):
            return torch.stack([one.forward(batch, legal) for one in self._networks]).mean(dim=0)
        return torch.as_tensor(self._stacked(cast(CandidateBatch, batch), legal.numpy()[:, 0]))[:, None]

    @cached_property
    def _stacked(self) -> "_Stacked":
        return _Stacked(self._networks)


class _Stacked:
    """Networks over candidates in numpy, side by side along the first axis, N.

    Args:
        networks: The networks, with the encoder `Candidates`.
    """

    def __init__(self, networks: Sequence[QNetwork]) -> None:
        encoders = [cast(Candidates, one.encoder) for one in networks]
        pointers = [cast(PointerHead, one.pointer) for one in networks]
        self._width = networks[0].layout.width
        self._rows = _norm([one.candidate_norm for one in encoders])
        self._states = _norm([one.norm for one in encoders])
        self._each = _sequence([one.each for one in encoders])
        self._whole = _sequence([one.whole for one in encoders])
        self._value = _Linear([one.value for one in networks])
        self._advantage = _Linear([one.advantage for one in networks])
        self._asks = _Linear([one.state for one in pointers])
        self._asked = _Linear([one.candidate for one in pointers])
        self._score = _Linear([one.score for one in pointers])

    def __call__(self, batch: CandidateBatch, legal: NDArray[np.bool_]) -> Floats:
        """Return the mean of the values, shape [B, W + K].

        Args:
            batch: B states with their candidates.
            legal: Shape [B, W + K], or wider.

        Raises:
            ValueError: A mask has more candidates than its observation has rows, or fewer.
        """
        states, rows, counts = (one.numpy() for one in batch)
        check_rows(legal[:, self._width :].sum(axis=-1), counts)
        each = self._each(self._rows(rows))
        own = _summaries(each, counts)
        number = np.broadcast_to(np.log1p(counts, dtype=np.float32)[:, None], (len(own), len(counts), 1))
        whole = self._whole(np.concatenate([self._states(states), own, number], axis=-1))
        asked = np.repeat(self._asks(whole), counts, axis=1)
        scores = self._score(np.tanh(asked + self._asked(each))).mean(axis=0)[:, 0]
        advantages = np.zeros((len(counts), self._width + counts.max(initial=0)), dtype=np.float32)
        advantages[:, : self._width] = self._advantage(whole).mean(axis=0)
        advantages[:, self._width :][np.arange(counts.max(initial=0)) < counts[:, None]] = scores
        there = legal[:, : advantages.shape[-1]]
        total = (advantages * there).sum(axis=-1, keepdims=True)
        mean = total / np.maximum(there.sum(axis=-1, keepdims=True), 1)
        return self._value(whole).mean(axis=0) + advantages - mean.astype(np.float32)


def _summaries(each: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the mean and the greatest of each state's rows, 0 where it has none, shape [N, B, 2 H]."""
    found = np.zeros((len(each), len(counts), 2 * each.shape[-1]), dtype=np.float32)
    some = counts > 0
    if some.any():
        begins = (counts.cumsum() - counts)[some]
        mean = np.add.reduceat(each, begins, axis=1) / counts[some, None].astype(np.float32)
        found[:, some] = np.concatenate([mean, np.maximum.reduceat(each, begins, axis=1)], axis=-1)
    return found


class _Linear:
    """Linear layers, one of each network; maps [N, R, inputs], or [R, inputs], to [N, R, outputs]."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self._weights = np.stack([one.weight.detach().numpy().T for one in layers])
        self._biases = np.stack([one.bias.detach().numpy()[None] for one in layers])

    def __call__(self, rows: Floats) -> Floats:
        return rows @ self._weights + self._biases


def _sequence(layers: Sequence[nn.Sequential]) -> Callable[[Floats], Floats]:
    """Return hidden layers, one sequence of each network, as a function of rows."""
    steps = [_step(side) for side in zip(*layers, strict=True)]
    return lambda rows: reduce(lambda found, step: step(found), steps, rows)


def _step(side: Sequence[nn.Module]) -> Callable[[Floats], Floats]:
    match side[0]:
        case nn.ReLU():
            return lambda rows: np.maximum(rows, np.float32(0))
        case nn.Tanh():
            return np.tanh
        case _:
            return _Linear(cast(Sequence[nn.Linear], side))


def _norm(norms: Sequence[RunningNorm | None]) -> Callable[[Floats], Floats]:
    """Return how inputs of shape [R, inputs] are normalised, to [N, R, inputs]."""
    there = [one for one in norms if one is not None]
    if not there:
        return lambda rows: np.broadcast_to(rows, (len(norms), *rows.shape))
    centres = np.stack([one.centre.numpy()[None] for one in there])
    scales = np.stack([one.scale.numpy()[None] for one in there])
    limit = np.float32(LIMIT)
    return lambda rows: np.clip((rows - centres) * scales, -limit, limit)
