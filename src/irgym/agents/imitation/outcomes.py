"""Complete outcomes of a program: all its states, their costs, and the least cost reachable from each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Evaluator, Job
from irgym.core.task import Task

TOGETHER = 64
"""Programs whose states are measured together."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A program with all its states.

    Attributes:
        task: The program.
        states: Its states, the initial one first.
        actions: For each state, the actions that apply, in the order of the space's flat view.
        following: For each state, the places of the successor states of these actions.
        costs: The logarithm of each state's cost, shape [K].
        price: Addition to the logarithm for each action.
    """

    task: Task[Any]
    states: Sequence[Any]
    actions: Sequence[Sequence[Action]]
    following: Sequence[NDArray[np.int64]]
    costs: NDArray[np.float64]
    price: float = 0.0

    @cached_property
    def least(self) -> NDArray[np.float64]:
        """The least cost reachable from each state, including the price of the actions, shape [K]."""
        least = self.costs.copy()
        changed = True
        while changed:
            changed = False
            for state in range(len(least) - 1, -1, -1):
                best = min(least[state], least[self.following[state]].min(initial=np.inf) + self.price)
                changed = changed or best < least[state]
                least[state] = best
        return least

    def priced(self, price: float) -> "Outcomes":
        """Return these outcomes with a price for each action, which favours the shorter of two equal ways."""
        return replace(self, price=price)

    def advantages(self, state: int) -> NDArray[np.float64]:
        """Return the logarithm of the best cost reduction of each action in a state, shape [A]."""
        return self.costs[state] - self.least[self.following[state]] - self.price


def all_outcomes(
    tasks: Iterable[Task[Any]], evaluator: Evaluator, most: int
) -> Iterator[tuple[Task[Any], Outcomes | None]]:
    """Yield each program with all its outcomes, or None if there are too many or some cost is not finite.

    Args:
        tasks: The programs.
        evaluator: Evaluates costs.
        most: Limit on the states of a program.
    """
    waiting: list[tuple[Task[Any], _Graph]] = []
    for task in tasks:
        graph = _graph(task, most)
        if graph is None:
            yield task, None
            continue
        waiting.append((task, graph))
        if len(waiting) == TOGETHER:
            yield from _measured(waiting, evaluator)
            waiting = []
    yield from _measured(waiting, evaluator)


_Graph = tuple[list[Any], list[list[Action]], list[NDArray[np.int64]]]


def _graph(task: Task[Any], most: int) -> _Graph | None:
    """Return the states of a program, the actions that apply in each, and the places of their successors."""
    states = [task.initial()]
    places = {states[0]: 0}
    actions: list[list[Action]] = []
    following: list[NDArray[np.int64]] = []
    for state in states:  # grows
        there = [] if task.terminal(state) else _in_order(task.space, task.mask(state))
        found: list[int] = []
        for action in there:
            after = task.step(state, action)
            if after not in places:
                places[after] = len(states)
                states.append(after)
            found.append(places[after])
        if len(states) > most:
            return None
        actions.append(there)
        following.append(np.array(found, dtype=np.int64))
    return states, actions, following


def _in_order(space: ActionSpace, mask: Mask) -> list[Action]:
    """Return the legal actions of a mask, in the order of the space's flat view."""
    fixed = [action for action, applies in zip(space.flat, space.flat_mask(mask), strict=True) if applies]
    return [*fixed, *(Action(kind, (), name) for kind, name in mask.candidates)]


def _measured(
    waiting: Sequence[tuple[Task[Any], _Graph]], evaluator: Evaluator
) -> Iterator[tuple[Task[Any], Outcomes | None]]:
    jobs: list[Job] = [task.job(state) for task, graph in waiting for state in graph[0]]
    costs = iter([measurement.cost for measurement in evaluator.evaluate(jobs)])
    for task, (states, actions, following) in waiting:
        own = np.log(np.array([next(costs) for _ in states]))
        if np.isfinite(own).all():
            yield task, Outcomes(task, states, actions, following, own)
        else:
            yield task, None
