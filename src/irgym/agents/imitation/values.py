"""Learning of action values from programs whose outcomes are all known.

The value of an action is the least cost reachable after it, which is exact if all states are measured. This
is imitation of cost-to-go (Ross and Bagnell: AggreVaTe, arXiv 1406.5979) with a perfect expert. Where most
actions are equally good, the loss of each action teaches more than the best action.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from irgym.agents.construction import check_network, spec_of
from irgym.agents.devices import acting_copy, device_named, refresh
from irgym.agents.hyperparameters import (
    Count,
    DeviceOptions,
    NetworkOptions,
    Positive,
    RandomOptions,
    Weight,
)
from irgym.agents.imitation.outcomes import Outcomes
from irgym.agents.optimisation import Descent, anneal, seeded
from irgym.base.values import Range
from irgym.core.candidates import list_length
from irgym.networks.encoders import EncoderSpec
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_ensemble import QEnsemble
from irgym.networks.q_network import QNetwork
from irgym.networks.transfer import moved
from irgym.policies.layout import LAYOUTS, ActionLayout


@dataclass(frozen=True)
class ValuesConfig(DeviceOptions, RandomOptions, NetworkOptions):
    """Hyper-parameters of learning values."""

    name: ClassVar[str] = "values"
    epochs: Count = 40
    """Passes over the programs; each visits some states of each program."""
    minibatch: Count = 128
    """States in a gradient step."""
    lr: Positive = 2e-3
    """Learning rate of Adam at the start; it falls to 0."""
    max_grad_norm: Positive = 1.0
    """The gradient is scaled down to this norm."""
    average: Annotated[float, Range(low=0, below=1)] = 0.998
    """Greatest decay of the running mean of the weights, which the policy has."""
    largest: Positive = 0.15
    """Limit at which gains and losses (logarithms of costs) are clipped."""
    scale: Positive = 20.0
    """Factor on these, so that targets are about 1."""
    members: Count = 1
    """Networks of the ensemble, with different initial weights; the policy uses their mean value."""
    price: Weight = 1e-4
    """Price of an action, as a logarithm of costs: it favours the shorter of two equal ways."""
    margin: Weight = 0.05
    """Margin by which an action's value must exceed that of stopping, after `scale`."""
    most: Annotated[int, Range(low=2)] = 2048
    """Limit on the states of a program; programs with more are skipped."""

    def check(self) -> None:
        """Check the options of the network, before anything is measured.

        Raises:
            IrgymError: One is invalid; the message says which.
        """
        check_network(self)


def learn_values(
    config: ValuesConfig,
    programs: Sequence[Outcomes],
    progress: Callable[[str], None] | None = None,
) -> TorchPolicy:
    """Train a policy on the values of actions, by regression.

    Each epoch visits three states of each program: the initial state, a state on the current policy's path,
    and a state after random actions.

    Args:
        config: Hyper-parameters.
        programs: Programs with their outcomes, at least one.
        progress: Called with a line of text about the current work.

    Raises:
        IrgymError: The space has too many actions to list.
        DivergedError: The training has reached numbers that are not finite.
    """
    torch.set_num_threads(config.threads)
    first = programs[0].task
    list_length(first.space)  # raises if the actions cannot be listed
    programs = [program.priced(config.price) for program in programs]
    spec, layout = spec_of(config, first), LAYOUTS["flat"](first.space)
    learnt = [
        _learnt(replace(config, seed=config.seed + number), spec, layout, programs, number, progress)
        for number in range(config.members)
    ]
    network = QEnsemble(spec, layout, config.observation, config.members)
    for member, other in zip(network.members, learnt, strict=True):
        member.load_state_dict(other.state_dict())
    return TorchPolicy(network)


