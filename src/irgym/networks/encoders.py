"""Encoders: from observations, of whatever shape, to feature vectors.

A `Batch` is opaque to learners: only the encoder that made it knows its structure.
To add an encoder: a specification (a frozen dataclass), a module, and an entry in `ENCODERS`; other
packages add theirs through the entry-point group `irgym.encoders`. Observations that are not plain arrays
name the encoder that they are made for (`Encodable`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Protocol, Self, TypeAlias, cast, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from irgym.base.errors import IrgymError
from irgym.base.registry import Registry
from irgym.policies.encoders import rows_of
from irgym.policies.layers import LIMIT

Batch: TypeAlias = Any
"""Tensors, alone or in tuples, lists and dictionaries, which learners move between devices."""

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


@runtime_checkable
class Encodable(Protocol):
    """An observation that names its encoder; any other one is encoded as a flat vector."""

    @property
    def encoder(self) -> str:
        """Name in `ENCODERS`."""
        ...


class Encoder(nn.Module, ABC):
    """Maps a batch of observations to features of shape [B, features].

    Attributes:
        features: Length of a feature vector.
        observation: Name of the observation that it reads, as `Task.observe` takes it; empty: the default.
    """

    features: int
    observation: str = ""

    @abstractmethod
    def collate(self, observations: Sequence[Any]) -> Batch:
        """Return the observations as one batch.

        Raises:
            IrgymError: This encoder cannot read them.
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

    def adapt(self, batch: Batch) -> None:
        """Update the statistics that normalise inputs with a rollout; by default there are none.

        Learners call it once for each rollout, after learning from it.
        """
        del batch

    def hide(self, batch: Batch, share: float, generator: torch.Generator) -> Batch:
        """Return a batch in which each kind of input is 0 throughout an observation, with some probability.

        Args:
            batch: The batch.
            share: The probability.
            generator: Random generator of the choices.

        Raises:
            IrgymError: The encoder cannot tell kinds of inputs apart.
        """
        del batch, share, generator
        raise IrgymError("only the encoder graph can hide inputs: set hidden_inputs to 0, or change encoder")


class EncoderSpec(Protocol):
    """Specification of an encoder, which a policy file records."""

    @classmethod
    def suited_to(
        cls, observation: Any, hidden: Sequence[int], activation: str, *, normalise: bool = False
    ) -> Self:
        """Return a specification for observations like this one.

        Args:
            observation: What a task's `observe` returned.
            hidden: Widths of the hidden layers.
            activation: One of `ACTIVATIONS`.
            normalise: Whether inputs are brought to mean 0 and deviation 1.
        """
        ...

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the specification that `to_dict` wrote."""
        ...

    @property
    def kind(self) -> str:
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
        normalise: Whether inputs are brought to mean 0 and deviation 1, by running statistics.
        kind: Name in `ENCODERS`.
    """

    inputs: int
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    normalise: bool = False
    kind: str = "mlp"

    @classmethod
    def suited_to(
        cls, observation: Any, hidden: Sequence[int], activation: str, *, normalise: bool = False
    ) -> "MlpSpec":
        """Return a specification for observations with as many values as this one.

        Raises:
            IrgymError: It is no array of numbers.
        """
        return cls(int(array_of(observation, "mlp").size), tuple(hidden), activation, normalise)

    def build(self) -> "Mlp":
        """Return a freshly initialised encoder."""
        return Mlp(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `spec_from_dict` reads back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "MlpSpec":
        """Return the specification that `to_dict` wrote; the first files have no `normalise`."""
        normalise = values.get("normalise", False)
        return cls(values["inputs"], tuple(values["hidden"]), values["activation"], normalise)


def array_of(observation: Any, encoder: str) -> NDArray[np.float32]:
    """Return an observation as an array, for an encoder that reads nothing else.

    Raises:
        IrgymError: It is not an array, but a text or a graph.
    """
    try:
        return np.asarray(observation, dtype=np.float32)
    except (TypeError, ValueError):
        kind = type(observation).__name__
        raise IrgymError(
            f"the encoder {encoder} reads arrays of numbers, no {kind}: choose another observation"
        ) from None


class RunningNorm(nn.Module):
    """Normalises each input to mean 0 and deviation at most 1, over all rows given to `adapt`.

    Before the first `adapt` all inputs count as 0, so that the initial policy does not depend on the scale of
    observations. An input that never varies stays 0. The statistics are buffers: a policy's file holds them.
    Chan et al., "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """

    LEAST = 0.1
    """Least deviation that inputs are divided by.

    Without it, an input that hardly varied in training dominates on a program where it does vary: an
    operation absent from all training graphs made a policy fail on one family of test graphs.
    """

    count: Tensor
    mean: Tensor
    variance: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(inputs, dtype=torch.float64))
        self.register_buffer("variance", torch.zeros(inputs, dtype=torch.float64))
        # What `forward` uses: the mean, and one over the deviation.
        self.register_buffer("centre", torch.zeros(inputs))
        self.register_buffer("scale", torch.zeros(inputs))

    @torch.no_grad()
    def adapt(self, rows: Tensor) -> None:
        """Update the statistics with rows of shape [B, inputs]."""
        if not rows.numel():
            return
        rows = rows.double()
        variance, mean = torch.var_mean(rows, dim=0, correction=0)
        share = len(rows) / (self.count + len(rows))
        distance = mean - self.mean
        self.variance += share * (variance - self.variance + (1 - share) * distance.square())
        self.mean += share * distance
        self.count += len(rows)
        self.centre.copy_(self.mean)
        varies = self.variance > 1e-12
        deviation = self.variance.sqrt().clamp(min=self.LEAST)
        self.scale.copy_(torch.where(varies, 1.0 / deviation, 0.0))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the rows normalised, shape [B, inputs]."""
        return ((rows - self.centre) * self.scale).clamp(-LIMIT, LIMIT)


class TensorEncoder(Encoder):
    """An encoder of observations that have one shape: a batch is a float32 tensor.

    Args:
        shape: Shape of an observation; one of another shape with as many values is taken for it.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def collate(self, observations: Sequence[Any]) -> Tensor:
        """Return a float32 tensor of shape [B, *shape].

        Raises:
            IrgymError: An observation has another number of values.
        """
        rows = rows_of(observations, math.prod(self.shape))
        return torch.as_tensor(rows.reshape(len(rows), *self.shape))

    def separate(self, batch: Tensor) -> list[NDArray[np.float32]]:
        """Return the observations."""
        return list(batch.numpy())

    def join(self, batches: Sequence[Tensor]) -> Tensor:
        """Return the observations of all batches as one."""
        return torch.cat(list(batches))

    def select(self, batch: Tensor, rows: Tensor | slice) -> Tensor:
        """Return some observations."""
        return batch[rows]


