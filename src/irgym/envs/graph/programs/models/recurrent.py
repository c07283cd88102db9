"""Recurrent networks whose loops are unrolled, so that steps may share work."""

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options


class NasCell(nn.Module):
    """The cell that a search found (Zoph and Le, arXiv 1611.01578, figure 8), as TASO unrolls it.

    Eight sums of a product of the input and one of the state meet in pairs in a tree. The memory cell of the
    paper is left out, as TASO does.

    Args:
        width: Length of inputs and states.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inputs = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(8))
        self.states = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(8))

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Return the next state; all of shape (batch, width)."""
        a, b, c, d, e, f, g, h = (
            of_input(x) + of_state(state) for of_input, of_state in zip(self.inputs, self.states, strict=True)
        )
        first = torch.tanh(a.relu() + d.sigmoid()) * torch.tanh(g.sigmoid() * h.relu())
        second = torch.tanh(torch.sigmoid(b.sigmoid() + c.tanh()) + torch.tanh(e.sigmoid() * f.tanh()))
        return torch.tanh(first * second)


class Nasrnn(nn.Module):
    """A row of such cells, which share their weights; shapes (batch, cells, width) and (batch, width)."""

    def __init__(self, width: int, cells: int) -> None:
        super().__init__()
        self.cell, self.cells = NasCell(width), cells

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Return the last state."""
        for step in range(self.cells):
            state = self.cell(x[:, step], state)
        return state


class Unrolled(nn.Module):
    """Layers of recurrent cells over a sequence of shape (batch, sequence, width), unrolled.

    Args:
        cells: A cell for each layer, of LSTMs or of GRUs.
        width: Length of inputs and states.
    """

    def __init__(self, cells: list[nn.LSTMCell] | list[nn.GRUCell], width: int) -> None:
        super().__init__()
        self.cells, self.width = nn.ModuleList(cells), width

    def forward(self, x: Tensor) -> Tensor:
        """Return the last layer's states at all steps; shaped as the input."""
        outputs = list(x.unbind(1))
        for cell in self.cells:
            state = x.new_zeros(x.shape[0], self.width)
            memory = state
            for step, given in enumerate(outputs):
                if isinstance(cell, nn.LSTMCell):
                    state, memory = cell(given, (state, memory))
                else:
                    state = cell(given, state)
                outputs[step] = state
        return torch.stack(outputs, 1)


def nasrnn(options: Options) -> Model:
    """Return TASO's network."""
    batch, width = options["batch"], options["hidden"]
    inputs = {"x": torch.randn(batch, options["cells"], width), "state": torch.randn(batch, width)}
    return Model(Nasrnn(width, options["cells"]), inputs)


def _sequence(options: Options) -> dict[str, Tensor]:
    return {"x": torch.randn(options["batch"], options["sequence"], options["hidden"])}


def lstm(options: Options) -> Model:
    """Return layers of LSTM cells."""
    width = options["hidden"]
    cells = [nn.LSTMCell(width, width) for _ in range(options["layers"])]
    return Model(Unrolled(cells, width), _sequence(options))


def gru(options: Options) -> Model:
    """Return layers of GRU cells."""
    width = options["hidden"]
    cells = [nn.GRUCell(width, width) for _ in range(options["layers"])]
    return Model(Unrolled(cells, width), _sequence(options))


BUILDERS: dict[str, Builder] = {"nasrnn": nasrnn, "lstm": lstm, "gru": gru}
"""Builders of the families' models."""