def _learnt(
    config: ValuesConfig,
    spec: EncoderSpec,
    layout: ActionLayout,
    programs: Sequence[Outcomes],
    number: int,
    progress: Callable[[str], None] | None,
) -> QNetwork:
    """Train and return one network."""
    with seeded(config.seed):
        network = QNetwork(spec, layout, config.observation)
    rng = np.random.default_rng(config.seed)
    some = [(program, state) for program in programs for state in (0, _random_state(program, rng))]
    observed = [program.task.observe(program.states[state], config.observation) for program, state in some]
    network.encoder.adapt(network.encoder.collate(observed))
    device = device_named(config.device)
    slow = deepcopy(network)
    acting = acting_copy(slow, device)
    for learning in (network, slow):
        learning.to(device)
    policy = TorchPolicy(acting)
    descent = Descent(network.parameters(), config.lr, config.max_grad_norm)
    steps = 0
    for epoch in range(config.epochs):
        if progress is not None:
            progress(
                f"learning from {len(programs)} programs (epoch {epoch + 1} of {config.epochs}, network "
                f"{number + 1} of {config.members})"
            )
        descent.set_lr(anneal(config.lr, 0.0, epoch / config.epochs))
        refresh(acting, slow)
        visited = _visited(policy, programs, rng)
        for begin in range(0, len(visited), config.minibatch):
            descent.step(_loss(network, visited[begin : begin + config.minibatch], config, device))
            steps += 1  # early on there is little to average
            _approach(slow, network, min(config.average, steps / (10 + steps)))
    _end_sooner(slow, config.margin)
    return slow


_Visit = tuple[Outcomes, int]


def _visited(policy: TorchPolicy, programs: Sequence[Outcomes], rng: np.random.Generator) -> list[_Visit]:
    """Return the states that an epoch visits, in random order."""
    found: list[_Visit] = [(program, 0) for program in programs]
    for program, path in zip(programs, _ways(policy, programs), strict=True):
        found.append((program, path[int(rng.integers(len(path)))]))
        found.append((program, _random_state(program, rng)))
    return [found[place] for place in rng.permutation(len(found))]


def _ways(policy: TorchPolicy, programs: Sequence[Outcomes]) -> list[list[int]]:
    """Return the states on a policy's path through each program."""
    ways = [[0] for _ in programs]
    going = [place for place, program in enumerate(programs) if program.actions[0]]
    while going:
        states = [(programs[place], ways[place][-1]) for place in going]
        observations = [
            program.task.observe(program.states[state], policy.observation) for program, state in states
        ]
        masks = [program.task.mask(program.states[state]) for program, state in states]
        chosen = policy.act(observations, masks, None)
        for place, (program, state), action in zip(going, states, chosen, strict=True):
            ways[place].append(int(program.following[state][program.actions[state].index(action)]))
        going = [
            place
            for place in going
            if programs[place].actions[ways[place][-1]] and ways[place][-1] not in ways[place][:-1]
        ]
    return [way[:-1] if len(way) > 1 else way for way in ways]


def _random_state(program: Outcomes, rng: np.random.Generator) -> int:
    """Return a non-terminal state after random actions."""
    state = 0
    for _ in range(int(rng.integers(program.task.horizon))):
        onward = [after for after in program.following[state].tolist() if program.actions[after]]
        if not onward:
            break
        state = int(rng.choice(onward))
    return state


def _loss(network: QNetwork, visits: Sequence[_Visit], config: ValuesConfig, device: torch.device) -> Tensor:
    """Return the regression loss over all legal actions of some states."""
    task_states = [(program.task, program.states[state]) for program, state in visits]
    masks = [task.mask(state) for task, state in task_states]
    legal = torch.as_tensor(network.layout.legal(masks))
    batch = network.encoder.collate([task.observe(state, config.observation) for task, state in task_states])
    wanted = np.concatenate([program.advantages(state) for program, state in visits])
    wanted = np.clip(wanted, -config.largest, config.largest) * config.scale
    batch, legal, values = moved((batch, legal, torch.as_tensor(wanted, dtype=torch.float32)), device)
    found = network.forward(batch, legal)
    return functional.smooth_l1_loss(found[legal[..., : found.shape[-1]]], values)


def _approach(slow: torch.nn.Module, fast: torch.nn.Module, kept: float) -> None:
    with torch.no_grad():
        for mine, other in zip(slow.parameters(), fast.parameters(), strict=True):
            mine.lerp_(other, 1 - kept)


def _end_sooner(network: QNetwork, margin: float) -> None:
    """Raise a network's value of the actions that end an episode by a margin."""
    space = network.layout.space
    with torch.no_grad():
        for place, action in enumerate(space.flat):
            if space.kinds[action.kind].ends:
                network.advantage.bias[place] += margin