class Mlp(TensorEncoder):
    """Fully connected layers over observations that flatten to a fixed number of values.

    Weights are orthogonal with gain sqrt(2), biases 0 (Andrychowicz et al., arXiv 2006.05990).
    """

    def __init__(self, spec: MlpSpec) -> None:
        super().__init__((spec.inputs,))
        self.features = spec.hidden[-1] if spec.hidden else spec.inputs
        self.norm = RunningNorm(spec.inputs) if spec.normalise else None
        self.layers = hidden_layers((spec.inputs, *spec.hidden), spec.activation)

    def forward(self, batch: Tensor) -> Tensor:
        """Return features, shape [B, features]."""
        return cast(Tensor, self.layers(batch if self.norm is None else self.norm.forward(batch)))

    def adapt(self, batch: Tensor) -> None:
        """Update the input statistics, if inputs are normalised."""
        if self.norm is not None:
            self.norm.adapt(batch)


def hidden_layers(widths: Sequence[int], activation: str) -> nn.Sequential:
    """Return fully connected layers between these widths, each with an activation."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [orthogonal_linear(fan_in, fan_out, gain=2**0.5), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers)


def orthogonal_linear(fan_in: int, fan_out: int, gain: float) -> nn.Linear:
    """Return a linear layer with orthogonal initial weights of that gain and zero bias."""
    layer = nn.Linear(fan_in, fan_out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


NO_OPTIONS: Mapping[str, Any] = {}
"""Options of an encoder that are all left at their defaults."""

ENCODERS: Registry[type[EncoderSpec]] = Registry(
    kind="encoder",
    group="irgym.encoders",
    builtin={
        "mlp": "irgym.networks.encoders:MlpSpec",
        "lstm": "irgym.networks.lstm:LstmSpec",
        "candidates": "irgym.networks.candidates:CandidateSpec",
        "graph": "irgym.networks.graphs:GraphSpec",
    },
    fault="irgym.networks.encoders:spec_fault",
)


def spec_fault(kind: object) -> str:
    """Return in words how another package's encoder is wrong; empty where it is right."""
    if not isinstance(kind, type):
        return "is no class"
    missing = [name for name in ("suited_to", "from_dict", "build", "to_dict") if not hasattr(kind, name)]
    return f"has no method `{missing[0]}`" if missing else ""


def spec_from_dict(values: dict[str, Any]) -> EncoderSpec:
    """Return the specification that `to_dict` wrote.

    Raises:
        IrgymError: There is no such encoder here.
    """
    kind = values["kind"]
    if kind not in ENCODERS:
        raise IrgymError(
            f"the policy's encoder {kind!r} does not exist here: install the version that made it"
        )
    return ENCODERS.load(kind).from_dict(values)


def spec_for(
    observation: Any,
    hidden: Sequence[int],
    activation: str,
    *,
    normalise: bool = False,
    encoder: str = "",
    options: Mapping[str, Any] = NO_OPTIONS,
) -> EncoderSpec:
    """Return the specification of the encoder that suits observations like this one.

    Args:
        observation: What a task's `observe` returned: values that flatten to a vector, or `Encodable`.
        hidden: Widths of the hidden layers.
        activation: One of `ACTIVATIONS`.
        normalise: Whether inputs are brought to mean 0 and deviation 1, by running statistics.
        encoder: Name in `ENCODERS`; empty for the one that the observation names, or else `mlp`.
        options: Values of fields that only some specifications have.

    Raises:
        IrgymError: There is no such encoder here, it does not suit the observation, or it has no such option.
    """
    kind = encoder or (observation.encoder if isinstance(observation, Encodable) else "mlp")
    spec: Any = ENCODERS.load(kind).suited_to(observation, hidden, activation, normalise=normalise)
    strange = options.keys() - {field.name for field in fields(spec)}
    if strange:
        raise IrgymError(f"the encoder {kind} has no {min(strange)}: leave it out, or change encoder")
    return replace(spec, **options)
