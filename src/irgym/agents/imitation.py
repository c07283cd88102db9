"""Imitation: searches show on a few programs what good schedules look like, a policy learns to repeat them.

Policy gradients start from random schedules. Where nearly all of them are bad, and the way to a good one
leads through worse ones, they settle in the nearest local optimum; a policy cloned from demonstrations
starts beyond it, and reinforcement learning refines it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from irgym.agents.optimisation import Descent, seeded
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Evaluator
from irgym.core.errors import IrgymError, ScheduleError
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task
from irgym.nets import heads
from irgym.nets.actor_critic import Actor
from irgym.nets.encoders import ACTIVATIONS, spec_for
from irgym.nets.layout import LAYOUTS
from irgym.nets.policy import TorchPolicy
from irgym.search.rollout import outcome, rollout
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
    actions: Literal["structured", "chained", "flat"] = "structured"
    """Kinds and parameters are scored apart; chained: each parameter knows those before; flat: at once."""
    exchanged: int = 0
    """Copies of each step in which each row of the observation but the first is the first row of some other
    step, or empty: for observations whose first row is what the action is for, and whose others are its
    neighbours. Where demonstrations show few neighbours, a policy learns so to depend on them little."""
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
        if self.exchanged < 0:
            raise IrgymError(f"exchanged of imitation is {self.exchanged}: choose 0 or more")
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


@dataclass(frozen=True)
class Found:
    """The cheapest schedules that are known for a program.

    Attributes:
        task: The program.
        costs: Cost of each schedule, ascending.
    """

    task: Task[Any]
    costs: Mapping[Schedule, float]

    def joined(self, other: "Found | None") -> "Found":
        """Return these schedules and others of the same program."""
        return self if other is None else found(self.task, {**other.costs, **self.costs})

    def likeliest(self, policy: TorchPolicy | None) -> Demonstration:
        """Return the schedule to imitate: of those that cost about the least, the one most like the policy.

        Many schedules are equally good. Shown now one and now another, a policy learns the mean of both,
        which may be neither; so each round shows what the one before it leant to. Without a policy the
        shortest schedule is taken.
        """
        exact = self.task.job(self.task.initial()).known is not None
        limit = min(self.costs.values()) * (1.0 if exact else ALIKE)
        good = [schedule for schedule, cost in self.costs.items() if cost <= limit]
        if policy is None:
            chosen = min(good, key=len)
        else:
            chosen = max(good, key=lambda schedule: _log_likelihood(policy, self.task, schedule))
        return Demonstration(self.task, chosen, self.costs[chosen])


def found(task: Task[Any], costs: Mapping[Schedule, float]) -> Found:
    """Return the cheapest `KEPT` of some schedules."""
    ranked = sorted(costs.items(), key=lambda pair: pair[1])
    return Found(task, dict(ranked[:KEPT]))


KEPT = 24
"""Number of schedules that are remembered of a program."""

ALIKE = 1.04
"""Costs up to this factor above the least count as equally good; measured costs scatter as much."""


def search_programs(
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    strategy: Strategy,
    budget: Budget,
    seed: int,
    policy: TorchPolicy | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Found]:
    """Search each program; those of which nothing runs are left out."""
    searched: list[Found] = []
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"searching {task.uri} ({place + 1} of {len(tasks)})")
        result = run_search(strategy, task, evaluator, budget, seed + place, policy)
        if result.finalists:
            searched.append(_costs(task, result.finalists, evaluator))
    return searched


def _costs(task: Task[Any], schedules: Sequence[Schedule], evaluator: Evaluator) -> Found:
    jobs = [task.job(states_along(task, schedule)[-1]) for schedule in schedules]
    costs = [measurement.cost for measurement in evaluator.evaluate(jobs)]
    return found(task, dict(zip(schedules, costs, strict=True)))


def greedy_share(policy: TorchPolicy, searched: Sequence[Found], evaluator: Evaluator) -> float:
    """Return the geometric mean of the least cost known over that of the policy's own schedule.

    Where that schedule fails, the cost of the program as written is taken.
    """
    shares: list[float] = []
    for one in searched:
        [path] = rollout(one.task, policy, 1, None)
        jobs = [one.task.job(node.state) for node in (outcome(one.task, path), path[0])]
        own, written = (measurement.cost for measurement in evaluator.evaluate(jobs))
        shares.append(math.log(min(one.costs.values()) / (own if math.isfinite(own) else written)))
    return math.exp(float(np.mean(shares)))


def _log_likelihood(policy: TorchPolicy, task: Task[Any], schedule: Schedule) -> float:
    """Return the log-probability that a policy schedules a program so."""
    states = states_along(task, schedule)[:-1]
    if not states:
        return 0.0
    observations = [task.observe(state) for state in states]
    masks = [task.mask(state) for state in states]
    return float(policy.log_probability(observations, masks, schedule.actions).sum())


def transfer(
    searched: Sequence[Found],
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    keep: int = 3,
    progress: Callable[[str], None] | None = None,
) -> list[Found]:
    """Return for each program how the `keep` cheapest schedules of each searched one do on it.

    A schedule found for one program often suits others; trying them all costs far less than searching
    each program, and few distinct schedules are easier to learn than many. Programs on which none runs are
    left out.

    Raises:
        IrgymError: None runs on any.
    """
    schedules = list(dict.fromkeys(one for each in searched for one in list(each.costs)[:keep]))
    transferred: list[Found] = []
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"transferring {len(schedules)} schedules to {task.uri} ({place + 1} of {len(tasks)})")
        fitting = [schedule for schedule in schedules if _applies(task, schedule)]
        one = _costs(task, fitting, evaluator)
        if any(map(math.isfinite, one.costs.values())):
            transferred.append(one)
    if not transferred:
        raise IrgymError("no schedule runs on any of the programs: search for longer, or other programs")
    return transferred


def _applies(task: Task[Any], schedule: Schedule) -> bool:
    """Say whether a schedule applies and leaves room below the horizon."""
    if len(schedule) >= task.horizon:
        return False
    try:
        states_along(task, schedule)
    except ScheduleError:
        return False
    return True


def clone(config: ImitationConfig, demonstrations: Sequence[Demonstration]) -> TorchPolicy:
    """Train a policy to repeat the demonstrations, by maximum likelihood.

    After its last action a schedule is shown to go on without change to the end of the episode, by `next` or
    `stop` where the space has such an action.
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
    rng = np.random.default_rng(config.seed)
    observations, masks, actions = with_exchanged(*_steps(demonstrations), config.exchanged, rng)
    batch = actor.encoder.collate(observations)
    actor.encoder.adapt(batch)
    legal = torch.as_tensor(layout.legal(masks))
    choices = torch.as_tensor(layout.choices(actions))
    descent = Descent(actor.parameters(), config.lr, config.max_grad_norm)
    for _ in range(config.epochs):
        order = torch.as_tensor(rng.permutation(len(actions)))
        for start in range(0, len(order), config.minibatch):
            part = order[start : start + config.minibatch]
            scores = actor.forward(actor.encoder.select(batch, part))
            evaluated = heads.evaluate(scores, legal[part], choices[part], layout, actor.links)
            descent.step(-evaluated.log_prob.mean())
    return TorchPolicy(actor)


