"""DALL-E's decoder (Ramesh et al., arXiv 2102.12092): one transformer over words and image tokens."""

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options, tokens


class CausalAttention(nn.Module):
    """Self-attention with several heads in which no position sees a later one.

    Args:
        width: Length of the vectors.
        heads: Number of heads.
        length: Number of positions.
    """

    hidden: Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.combine = nn.Linear(width, width)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", later, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return what every position gathers; shape (batch, length, width)."""
        batch, length, width = x.shape
        query, key, value = (
            part.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.project(x).chunk(3, -1)
        )
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(self.hidden, torch.finfo(scores.dtype).min).softmax(-1)
        return self.combine((weights @ value).transpose(1, 2).reshape(batch, length, width))


class GatedFeedForward(nn.Module):
    """Two layers of which the first has a gate through GELU (Shazeer, arXiv 2002.05202)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the result, shaped as the input."""
        value, gate = self.widen(x).chunk(2, -1)
        return self.narrow(value * nn.functional.gelu(gate))


class Scaled(nn.Module):
    """A layer after its norm, beside a shortcut, its result scaled (Touvron et al., arXiv 2103.17239)."""

    def __init__(self, width: int, layer: nn.Module) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), layer
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum, shaped as the input."""
        return x + self.scale * self.layer(self.norm(x))


class Dalle(nn.Module):
    """The decoder.

    Args:
        options: The family's options.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        width, words, grid = options["hidden"], options["sequence"], options["grid"]
        self.words, self.pixels = (nn.Embedding(options["vocabulary"], width) for _ in range(2))
        self.places = nn.Parameter(torch.randn(1, words, width))
        self.rows = nn.Parameter(torch.randn(1, grid, 1, width))
        self.columns = nn.Parameter(torch.randn(1, 1, grid, width))
        blocks: list[nn.Module] = []
        for _ in range(options["layers"]):
            attention = CausalAttention(width, options["heads"], words + grid * grid)
            blocks += [Scaled(width, attention), Scaled(width, GatedFeedForward(width))]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, options["vocabulary"])

    def forward(self, text: Tensor, image: Tensor) -> Tensor:
        """Return logits; shapes (batch, words), (batch, grid * grid) and (batch, both, vocabulary)."""
        places = (self.rows + self.columns).flatten(1, 2)
        x = torch.cat((self.words(text) + self.places, self.pixels(image) + places), 1)
        return self.head(self.norm(self.blocks(x)))


def dalle(options: Options) -> Model:
    """Return the decoder; words and image tokens have vocabularies of one size."""
    image = torch.randint(options["vocabulary"], (options["batch"], options["grid"] ** 2))
    inputs = {"text": tokens(options), "image": image}
    return Model(Dalle(options), inputs, dict.fromkeys(inputs, (0, options["vocabulary"])))


BUILDERS: dict[str, Builder] = {"dalle": dalle}
"""Builders of the families' models."""
