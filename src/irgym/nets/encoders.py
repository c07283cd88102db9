"""Encoders: from observations, of whatever shape, to feature vectors.

A learner passes a `Batch` on without looking into it: only the encoder that made it knows what it is.
To add an encoder: a specification (a frozen dataclass), a module, and an entry in `ENCODERS`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from irgym.core.errors import IrgymError

Batch: TypeAlias = Any

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Encoder(nn.Module, ABC):
    """Maps a batch of observations to features of shape [B, features].

    Attributes:
        features: Length of a feature vector.
    """

    features: int

    @abstractmethod
    def collate(self, observations: Sequence[Any]) -> Batch:
        """Return the observations as one batch.

        Raises:
            IrgymError: They are not what this encoder was made for.
        """

    @abstractmethod
    def separate(self, batch: Batch) -> list[Any]:
        """Return the observations of a batch: the inverse of `collate`."""

    @abstractmethod
    def join(self, batches: Sequence[Batch]) -> Batch:
        """Return the rows of all batches, one after the other, as one batch."""

    @abstractmethod
    def select(self, batch: Batch, rows: Tensor | slice) -> Batch:
        """Return some rows of a batch."""

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return features, shape [B, features]."""


class EncoderSpec(Protocol):
    """What an encoder is built from, and what a policy file records of it."""

    @property
    def sort(self) -> str:
        """Name in `ENCODERS`."""
        ...

    def build(self) -> Encoder:
        """Return a freshly initialised encoder."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `spec_from_dict` reads back."""
        ...


@dataclass(frozen=True)
class MlpSpec:
    """A multi-layer perceptron over flat vectors.

    Attributes:
        inputs: Length of an observation.
        hidden: Widths of the hidden layers.
        activation: One of `ACTIVATIONS`.
        sort: Name in `ENCODERS`.
    """

    inputs: int
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    sort: str = "mlp"

    def build(self) -> "Mlp":
        """Return a freshly initialised encoder."""
        return Mlp(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `spec_from_dict` reads back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "MlpSpec":
        """Return the specification that `to_dict` wrote."""
        return MlpSpec(values["inputs"], tuple(values["hidden"]), values["activation"])


class Mlp(Encoder):
    """Fully connected layers over observations that flatten to a fixed number of values.

    Weights are orthogonal with gain sqrt(2), biases 0 (Andrychowicz et al., arXiv 2006.05990).
    """

    def __init__(self, spec: MlpSpec) -> None:
        super().__init__()
        self.inputs = spec.inputs
        self.features = spec.hidden[-1] if spec.hidden else spec.inputs
        layers: list[nn.Module] = []
        for fan_in, fan_out in zip((spec.inputs, *spec.hidden), spec.hidden, strict=False):
            layers += [orthogonal_linear(fan_in, fan_out, gain=2**0.5), ACTIVATIONS[spec.activation]()]
        self.layers = nn.Sequential(*layers)

    def collate(self, observations: Sequence[Any]) -> Tensor:
        """Return a float32 tensor of shape [B, inputs].

        Raises:
            IrgymError: An observation has another number of values.
        """
        rows = [np.asarray(observation, dtype=np.float32).ravel() for observation in observations]
        width = next((len(row) for row in rows if len(row) != self.inputs), None)
        if width is not None:
            raise IrgymError(
                f"the policy takes observations of {self.inputs} values but was given {width}: "
                "use it with the observation space that it was trained on"
            )
        return torch.as_tensor(np.concatenate(rows).reshape(len(rows), self.inputs))

    def separate(self, batch: Tensor) -> list[NDArray[np.float32]]:
        """Return the rows."""
        return list(batch.numpy())

    def join(self, batches: Sequence[Tensor]) -> Tensor:
        """Return the rows of all batches as one."""
        return torch.cat(list(batches))

    def select(self, batch: Tensor, rows: Tensor | slice) -> Tensor:
        """Return some rows."""
        return batch[rows]

    def forward(self, batch: Tensor) -> Tensor:
        """Return features, shape [B, features]."""
        return cast(Tensor, self.layers(batch))


def orthogonal_linear(fan_in: int, fan_out: int, gain: float) -> nn.Linear:
    """Return a linear layer with orthogonal weights of that gain and no bias to begin with."""
    layer = nn.Linear(fan_in, fan_out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


ENCODERS: dict[str, type[MlpSpec]] = {"mlp": MlpSpec}


def spec_from_dict(values: dict[str, Any]) -> EncoderSpec:
    """Return the specification that `to_dict` wrote.

    Raises:
        IrgymError: There is no such encoder here.
    """
    sort = values["sort"]
    if sort not in ENCODERS:
        raise IrgymError(
            f"the policy's encoder {sort!r} does not exist here: install the version that made it"
        )
    return ENCODERS[sort].from_dict(values)


def spec_for(observation: Any, hidden: Sequence[int], activation: str) -> EncoderSpec:
    """Return the specification of the encoder that suits observations like this one."""
    return MlpSpec(int(np.asarray(observation).size), tuple(hidden), activation)
