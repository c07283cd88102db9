"""What every gradient-based learner does: seeded initial weights, annealing, clipped gradient steps."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Make the random numbers of torch depend on `seed` alone inside, and leave them unchanged outside."""
    with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
        yield


def anneal(start: float, end: float, iteration: int, iterations: int) -> float:
    """Return the value on the way from `start` to `end`, linear in iterations and constant after them."""
    return start + (end - start) * min(1.0, iteration / max(1, iterations))


def adam(parameters: Sequence[Tensor], lr: float) -> torch.optim.Adam:
    """Return Adam with all parameters updated by one fused kernel."""
    return torch.optim.Adam(parameters, lr=lr, eps=1e-5, fused=True)


def descend(
    loss: Tensor, parameters: Sequence[Tensor], optimizer: torch.optim.Optimizer, max_grad_norm: float
) -> None:
    """Take one step down the gradient of `loss`, scaled down to a norm of at most `max_grad_norm`."""
    optimizer.zero_grad()
    loss.backward()  # pyright: ignore[reportUnknownMemberType]
    nn.utils.clip_grad_norm_(parameters, max_grad_norm, foreach=True)
    optimizer.step()  # pyright: ignore[reportUnknownMemberType]
