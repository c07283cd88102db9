"""Behaviour cloning: a policy learns to repeat demonstrations.

Policy gradients start from random schedules. Where nearly all of these are bad, and the way to a good one
leads through worse ones, training ends in the nearest local optimum. A policy cloned from demonstrations
starts beyond it; reinforcement learning then refines it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from irgym.agents.construction import check_network, spec_of, start_from
from irgym.agents.devices import device_named
from irgym.agents.hyperparameters import (
    Count,
    CountOrNone,
    DeviceOptions,
    NetworkOptions,
    Positive,
    RandomOptions,
)
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.optimisation import Descent, anneal, seeded
from irgym.base.errors import IrgymError
from irgym.base.values import Range
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.task import Task
from irgym.networks import likelihood
from irgym.networks.actor_critic import Actor
from irgym.networks.policy import TorchPolicy
from irgym.networks.transfer import moved
from irgym.policies.layout import LAYOUTS


@dataclass(frozen=True)
class ImitationConfig(DeviceOptions, RandomOptions, NetworkOptions):
    """Hyper-parameters of behaviour cloning."""

    name: ClassVar[str] = "imitation"
    epochs: Count = 60
    """Passes over the demonstrations."""
    minibatch: Count = 128
    """Steps in a gradient step."""
    lr: Positive = 1e-3
    """Learning rate of Adam at the start."""
    lr_end: Positive = 1e-4
    """Learning rate in the last epoch."""
    max_grad_norm: Positive = 1.0
    """The gradient is scaled down to this norm."""
    actions: Literal["structured", "autoregressive", "flat"] = "structured"
    """As in `ppo`: structured, autoregressive or flat."""
    exchanged: CountOrNone = 0
    """Copies of each step in which all rows of the observation but the first are replaced by first rows of
    other steps, or zeros: for observations of an operation and its neighbours. Where demonstrations have
    few neighbours, this keeps a policy from depending on them."""
    alike: Annotated[float, Range(low=1)] = 1.04
    """Factor above the least cost up to which costs count as equally good; measured costs scatter as much."""
    selections: Count = 1
    """Rounds of choosing one of each program's equally good schedules. The first round takes the shortest, or
    the likeliest under the policy of the previous round; each further round takes the likeliest under a
    policy cloned from the choices for the other half of the programs."""
    noisy: CountOrNone = 0
    """Copies of each demonstration with random actions in between. The policy learns only the other actions;
    copies with another result are left out."""
    hidden_inputs: Annotated[float, Range(low=0, below=1)] = 0.0
    """Probability that a feature, such as a kind of node or a trait of rules, is set to 0 throughout a graph
    in training. A policy that can do without some features copes with new values of them."""
    start: str = ""
    """Policy whose weights to start from: a run folder, a file or a logged artefact; empty for random
    weights."""

    def check(self) -> None:
        """Check the options of the network, before any search.

        Raises:
            IrgymError: One is invalid; the message says which.
        """
        check_network(self)


def actor_for(config: ImitationConfig, task: Task[Any]) -> Actor:
    """Return the network to train, with its initial weights.

    Raises:
        StorageError: The file of the policy to start from holds none.
        IrgymError: That policy has another network, there is no such encoder, or it cannot hide inputs.
    """
    with seeded(config.seed):
        actor = Actor(spec_of(config, task), LAYOUTS[config.actions](task.space), config.observation)
    if config.hidden_inputs:
        first = actor.encoder.collate([task.observe(task.initial(), config.observation)])
        actor.encoder.hide(first, config.hidden_inputs, torch.Generator())
    if config.start:
        start_from(config.start, actor)
    return actor


def clone(config: ImitationConfig, demonstrations: Sequence[Demonstration]) -> TorchPolicy:
    """Train a policy to repeat the demonstrations, by maximum likelihood.

    Where a kind of action `ends` an episode, or a turn of it, demonstrations go on with this action after
    their schedule, to the end of the episode.

    Raises:
        IrgymError: The policy to start from has another network, or observations have no rows to exchange.
    """
    torch.set_num_threads(config.threads)
    task = demonstrations[0].task
    actor = actor_for(config, task)
    layout = actor.layout
    rng = np.random.default_rng(config.seed)
    observations, masks, actions = with_exchanged(
        *_steps(demonstrations, config.observation), config.exchanged, rng
    )
    batch = actor.encoder.collate(observations)
    if not config.start:
        # Other statistics of the inputs would change what the weights of a policy to start from mean.
        actor.encoder.adapt(batch)
    legal = torch.as_tensor(layout.legal(masks))
    choices = torch.as_tensor(layout.choices(actions, masks))
    device = device_named(config.device)
    actor.to(device)
    descent = Descent(actor.parameters(), config.lr, config.max_grad_norm)
    generator = torch.Generator().manual_seed(config.seed)
    for epoch in range(config.epochs):
        descent.set_lr(anneal(config.lr, config.lr_end, epoch / max(1, config.epochs - 1)))
        order = torch.as_tensor(rng.permutation(len(actions)))
        for start in range(0, len(order), config.minibatch):
            part = order[start : start + config.minibatch]
            seen = actor.encoder.select(batch, part)
            if config.hidden_inputs:
                seen = actor.encoder.hide(seen, config.hidden_inputs, generator)
            seen, masked, taken = moved((seen, legal[part], choices[part]), device)
            evaluated = likelihood.evaluate(actor.forward(seen), masked, taken, layout, actor.pair_scores)
            descent.step(-evaluated.log_prob.mean())
    return TorchPolicy(actor.to("cpu"))


def _steps(
    demonstrations: Sequence[Demonstration], observation: str
) -> tuple[list[Any], list[Mask], list[Any]]:
    """Return observation, mask and action of every step of the demonstrations."""
    observations: list[Any] = []
    masks: list[Mask] = []
    actions: list[Any] = []
    for shown in demonstrations:
        task = shown.task
        state = task.initial()
        for place, action in enumerate(chain(shown.schedule.actions, _onward(task.space))):
            if task.terminal(state):
                break
            if place not in shown.noise:
                observations.append(task.observe(state, observation))
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
    """Yield repeatedly the action that ends an episode without changing the program, if there is one."""
    ending = [Action(index) for index, kind in enumerate(space.kinds) if kind.ends]
    return repeat(ending[0]) if ending else iter(())
