"""The audio encoder of an RNN-T: an Emformer (Shi et al., arXiv 2010.10759), run over a whole utterance.

It is the streaming form of the Transformer-Transducer (Zhang et al., arXiv 2002.02562). Frames are cut into
segments. A segment sees itself, some frames to its left, a look-ahead to its right that is copied for each
segment, and one memory vector of each earlier segment, which the layer below made.
"""

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options

FREQUENCIES = 80
STRIDE = 4


def _visible(segments: int, segment: int, left: int, right: int) -> Tensor:
    """Return who sees whom.

    Rows are look-aheads, frames and summaries; columns are memories, look-aheads and frames.
    """
    of_ahead = torch.arange(segments).repeat_interleave(right)
    of_frame = torch.arange(segments).repeat_interleave(segment)
    each = torch.arange(segments)
    row = torch.cat((of_ahead, of_frame, each))[:, None]
    frame = torch.arange(segments * segment)[None, :]
    near = (frame >= row * segment - left) & (frame < (row + 1) * segment)
    # A summary is made of frames alone, or memories would feed on memories.
    summary = torch.arange(len(row))[:, None] >= len(row) - segments
    return torch.cat(((each[None, :] < row) & ~summary, of_ahead[None, :] == row, near), 1)


class Layer(nn.Module):
    """Attention and feed-forward.

    Args:
        options: The family's options.
    """

    hidden: Tensor

    def __init__(self, options: Options) -> None:
        super().__init__()
        width = options["hidden"]
        self.heads, self.segment = options["heads"], options["segment"]
        self.norm = nn.LayerNorm(width)
        self.query, self.keys, self.combine = (
            nn.Linear(width, outputs) for outputs in (width, 2 * width, width)
        )
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.norm_after = nn.LayerNorm(width)
        visible = _visible(options["segments"], self.segment, options["left"], options["right"])
        self.register_buffer("hidden", ~visible, persistent=False)

    def forward(self, ahead: Tensor, frames: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the same of this layer; shapes (batch, look-aheads | frames | segments, width)."""
        both = torch.cat((ahead, frames), 1)
        normed = self.norm(both)
        summary = normed[:, ahead.shape[1] :].unflatten(1, (-1, self.segment)).mean(2)
        query = self._split(self.query(torch.cat((normed, summary), 1)))
        key, value = map(self._split, self.keys(torch.cat((memory, normed), 1)).chunk(2, -1))
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        weights = scores.masked_fill(self.hidden, -1e8).softmax(-1)
        gathered = self.combine((weights @ value).transpose(1, 2).flatten(2))
        both = both + gathered[:, : both.shape[1]]
        both = self.norm_after(both + self.feed_forward(both))
        memory = gathered[:, both.shape[1] :].tanh()
        return both[:, : ahead.shape[1]], both[:, ahead.shape[1] :], memory

    def _split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)


class Emformer(nn.Module):
    """The encoder, with the projections before and after it that an RNN-T has.

    Args:
        options: The family's options.
    """

    ahead: Tensor

    def __init__(self, options: Options) -> None:
        super().__init__()
        width, segment, segments = options["hidden"], options["segment"], options["segments"]
        self.segments = segments
        self.embed = nn.Linear(FREQUENCIES, width // STRIDE, bias=False)
        self.widen = nn.Linear(width // STRIDE * STRIDE, width)
        self.layers = nn.ModuleList(Layer(options) for _ in range(options["layers"]))
        self.project, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        starts = torch.arange(1, segments + 1)[:, None] * segment
        ahead = starts + torch.arange(options["right"])[None, :]
        self.register_buffer("ahead", ahead.flatten(), persistent=False)

    def forward(self, sound: Tensor) -> Tensor:
        """Return the frames' vectors; shapes (batch, time, frequencies) and (batch, frames, width).

        Time is that of all segments and of the last one's look-ahead, in steps of which four make a frame.
        """
        whole = self.widen(self.embed(sound).unflatten(1, (-1, STRIDE)).flatten(2))
        ahead, frames = (
            whole[:, self.ahead],
            whole[:, : whole.shape[1] - self.ahead.shape[0] // self.segments],
        )
        memory = frames.unflatten(1, (self.segments, -1)).mean(2)
        for layer in self.layers:
            ahead, frames, memory = layer(ahead, frames, memory)
        return self.norm(self.project(frames))


def emformer(options: Options) -> Model:
    """Return the encoder, for filter banks of 80 frequencies."""
    steps = STRIDE * (options["segments"] * options["segment"] + options["right"])
    return Model(Emformer(options), {"sound": torch.randn(options["batch"], steps, FREQUENCIES)})


BUILDERS: dict[str, Builder] = {"emformer": emformer}
"""Builders of the families' models."""
