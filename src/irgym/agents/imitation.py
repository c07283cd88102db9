"""Imitation: searches show on a few programs what good schedules look like, a policy learns to repeat them.

Policy gradients start from random schedules. Where nearly all of them are bad, and the way to a good one
leads through worse ones, they settle in the nearest local optimum; a policy cloned from demonstrations
starts beyond it, and reinforcement learning refines it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from irgym.agents.optimisation import Descent, seeded
from irgym.core.actions import Mask
from irgym.core.cost import Evaluator
from irgym.core.errors import IrgymError, ScheduleError
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task
from irgym.nets import heads
from irgym.nets.actor_critic import Actor
from irgym.nets.encoders import ACTIVATIONS, spec_for
from irgym.nets.layout import LAYOUTS
from irgym.nets.policy import TorchPolicy
from irgym.search.session import Budget, Strategy, run_search


@dataclass(frozen=True)
class ImitationConfig:
    """Hyper-parameters of behaviour cloning."""

    epochs: int = 60
    """Passes over the demonstrations."""
    minibatch: int = 128
    """Steps in a gradient step."""
    lr: float = 1e-3
    """Learning rate of Adam."""
    max_grad_norm: float = 1.0
    """The gradient is scaled down to this norm."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers."""
    activation: str = "tanh"
    """tanh or relu."""
    encoder: str = ""
    """mlp, or lstm for observations of several rows; empty for the one that suits the observation."""
    normalise_observations: bool = False
    """Whether inputs are brought to mean 0 and deviation 1 over the demonstrations."""
    actions: Literal["structured", "flat"] = "structured"
    """Whether kinds and parameters are scored apart, or all combinations."""
    seed: int = 0
    """Of all random choices."""
    threads: int = 1
    """Threads of torch."""

    def check(self) -> None:
        """Make sure that the values make sense, before any search is done.

        Raises:
            IrgymError: One does not; the message says which.
        """
        for name in ("epochs", "minibatch", "lr", "max_grad_norm", "threads"):
            if not getattr(self, name) > 0:
                raise IrgymError(f"{name} of imitation is {getattr(self, name)}: choose more than 0")
        if self.activation not in ACTIVATIONS or not all(width > 0 for width in self.hidden):
            raise IrgymError(
                f"imitation needs widths of 1 or more and an activation among {', '.join(ACTIVATIONS)}"
            )


@dataclass(frozen=True)
class Demonstration:
    """A program and a good schedule for it."""

    task: Task[Any]
    schedule: Schedule
    cost: float


def search_schedules(
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    strategy: Strategy,
    budget: Budget,
    seed: int,
    keep: int = 3,
    progress: Callable[[str], None] | None = None,
) -> list[Schedule]:
    """Search each program and return the distinct schedules of the `keep` cheapest finalists of each."""
    schedules: dict[Schedule, None] = {}
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"searching {task.uri} ({place + 1} of {len(tasks)})")
        result = run_search(strategy, task, evaluator, budget, seed + place)
        schedules.update(dict.fromkeys(result.finalists[:keep]))
    return list(schedules)


def transfer(
    schedules: Sequence[Schedule],
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    progress: Callable[[str], None] | None = None,
) -> list[Demonstration]:
    """Return for each program the cheapest of the schedules that apply to it.

    A schedule found for one program often suits others; trying them all costs far less than searching
    each program, and few distinct schedules are easier to learn than many.
    """
    demonstrations: list[Demonstration] = []
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"transferring {len(schedules)} schedules to {task.uri} ({place + 1} of {len(tasks)})")
        fitting = [(schedule, states[-1]) for schedule in schedules if (states := _applied(task, schedule))]
        costs = [found.cost for found in evaluator.evaluate([task.job(state) for _, state in fitting])]
        best = int(np.argmin(costs)) if costs else -1
        if best >= 0 and math.isfinite(costs[best]):
            demonstrations.append(Demonstration(task, fitting[best][0], costs[best]))
    if not demonstrations:
        raise IrgymError("no schedule runs on any of the programs: search for longer, or other programs")
    return demonstrations


def _applied(task: Task[Any], schedule: Schedule) -> list[Any]:
    """Return the states along a schedule, none where it does not apply or goes beyond the horizon."""
    if len(schedule) >= task.horizon:
        return []
    try:
        return states_along(task, schedule)
    except ScheduleError:
        return []


def clone(config: ImitationConfig, demonstrations: Sequence[Demonstration]) -> TorchPolicy:
    """Train a policy to repeat the demonstrations, by maximum likelihood.

    Where the space has an action `stop`, it is learnt at the end of each schedule.
    """
    torch.set_num_threads(config.threads)
    task = demonstrations[0].task
    layout = LAYOUTS[config.actions](task.space)
    normalise = config.normalise_observations
    spec = spec_for(
        task.observe(task.initial()),
        config.hidden,
        config.activation,
        normalise=normalise,
        encoder=config.encoder,
    )
    with seeded(config.seed):
        actor = Actor(spec, layout)
    observations, masks, actions = _steps(demonstrations)
    batch = actor.encoder.collate(observations)
    actor.encoder.adapt(batch)
    legal = torch.as_tensor(layout.legal(masks))
    choices = torch.as_tensor(layout.choices(actions))
    descent = Descent(actor.parameters(), config.lr, config.max_grad_norm)
    rng = np.random.default_rng(config.seed)
    for _ in range(config.epochs):
        order = torch.as_tensor(rng.permutation(len(actions)))
        for start in range(0, len(order), config.minibatch):
            part = order[start : start + config.minibatch]
            scores = actor.forward(actor.encoder.select(batch, part))
            evaluated = heads.evaluate(scores, legal[part], choices[part], layout)
            descent.step(-evaluated.log_prob.mean())
    return TorchPolicy(actor)


def _steps(demonstrations: Sequence[Demonstration]) -> tuple[list[Any], list[Mask], list[Any]]:
    """Return observation, mask and action of every step of the demonstrations."""
    observations: list[Any] = []
    masks: list[Mask] = []
    actions: list[Any] = []
    for shown in demonstrations:
        task, space = shown.task, shown.task.space
        stops = [action for action in space.flat if space.kinds[action.kind].name == "stop"]
        taken = [*shown.schedule.actions, *stops[:1]]
        for state, action in zip(states_along(task, shown.schedule), taken, strict=False):
            observations.append(task.observe(state))
            masks.append(task.mask(state))
            actions.append(action)
    return observations, masks, actions
