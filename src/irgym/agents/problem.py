"""The training problem: programs, evaluator and reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from irgym.agents.deadline import Deadline
from irgym.core import capabilities
from irgym.core.catalogue import ENVIRONMENTS, task_of
from irgym.core.cost import Call, Evaluator
from irgym.core.limits import UNLIMITED, Limits, limited
from irgym.core.reward import Reward, Shaped
from irgym.core.task import Task


@dataclass(frozen=True)
class Problem:
    """Programs to learn from, with the evaluator of their costs and the reward.

    Attributes:
        tasks: At least one; all with the same actions and kind of observation. The sequence may be lazy.
        evaluator: Evaluates costs.
        reward: Maps costs to rewards.
        peaks: The peak of each target by its name, in GFLOP/s, for rewards that need an ideal cost.
        makers: Calls that make the tasks in another process, one for each of `tasks`; empty if only this
            process can make them.
        families: The family of each program by its URI, see `irgym.core.environment.Environment.family`;
            all others are of one family.
        deadline: When the training stops.
    """

    tasks: Sequence[Task[Any]]
    evaluator: Evaluator
    reward: Reward
    peaks: Mapping[str, float] = field(default_factory=dict[str, float])
    makers: Sequence[Call] = ()
    families: Mapping[str, str] = field(default_factory=dict[str, str])
    deadline: Deadline = field(default_factory=Deadline)

    def analysed(self) -> "Problem":
        """Return this problem with tasks that hold an analysis of each state."""
        return replace(self, tasks=tuple(capabilities.analysed(task) for task in self.tasks))

    def unshaped(self) -> "Problem":
        """Return this problem without reward shaping, to judge a policy by."""
        return replace(self, reward=self.reward.reward) if isinstance(self.reward, Shaped) else self


def make_task(
    environment: str,
    uri: str,
    backend: str | None,
    target: str | None,
    objective: str | None,
    limits: Limits,
) -> Task[Any]:
    """Return the task of a URI within limits; back end, target and objective default to the environment's.

    Raises:
        IrgymError: There is no such environment, program, back end, target, objective or action here.
    """
    return limited(task_of(ENVIRONMENTS.load(environment), uri, backend, target, objective), limits)


def makers_of(
    environment: str,
    uris: Sequence[str],
    backend: str | None = None,
    targets: Sequence[str | None] = (None,),
    objective: str | None = None,
    limits: Limits = UNLIMITED,
) -> list[Call]:
    """Return calls of `make_task` for each program and target, which any process can run."""
    name = f"{make_task.__module__}:{make_task.__name__}"
    return [
        Call(name, (environment, uri, backend, target, objective, limits))
        for uri in uris
        for target in targets
    ]
