"""The choice of a search: named by the user, or the one that suits the task."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError
from irgym.core.capabilities import Counted, ask
from irgym.core.environment import DEFAULT, Environment
from irgym.core.task import Task
from irgym.policies.policy import Policy
from irgym.search.naming import NamedSearch, search_named
from irgym.search.policies import can_lead, policy_for, policy_name
from irgym.search.strategy import Strategy, needs_policy, takes_policy

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
    search: str | Strategy | None,
    policy: str | Path | Policy | None,
    evaluations: int | None = None,
) -> ChosenSearch:
    """Return the search and the policy to use.

    Args:
        environment: Where policies that ship are found.
        task: The program.
        search: A strategy, or the name of one, as `search_named` reads it; None to choose.
        policy: A policy, or the name of one; None to choose.
        evaluations: Greatest number of evaluations; None for no limit.

    Raises:
        IrgymError: There is no such search or policy, or the search takes no policy although one is given.
    """
    few = FEW if evaluations is None else min(FEW, evaluations)
    named, leader = _named(environment, task, search, policy, few)
    if leader is None:
        return ChosenSearch(named.name, named.strategy, None, None)
    name = policy_name(leader)
    return ChosenSearch(named.name, named.strategy, name, policy_for(environment, leader, task))


def _named(
    environment: Environment,
    task: Task[Any],
    search: str | Strategy | None,
    policy: str | Path | Policy | None,
    few: int,
) -> tuple[NamedSearch, str | Path | Policy | None]:
    """Return the search, and the policy that leads it."""
    if search is not None:
        named = search_named(search)
        if named.policy and policy is not None:
            raise IrgymError(f"{named.name!r} names a policy, as the option policy does: leave one out")
        leader = policy if policy is not None else named.policy or None
        if needs_policy(named.strategy):
            return named, DEFAULT if leader is None else leader
        if leader is not None and not takes_policy(named.strategy):
            raise IrgymError(
                f"the search {named.name} takes no policy: leave out the policy, or choose the search guided "
                "or rollout, which a policy leads"
            )
        return named, leader
    if policy is not None:
        return search_named("guided"), policy
    counted = ask(task, Counted)
    if task.objective.exact and counted is not None and counted.programs() <= few:
        return search_named("exhaustive"), None
    if can_lead(environment, task):
        return search_named("guided"), DEFAULT
    return search_named("evolutionary"), None
