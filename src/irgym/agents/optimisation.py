"""Optimisation of networks: seeded initial weights, annealing, gradient steps with clipping."""

import math
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from irgym.agents.deadline import Deadline
from irgym.base.errors import IrgymError

Optimiser = Literal["adam", "rmsprop"]


class DivergedError(IrgymError):
    """A training has reached values that are not finite, from which it cannot recover."""

    def __init__(self, what: str, value: float) -> None:
        super().__init__(
            f"the training has diverged (the {what} is {value}), and no file was replaced since: lower lr or "
            "max_grad_norm, and make sure that rewards and observations are finite"
        )


def _check(value: Tensor, what: str) -> float:
    number = value.item()
    if not math.isfinite(number):
        raise DivergedError(what, number)
    return number


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Make the random numbers of torch depend on `seed` alone inside, and leave them unchanged outside."""
    with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
        yield


@contextmanager
def threads(count: int) -> Generator[None]:
    """Let torch use so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def anneal(start: float, end: float, share: float) -> float:
    """Interpolate linearly from `start` to `end`; constant where the share is above 1."""
    return start + (end - start) * min(1.0, share)


def clipped_error(values: Tensor, returns: Tensor, old: Tensor, limit: float | None) -> Tensor:
    """Return the mean squared error of values; of those that moved, the greater of two if there is a limit.

    The clipping of PPO's value loss (arXiv 2005.12729): the error counts as if the value were at most `limit`
    from the old one, if that is greater.

    Args:
        values: Shape [M].
        returns: What they should be, shape [M].
        old: Values before the update, shape [M].
        limit: Greatest change that counts; None for no clipping.
    """
    loss = (values - returns).square()
    if limit is not None:
        near = old + (values - old).clamp(-limit, limit)
        loss = torch.maximum(loss, (near - returns).square())
    return loss.mean()


class Descent:
    """Adam or RMSprop on some parameters, with the gradient's norm limited.

    The parameters become views of one vector, and so do their gradients: clipping and updating then
    take a handful of kernels rather than as many for each layer.

    Attributes:
        max_norm: The gradient is scaled down to this norm.
        deadline: After it no step is taken.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        max_norm: float,
        optimiser: Optimiser = "adam",
        deadline: Deadline | None = None,
    ) -> None:
        members = list(parameters)
        self.max_norm = max_norm
        self.deadline = deadline or Deadline()
        self._vector = nn.Parameter(torch.cat([member.detach().reshape(-1) for member in members]))
        self._gradient = torch.zeros_like(self._vector)
        self._vector.grad = self._gradient
        start = 0
        for member in members:
            end = start + member.numel()
            member.data = self._vector.data[start:end].view(member.shape)
            member.grad = self._gradient[start:end].view(member.shape)
            start = end
        self._norms, self._steps = 0.0, 0
        self._optimiser: torch.optim.Optimizer
        if optimiser == "adam":
            self._optimiser = torch.optim.Adam([self._vector], lr=lr, eps=1e-5, fused=True)
        else:
            self._optimiser = torch.optim.RMSprop([self._vector], lr=lr, eps=1e-5, alpha=0.99)

    def step(self, loss: Tensor) -> None:
        """Take one step down the gradient of `loss`.

        Raises:
            DivergedError: The loss, its gradient or the new weights are not finite.
            OutOfTimeError: The deadline has passed.
        """
        self.deadline.check("learning")
        self._gradient.zero_()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        norm = self._gradient.square().sum().sqrt()
        _check(loss.detach(), "loss")
        self._norms += _check(norm, "norm of the gradient")
        self._steps += 1
        self._gradient.mul_((self.max_norm / (norm + 1e-6)).clamp(max=1.0))
        self._optimiser.step()  # pyright: ignore[reportUnknownMemberType]
        _check(self._vector.detach().sum(), "sum of the weights")

    def mean_norm(self) -> float | None:
        """Return the mean norm of the gradients, before clipping, since the last call; None without steps."""
        mean = self._norms / self._steps if self._steps else None
        self._norms, self._steps = 0.0, 0
        return mean

    def set_lr(self, lr: float) -> None:
        """Change the learning rate."""
        self._optimiser.param_groups[0]["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimiser; the parameters are the network's to save."""
        return self._optimiser.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self._optimiser.load_state_dict(state)
