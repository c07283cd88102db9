"""Values: a policy learns what each action is worth from programs of which all outcomes are known.

The value of an action is the least cost that it leads to, which is exact where all states can be measured.
This is imitation by cost-to-go (Ross and Bagnell: AggreVaTe, arXiv 1406.5979) with the best expert that there
is. Where most actions lose nothing, how much one loses says more than which one is best.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from irgym.agents.hyperparameters import Count, NetworkOptions, Positive, RandomOptions, Weight
from irgym.agents.imitation.outcomes import Outcomes
from irgym.agents.networks import check_network, spec_of
from irgym.agents.optimisation import Descent, anneal, seeded
from irgym.base.values import Range
from irgym.core.candidates import list_length
from irgym.networks.encoders import EncoderSpec
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_ensemble import QEnsemble
from irgym.networks.q_network import QNetwork
from irgym.policies.layout import LAYOUTS, ActionLayout


@dataclass(frozen=True)
class ValuesConfig(RandomOptions, NetworkOptions):
    """Hyper-parameters of learning values."""

    name: ClassVar[str] = "values"
    epochs: Count = 40
    """Passes over the programs; each visits some states of each."""
    minibatch: Count = 128
    """States in a gradient step."""
    lr: Positive = 2e-3
    """Learning rate of Adam at the start; it falls to none."""
    max_grad_norm: Positive = 1.0
    """The gradient is scaled down to this norm."""
    average: Annotated[float, Range(low=0, below=1)] = 0.998
    """The policy has a running mean of the weights; this is the share that it keeps in each step, at most."""
    largest: Positive = 0.15
    """Greater gains and losses, as logarithms of costs, count as this."""
    scale: Positive = 20.0
    """What these are multiplied by, so that they are about 1."""
    members: Count = 1
    """Networks that learn apart, from other first weights; the policy goes by the mean of their values."""
    price: Weight = 1e-4
    """What an action costs, as a logarithm of costs: of two ways to one end the shorter is worth more."""
    margin: Weight = 0.05
    """By how much an action must be worth more than to stop, after `scale`."""
    most: Annotated[int, Range(low=2)] = 2048
    """States that a program may have; programs with more are not learnt from."""

    def check(self) -> None:
        """Make sure that such a network can be made, before anything is measured.

        Raises:
            IrgymError: It cannot; the message says why.
        """
        check_network(self)


def learn_values(
    config: ValuesConfig,
    programs: Sequence[Outcomes],
    progress: Callable[[str], None] | None = None,
) -> TorchPolicy:
    """Train a policy on the values of actions, by regression.

    Each epoch visits three states of each program: the first one, one on the way of the policy as it is, and
    one after random actions.

    Args:
        config: Hyper-parameters.
        programs: Programs with their outcomes, one at least.
        progress: Told in a line what is being done.

    Raises:
        IrgymError: The space has too many actions to list.
        DivergedError: The training has come to numbers that are not finite.
    """
    torch.set_num_threads(config.threads)
    first = programs[0].task
    list_length(first.space)  # or it says why there is none
    programs = [one.priced(config.price) for one in programs]
    spec, layout = spec_of(config, first), LAYOUTS["flat"](first.space)
    learnt = [
        _learnt(replace(config, seed=config.seed + number), spec, layout, programs, number, progress)
        for number in range(config.members)
    ]
    network = QEnsemble(spec, layout, config.observation, config.members)
    for one, other in zip(network.members, learnt, strict=True):
        one.load_state_dict(other.state_dict())
    return TorchPolicy(network)


def _learnt(
    config: ValuesConfig,
    spec: EncoderSpec,
    layout: ActionLayout,
    programs: Sequence[Outcomes],
    number: int,
    progress: Callable[[str], None] | None,
) -> QNetwork:
    """Return one network that has learnt."""
    with seeded(config.seed):
        network = QNetwork(spec, layout, config.observation)
    rng = np.random.default_rng(config.seed)
    some = [(one, state) for one in programs for state in (0, _random_state(one, rng))]
    observed = [one.task.observe(one.states[state], config.observation) for one, state in some]
    network.encoder.adapt(network.encoder.collate(observed))
    slow = deepcopy(network)
    policy = TorchPolicy(slow)
    descent = Descent(network.parameters(), config.lr, config.max_grad_norm)
    steps = 0
    for epoch in range(config.epochs):
        if progress is not None:
            progress(
                f"learning from {len(programs)} programs (epoch {epoch + 1} of {config.epochs}, network "
                f"{number + 1} of {config.members})"
            )
        descent.set_lr(anneal(config.lr, 0.0, epoch, config.epochs))
        visited = _visited(policy, programs, rng)
        for begin in range(0, len(visited), config.minibatch):
            descent.step(_loss(network, visited[begin : begin + config.minibatch], config))
            steps += 1  # so far there is little to average
            _approach(slow, network, min(config.average, steps / (10 + steps)))
    _end_sooner(slow, config.margin)
    return slow


_Visit = tuple[Outcomes, int]


def _visited(policy: TorchPolicy, programs: Sequence[Outcomes], rng: np.random.Generator) -> list[_Visit]:
    """Return the states that an epoch visits, in random order."""
    found: list[_Visit] = [(one, 0) for one in programs]
    for one, path in zip(programs, _ways(policy, programs), strict=True):
        found.append((one, path[int(rng.integers(len(path)))]))
        found.append((one, _random_state(one, rng)))
    return [found[place] for place in rng.permutation(len(found))]


def _ways(policy: TorchPolicy, programs: Sequence[Outcomes]) -> list[list[int]]:
    """Return the states that a policy comes through in each program."""
    ways = [[0] for _ in programs]
    going = [place for place, one in enumerate(programs) if one.actions[0]]
    while going:
        states = [(programs[place], ways[place][-1]) for place in going]
        observations = [one.task.observe(one.states[state], policy.observation) for one, state in states]
        masks = [one.task.mask(one.states[state]) for one, state in states]
        chosen = policy.act(observations, masks, None)
        for place, (one, state), action in zip(going, states, chosen, strict=True):
            ways[place].append(int(one.following[state][one.actions[state].index(action)]))
        going = [
            place
            for place in going
            if programs[place].actions[ways[place][-1]] and ways[place][-1] not in ways[place][:-1]
        ]
    return [way[:-1] if len(way) > 1 else way for way in ways]


def _random_state(one: Outcomes, rng: np.random.Generator) -> int:
    """Return a state that random actions lead to, in which there are actions."""
    state = 0
    for _ in range(int(rng.integers(one.task.horizon))):
        onward = [after for after in one.following[state].tolist() if one.actions[after]]
        if not onward:
            break
        state = int(rng.choice(onward))
    return state


def _loss(network: QNetwork, visits: Sequence[_Visit], config: ValuesConfig) -> Tensor:
    """Return how far the network is from the values of all actions in some states."""
    task_states = [(one.task, one.states[state]) for one, state in visits]
    masks = [task.mask(state) for task, state in task_states]
    legal = torch.as_tensor(network.layout.legal(masks))
    batch = network.encoder.collate([task.observe(state, config.observation) for task, state in task_states])
    found = network.forward(batch, legal)
    wanted = np.concatenate([one.advantages(state) for one, state in visits])
    wanted = np.clip(wanted, -config.largest, config.largest) * config.scale
    return functional.smooth_l1_loss(
        found[legal[..., : found.shape[-1]]], torch.as_tensor(wanted, dtype=torch.float32)
    )


def _approach(slow: torch.nn.Module, fast: torch.nn.Module, kept: float) -> None:
    with torch.no_grad():
        for mine, other in zip(slow.parameters(), fast.parameters(), strict=True):
            mine.lerp_(other, 1 - kept)


def _end_sooner(network: QNetwork, margin: float) -> None:
    """Have a network take what ends an episode for worth more than it is, by a margin."""
    space = network.layout.space
    with torch.no_grad():
        for place, action in enumerate(space.flat):
            if space.kinds[action.kind].ends:
                network.advantage.bias[place] += margin