def _steps(demonstrations: Sequence[Demonstration]) -> tuple[list[Any], list[Mask], list[Any]]:
    """Return observation, mask and action of every step of the demonstrations."""
    observations: list[Any] = []
    masks: list[Mask] = []
    actions: list[Any] = []
    for shown in demonstrations:
        task = shown.task
        state = task.initial()
        for action in chain(shown.schedule.actions, _onward(task.space)):
            if task.terminal(state):
                break
            observations.append(task.observe(state))
            masks.append(task.mask(state))
            actions.append(action)
            state = task.step(state, action)
    return observations, masks, actions


def with_exchanged(
    observations: list[Any],
    masks: list[Mask],
    actions: list[Action],
    copies: int,
    rng: np.random.Generator,
) -> tuple[list[Any], list[Mask], list[Action]]:
    """Return the steps, and copies of them whose rows but the first are first rows of other steps, or zeros.

    Raises:
        IrgymError: Copies are wanted, and observations have no rows.
    """
    if not copies:
        return observations, masks, actions
    rows: NDArray[np.float32] = np.stack([np.asarray(observation) for observation in observations])
    if rows.ndim != 3:
        raise IrgymError("this environment's observations have no rows to exchange: set exchanged to 0")
    changed: list[NDArray[np.float32]] = [rows]
    for _ in range(copies):
        others = rows[rng.integers(len(rows), size=rows.shape[:2]), 0]
        others *= rng.integers(2, size=(*rows.shape[:2], 1), dtype=np.int64).astype(rows.dtype)
        others[:, 0] = rows[:, 0]
        changed.append(others)
    joined: NDArray[np.float32] = np.concatenate(changed)
    return list(joined), masks * (1 + copies), actions * (1 + copies)


def _onward(space: ActionSpace) -> Iterator[Action]:
    """Yield the action that leads to the end of an episode without changing the program, again and again."""
    kinds = [kind.name for kind in space.kinds]
    names = [name for name in ("stop", "next") if name in kinds]
    return repeat(Action(kinds.index(names[0]))) if names else iter(())
