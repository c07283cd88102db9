"""An LSTM over the rows of an observation: an operation and its producer (MLIR RL, arXiv 2409.11068)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from torch import Tensor, nn

from irgym.base.errors import IrgymError
from irgym.networks.encoders import RunningNorm, TensorEncoder, array_of, hidden_layers


@dataclass(frozen=True)
class LstmSpec:
    """An embedding of each row, an LSTM from the last row to the first, and fully connected layers.

    Attributes:
        rows: Rows of an observation; the first is the one that actions are about.
        columns: Values of a row.
        hidden: Width of the embedding and of the LSTM, then widths of the layers behind it.
        activation: One of `ACTIVATIONS`.
        normalise: Whether inputs are brought to mean 0 and deviation 1, by running statistics.
        kind: Name in `ENCODERS`.
    """

    rows: int
    columns: int
    hidden: tuple[int, ...] = (256, 256)
    activation: str = "tanh"
    normalise: bool = False
    kind: str = "lstm"

    @classmethod
    def suited_to(
        cls, observation: Any, hidden: Sequence[int], activation: str, *, normalise: bool = False
    ) -> "LstmSpec":
        """Return a specification for observations of this one's shape.

        Raises:
            IrgymError: It has not two dimensions, or there is no hidden layer.
        """
        shape = array_of(observation, "lstm").shape
        if len(shape) != 2 or not hidden:
            raise IrgymError(
                "the encoder lstm reads observations of two dimensions and needs a hidden layer: choose mlp"
            )
        return cls(shape[0], shape[1], tuple(hidden), activation, normalise)

    def build(self) -> "Lstm":
        """Return a freshly initialised encoder."""
        return Lstm(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `spec_from_dict` reads back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "LstmSpec":
        """Return the specification that `to_dict` wrote."""
        hidden = tuple(values["hidden"])
        return cls(values["rows"], values["columns"], hidden, values["activation"], values["normalise"])


class Lstm(TensorEncoder):
    """Reads the rows from the last to the first, so that its end state is about the first."""

    def __init__(self, spec: LstmSpec) -> None:
        super().__init__((spec.rows, spec.columns))
        width = spec.hidden[0]
        self.features = spec.hidden[-1]
        self.norm = RunningNorm(spec.columns) if spec.normalise else None
        self.embedding = hidden_layers((spec.columns, width), spec.activation)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.layers = hidden_layers(spec.hidden, spec.activation)

    def forward(self, batch: Tensor) -> Tensor:
        """Return features, shape [B, features]."""
        rows = batch.flip(1) if self.norm is None else self.norm.forward(batch.flip(1))
        _, (end, _) = cast(tuple[Tensor, tuple[Tensor, Tensor]], self.lstm(self.embedding(rows)))
        return cast(Tensor, self.layers(end[0]))

    def adapt(self, batch: Tensor) -> None:
        """Update the input statistics, if inputs are normalised."""
        if self.norm is not None:
            self.norm.adapt(batch.reshape(-1, batch.shape[-1]))
