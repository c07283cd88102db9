"""Transformers and recurrent networks drawn at random, of parts that published ones have.

They are to train on: where scales, masks and norms stand, and how heads are split, is left to chance, as it
differs from one implementation to the next.
"""

import random
from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options, tokens


class RootMeanSquare(nn.Module):
    """A norm without mean and bias (Zhang and Sennrich, arXiv 1910.07467)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return the result, shaped as the input."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


class Attention(nn.Module):
    """Self-attention in one of the ways in which it is written.

    Args:
        width: Length of the vectors.
        heads: Number of heads.
        length: Number of positions.
        draw: Of all choices, which the layers of a network share.
    """

    hidden: Tensor

    def __init__(self, width: int, heads: int, length: int, draw: random.Random) -> None:
        super().__init__()
        self.heads = heads
        self.together = draw.choice(("chunk", "unbind", "none", "none"))
        bias = draw.random() < 0.7
        if self.together == "none":
            self.query, self.key, self.value = (nn.Linear(width, width, bias) for _ in range(3))
        else:
            self.project = nn.Linear(width, 3 * width, bias)
        self.combine = nn.Linear(width, width, draw.random() < 0.8)
        self.scale = draw.choice(("query", "scores", "quotient", "both", "function"))
        self.mask = draw.choice(("none", "causal", "where", "added"))
        visible = torch.ones(length, length, dtype=torch.bool).tril()
        self.register_buffer("hidden", ~visible, persistent=False)

    def _parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        if self.together == "unbind":
            query, key, value = (
                self.project(x).reshape(batch, length, 3, *shape[2:]).permute(2, 0, 3, 1, 4).unbind(0)
            )
            return query, key, value
        if self.together == "chunk":
            query, key, value = self.project(x).chunk(3, -1)
        else:
            query, key, value = self.query(x), self.key(x), self.value(x)
        return tuple(part.reshape(shape).transpose(1, 2) for part in (query, key, value))  # type: ignore[return-value]

    def forward(self, x: Tensor) -> Tensor:
        """Return what every position gathers, shape (batch, length, width)."""
        query, key, value = self._parts(x)
        factor = query.shape[-1] ** -0.5
        if self.scale == "function":
            causal = self.mask == "causal"
            gathered = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        else:
            gathered = self._masked(self._scores(query, key, factor)).softmax(-1) @ value
        return self.combine(gathered.transpose(1, 2).reshape(x.shape))

    def _scores(self, query: Tensor, key: Tensor, factor: float) -> Tensor:
        match self.scale:
            case "query":
                return (query * factor) @ key.transpose(-1, -2)
            case "quotient":
                return query @ key.transpose(-1, -2) / sqrt(query.shape[-1])
            case "both":
                return (query * factor**0.5) @ (key * factor**0.5).transpose(-1, -2)
            case _:
                return query @ key.transpose(-1, -2) * factor

    def _masked(self, scores: Tensor) -> Tensor:
        lowest = torch.finfo(scores.dtype).min
        match self.mask:
            case "causal":
                return scores.masked_fill(self.hidden, -torch.inf)
            case "where":
                return scores.masked_fill(self.hidden, lowest)
            case "added":
                return scores + self.hidden.to(scores.dtype) * -1e4
            case _:
                return scores


class FeedForward(nn.Module):
    """Two layers, of which the first may have a gate (Shazeer, arXiv 2002.05202).

    Args:
        width: Length of the vectors.
        draw: Of all choices.
    """

    def __init__(self, width: int, draw: random.Random) -> None:
        super().__init__()
        activations: list[Callable[[], nn.Module]] = [
            nn.GELU,
            lambda: nn.GELU("tanh"),
            nn.ReLU,
            nn.SiLU,
        ]
        self.activation = draw.choice(activations)()
        self.gated = draw.random() < 0.3
        self.widen = nn.Linear(width, 4 * width * (2 if self.gated else 1))
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the result, shaped as the input."""
        wide = self.widen(x)
        if not self.gated:
            return self.narrow(self.activation(wide))
        value, gate = wide.chunk(2, -1)
        return self.narrow(value * self.activation(gate))


