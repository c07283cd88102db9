"""The Transformer's encoder (Vaswani et al., arXiv 1706.03762) as `torch.nn` has it."""

from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options, tokens


class Encoder(nn.Module):
    """Embedded tokens through layers that take the sequence before the batch, `torch.nn`'s default.

    Args:
        options: The family's options.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        width = options["hidden"]
        self.embed = nn.Embedding(options["vocabulary"], width)
        self.places = nn.Embedding(options["sequence"], width)
        layer = nn.TransformerEncoderLayer(width, options["heads"], 4 * width)
        self.layers = nn.TransformerEncoder(layer, options["layers"], enable_nested_tensor=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return a vector for each token; shapes (batch, sequence) and (batch, sequence, width)."""
        embedded = self.embed(tokens) + self.places.weight
        return self.layers(embedded.transpose(0, 1)).transpose(0, 1)


def transformer(options: Options) -> Model:
    """Return the encoder."""
    inputs = {"tokens": tokens(options)}
    return Model(Encoder(options), inputs, {"tokens": (0, options["vocabulary"])})


BUILDERS: dict[str, Builder] = {"transformer": transformer}
"""Builders of the families' models."""
