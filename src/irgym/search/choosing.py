"""The choice of a search: named by the user, or the one that suits the task."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError
from irgym.core.capabilities import Counted, ask
from irgym.core.environment import DEFAULT, Environment
from irgym.core.task import Task
from irgym.policies.policy import Policy
from irgym.search import SEARCHES
from irgym.search.policies import can_lead, policy_for, policy_name
from irgym.search.strategy import Strategy, needs_policy

FEW = 1024
"""Programs of a task that are searched exhaustively unless told otherwise, if costs are exact."""


@dataclass(frozen=True)
class ChosenSearch:
    """A strategy, and the policy that leads it.

    Attributes:
        name: Name of the search.
        strategy: The strategy.
        policy_name: Name of the policy; None without one.
        policy: The policy; None without one.
    """

    name: str
    strategy: Strategy
    policy_name: str | None
    policy: Policy | None

    @property
    def label(self) -> str:
        """The search in words."""
        return label(self.name, self.policy_name)


def label(search: str, policy: str | None) -> str:
    """Return a search, and the policy that leads it, in words."""
    return f"{search} search" + ("" if policy is None else f" led by policy {policy}")


def chosen_search(
    environment: Environment,
    task: Task[Any],
    search: str | None,
    policy: str | Path | Policy | None,
    evaluations: int | None = None,
) -> ChosenSearch:
    """Return the search and the policy to use.

    Args:
        environment: Where policies that ship are found.
        task: The program.
        search: Name of a search; None to choose.
        policy: A policy, or the name of one; None to choose.
        evaluations: Greatest number of evaluations; None for no limit.

    Raises:
        IrgymError: There is no such search or policy, or the search takes no policy although one is given.
    """
    few = FEW if evaluations is None else min(FEW, evaluations)
    name, leader = _names(environment, task, search, policy, few)
    strategy = SEARCHES.load(name)()
    if leader is None:
        return ChosenSearch(name, strategy, None, None)
    return ChosenSearch(name, strategy, policy_name(leader), policy_for(environment, leader, task))


def _names(
    environment: Environment,
    task: Task[Any],
    search: str | None,
    policy: str | Path | Policy | None,
    few: int,
) -> tuple[str, str | Path | Policy | None]:
    led = search is not None and needs_policy(SEARCHES.load(search)())
    if policy is not None and search is not None and not led:
        raise IrgymError(f"the search {search} takes no policy: choose guided or rollout")
    if policy is not None or led:
        return search or "guided", DEFAULT if policy is None else policy
    counted = ask(task, Counted)
    if search is None and task.objective.exact and counted is not None and counted.programs() <= few:
        return "exhaustive", None
    if search is None and can_lead(environment, task):
        return "guided", DEFAULT
    return search or "evolutionary", None
