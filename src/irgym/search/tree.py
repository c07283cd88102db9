"""The tree that a search walked: the schedules that it tried, with the costs of their programs."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from irgym.core.actions import Action, ActionSpace
from irgym.core.schedule import Candidate

OnEvaluated = Callable[[Sequence[Candidate], Sequence[float]], None]
"""Called with nodes that a search evaluated and their costs, infinite for failures."""

TREES = {".svg": "picture", ".dot": "graph for Graphviz", ".json": "all schedules"}
"""Suffixes of the files that a tree can be written to, by `irgym.reporting.trees`."""


@dataclass
class Branch:
    """A state of the tree: where the schedule of its actions leads.

    Attributes:
        action: The last action; None for the root.
        cost: The cost; infinite where the program failed, None where the schedule was not tried.
        place: Its place in the order of trying, from 1; 0 where it was not tried.
        branches: What follows, by action.
    """

    action: Action | None = None
    cost: float | None = None
    place: int = 0
    branches: "dict[Action, Branch]" = field(default_factory=dict[Action, "Branch"])


@dataclass
class SearchTree:
    """The tree that a search walks; `add` observes the search.

    Schedules that lead to one program, of which searches evaluate one, are separate branches.

    Attributes:
        root: The original program.
        tried: Number of schedules tried.
        best: Actions that lead to the least cost, the first of several.
        least: The least cost; infinite where every program failed.
    """

    root: Branch = field(default_factory=Branch)
    tried: int = 0
    best: tuple[Action, ...] = ()
    least: float = math.inf

    def add(self, nodes: Sequence[Candidate], costs: Sequence[float]) -> None:
        """Add nodes with their costs."""
        for node, cost in zip(nodes, costs, strict=True):
            branch = self.root
            for action in node.schedule.actions:
                branch = branch.branches.setdefault(action, Branch(action))
            if branch.cost is None:
                self.tried += 1
                branch.cost, branch.place = cost, self.tried
                if cost < self.least:
                    self.least, self.best = cost, node.schedule.actions

    def to_json(self, space: ActionSpace) -> list[dict[str, Any]]:
        """Return the branches as plain data, each after its parent; JSON has no infinite costs.

        The keys are `id`, `parent` (None for the root), `action` (its text, empty for the root), `cost` (None
        for failures and for schedules that were not tried), `tried` (its place in the order of trying, None
        if it was not), `failed`, and `best`, whether it is on the way to the least cost.
        """
        rows: list[dict[str, Any]] = []
        for parent, branch, best in self._walk():
            cost = branch.cost
            rows.append(
                {
                    "id": len(rows),
                    "parent": parent,
                    "action": "" if branch.action is None else space.text(branch.action),
                    "cost": cost if cost is not None and math.isfinite(cost) else None,
                    "tried": branch.place or None,
                    "failed": cost == math.inf,
                    "best": best,
                }
            )
        return rows

    def _walk(self) -> Iterator[tuple[int | None, Branch, bool]]:
        """Yield each branch with the number of its parent, and whether it is on the way to the least cost."""
        waiting: list[tuple[int | None, Branch, int | None]] = [(None, self.root, 0)]
        number = 0
        while waiting:
            parent, branch, depth = waiting.pop()  # depth on the best way; None off it
            yield parent, branch, depth is not None and self.least < math.inf
            following = None if depth is None or depth == len(self.best) else self.best[depth]
            for action, child in reversed(branch.branches.items()):
                on = depth is not None and action == following
                waiting.append((number, child, depth + 1 if on and depth is not None else None))
            number += 1