class Layer(nn.Module):
    """Attention and feed-forward beside shortcuts, each after its norm or before it."""

    def __init__(self, width: int, attention: nn.Module, norm: Callable[[int], nn.Module], seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        self.attention, self.feed_forward = attention, FeedForward(width, draw)
        self.first, self.second = norm(width), norm(width)
        self.norms_first = draw.random() < 0.6

    def forward(self, x: Tensor) -> Tensor:
        """Return the result, shaped as the input."""
        if self.norms_first:
            x = x + self.attention(self.first(x))
            return x + self.feed_forward(self.second(x))
        x = self.first(x + self.attention(x))
        return self.second(x + self.feed_forward(x))


class Drawn(nn.Module):
    """Embedded tokens through layers that are all alike.

    Args:
        options: The family's options.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        width, length, seed = options["hidden"], options["sequence"], options["seed"]
        draw = random.Random(seed)
        norm = RootMeanSquare if draw.random() < 0.25 else nn.LayerNorm
        self.embed, self.places = nn.Embedding(options["vocabulary"], width), nn.Embedding(length, width)
        self.layers = nn.Sequential(
            *(
                Layer(width, Attention(width, options["heads"], length, random.Random(seed)), norm, seed)
                for _ in range(options["layers"])
            )
        )
        head: list[nn.Module] = [nn.Linear(width, 64), nn.Tanh()] if draw.random() < 0.5 else []
        self.head = nn.Sequential(norm(width), *head)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return a vector for each token, shape (batch, sequence, hidden or 64)."""
        return self.head(self.layers(self.embed(tokens) + self.places.weight))


class Cell(nn.Module):
    """A recurrent cell: sums of products of input and state, joined in a tree (arXiv 1611.01578).

    Args:
        width: Length of inputs and states.
        draw: Of all choices.
    """

    def __init__(self, width: int, draw: random.Random) -> None:
        super().__init__()
        count, bias = draw.choice((2, 4, 6)), draw.random() < 0.5
        self.inputs = nn.ModuleList(nn.Linear(width, width, bias) for _ in range(count))
        self.states = nn.ModuleList(nn.Linear(width, width, bias) for _ in range(count))
        self.last = nn.Linear(width, width) if draw.random() < 0.3 else None
        kinds = (torch.tanh, torch.sigmoid, torch.relu)
        self.leaves = [draw.choice(kinds) for _ in range(count)]
        self.joins = [draw.choice(("sum", "product")) for _ in range(count)]

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Return the next state; all of shape (batch, width)."""
        parts = [
            leaf(of_input(x) + of_state(state))
            for leaf, of_input, of_state in zip(self.leaves, self.inputs, self.states, strict=True)
        ]
        joined = parts[0]
        for part, join in zip(parts[1:], self.joins, strict=False):
            joined = joined + part if join == "sum" else joined * part
        return torch.tanh(joined if self.last is None else self.last(joined))


class Recurrent(nn.Module):
    """Layers of cells over a sequence, unrolled.

    Args:
        options: The family's options.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        draw, self.width = random.Random(options["seed"]), options["hidden"]
        layers = draw.choice((1, 1, 2))
        self.cells = nn.ModuleList(Cell(self.width, draw) for _ in range(layers))
        self.whole = draw.random() < 0.5

    def forward(self, x: Tensor) -> Tensor:
        """Return the last layer's states, or its last one; shape (batch, [sequence,] width)."""
        outputs = list(x.unbind(1)) if self.whole else [x[:, step] for step in range(x.shape[1])]
        for cell in self.cells:
            state = x.new_zeros(x.shape[0], self.width)
            for step, given in enumerate(outputs):
                outputs[step] = state = cell(given, state)
        return torch.stack(outputs, 1) if self.whole else outputs[-1]


def drawn_transformer(options: Options) -> Model:
    """Return the transformer of a seed."""
    return Model(Drawn(options), {"tokens": tokens(options)}, {"tokens": (0, options["vocabulary"])})


def drawn_rnn(options: Options) -> Model:
    """Return the recurrent network of a seed."""
    x = torch.randn(options["batch"], options["sequence"], options["hidden"])
    return Model(Recurrent(options), {"x": x})


BUILDERS: dict[str, Builder] = {"drawn_transformer": drawn_transformer, "drawn_rnn": drawn_rnn}
"""Builders of the families' models."""
