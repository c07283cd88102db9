"""Ape-X's actors, which run in the isolated processes of a farm and measure candidates there.

Between calls a process caches its tasks, the last network that it received, and its measurements.
"""

import copy
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch

from irgym.agents.algorithms.q_learner import exploring
from irgym.agents.episodes.played import Episodes
from irgym.agents.episodes.rollout import play
from irgym.agents.episodes.trajectories import FloatArray, Trajectories
from irgym.core import capabilities
from irgym.core.actions import BoolArray
from irgym.core.cost import Call, Job, Measurement
from irgym.core.reward import Reward
from irgym.core.task import Task
from irgym.measure.evaluators import Identity, Inline, identity_of, summed
from irgym.measure.isolation.protocol import resolve
from irgym.measure.machine import restart_clock
from irgym.networks.encoders import Batch
from irgym.networks.q_network import QNetwork
from irgym.policies import heads

TASKS = 4096
"""Tasks that a process caches."""

MEASURED = 20_000
"""Measurements that a process caches."""


@dataclass(frozen=True)
class Assignment:
    """Work for an actor. Equal assignments give equal episodes, in any process and at any time.

    Attributes:
        makers: Calls that make the tasks, one for each episode.
        network: The Q-network that chooses the actions, as `pack` returned it.
        reward: Determines the costs and potentials to compute.
        epsilon: Share of uniformly random legal actions.
        seed: Seed of the actor's random choices.
    """

    makers: tuple[Call, ...]
    network: bytes
    reward: Reward
    epsilon: float
    seed: tuple[int, ...]

    @property
    def call(self) -> Call:
        """The call that carries it out."""
        return Call(f"{__name__}:{act.__name__}", (self,))


@dataclass(frozen=True)
class Experience:
    """Episodes of an actor, with their measurements and values.

    Attributes:
        episodes: Its episodes. The jobs' calls have no arguments, since recording a cost needs none.
        measurements: One for each of the episodes' jobs.
        taken: Shape [M]; the value of the action taken in each step, by the actor's network.
        best: Shape [M]; the greatest value of a legal action.
    """

    episodes: Episodes
    measurements: list[Measurement]
    taken: FloatArray
    best: FloatArray


def pack(network: QNetwork) -> bytes:
    """Return a network as bytes, for assignments."""
    # A copy: a learner's weights are views of one vector, which would be stored once for each of them.
    return pickle.dumps(copy.deepcopy(network), pickle.HIGHEST_PROTOCOL)


def act(assignment: Assignment) -> Experience:
    """Play whole episodes, measure what their rewards need, and value their steps.

    The time limit of a call applies to each step, each new task and each candidate.

    Raises:
        IrgymError: A task cannot be made here, or none lets any action be taken.
    """
    network = _network(assignment.network)
    tasks = [_task(maker, assignment.reward.shaped) for maker in assignment.makers]
    explore = exploring(network, np.random.default_rng(assignment.seed), assignment.epsilon)

    def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
        restart_clock()
        return explore(batch, legal)

    episodes = play(tasks, assignment.reward, network.encoder, network.layout, choose)
    measurements = summed(episodes.jobs, _measure_all)
    jobs = [replace(job, call=Call(job.call.function)) for job in episodes.jobs]
    sent = replace(episodes, jobs=jobs, states=[])
    return Experience(sent, measurements, *values(network, episodes.trajectories))


def values(network: QNetwork, trajectories: Trajectories) -> tuple[FloatArray, FloatArray]:
    """Return the values of the actions taken and the greatest ones of a legal action, each of shape [M]."""
    with torch.inference_mode():
        q = network.forward(trajectories.observations, torch.as_tensor(trajectories.legal))[:, 0].numpy()
    taken = np.take_along_axis(q, trajectories.choices, axis=1)[:, 0]
    return taken, np.where(trajectories.legal[:, 0], q, heads.MASKED).max(axis=1).astype(np.float32)


@lru_cache(maxsize=2)
def _network(packed: bytes) -> QNetwork:
    return cast(QNetwork, pickle.loads(packed))


@lru_cache(maxsize=TASKS)
def _task(maker: Call, analysed: bool) -> Task[Any]:
    restart_clock()
    task = cast(Task[Any], resolve(maker)(*maker.arguments))
    return capabilities.analysed(task) if analysed else task


@dataclass(frozen=True)
class _Request:
    """A job that compares by its texts alone."""

    identity: Identity
    job: Job = field(compare=False)


def _measure_all(jobs: Sequence[Job]) -> list[Measurement]:
    return [job.known or _measure(_Request(identity_of(job), job)) for job in jobs]


@lru_cache(maxsize=MEASURED)
def _measure(request: _Request) -> Measurement:
    restart_clock()
    [measurement] = Inline().evaluate([request.job])
    return measurement
