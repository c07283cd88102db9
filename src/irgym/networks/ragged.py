"""Ragged rows, whose number differs between the states of a batch (candidates, nodes, edges), unpadded."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Ragged(NamedTuple):
    """Rows of B states, those of the first state first.

    Attributes:
        rows: Shape [M, ...].
        counts: Shape [B]; the number of rows of each state. They add up to M.
    """

    rows: Tensor
    counts: Tensor

    @property
    def owners(self) -> Tensor:
        """The state of each row, shape [M]."""
        return torch.arange(len(self.counts), device=self.counts.device).repeat_interleave(self.counts)

    @property
    def begins(self) -> Tensor:
        """The place of each state's first row, shape [B]."""
        return self.counts.cumsum(0) - self.counts

    def select(self, states: Tensor | slice) -> "Ragged":
        """Return the rows of some states."""
        chosen = self.counts[states]
        moved = self.begins[states] - (chosen.cumsum(0) - chosen)
        within = torch.arange(int(chosen.sum()), device=chosen.device)
        places = moved.repeat_interleave(chosen) + within
        return Ragged(self.rows[places], chosen)

    def separate(self) -> list[Tensor]:
        """Return the rows of each state."""
        ends = self.begins + self.counts
        return [self.rows[begin:end] for begin, end in zip(self.begins, ends, strict=True)]

    def mean(self) -> Tensor:
        """Return the mean of each state's rows, 0 where it has none, shape [B, ...]."""
        none = self.rows.new_zeros(len(self.counts), *self.rows.shape[1:])
        return none.index_add(0, self.owners, self.rows) / self.counts.clamp(min=1)[:, None]

    def greatest(self) -> Tensor:
        """Return the greatest of each state's values, 0 where it has no rows, shape [B, ...]."""
        none = self.rows.new_zeros(len(self.counts), *self.rows.shape[1:])
        owners = self.owners[:, None].expand_as(self.rows)
        return none.scatter_reduce(0, owners, self.rows, "amax", include_self=False)


def join(parts: Sequence[Ragged]) -> Ragged:
    """Return the rows of all parts, one after the other."""
    return Ragged(torch.cat([part.rows for part in parts]), torch.cat([part.counts for part in parts]))
