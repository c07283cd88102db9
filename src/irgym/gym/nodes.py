"""States that episodes share: what the same actions lead to is observed and masked once."""

from collections.abc import Sequence
from typing import Any, cast

from irgym.core.actions import Action, BoolArray, Mask
from irgym.core.candidates import candidate_info
from irgym.core.cost import Evaluator, Job
from irgym.core.lockstep import step_all
from irgym.core.observation import ObservationView
from irgym.core.reward import Reward, potential, reference_state
from irgym.core.task import Task
from irgym.gym.spaces import gym_mask, with_a_choice

KEPT = 256
"""States that a table holds for each episode before it is emptied."""

SEEN = 256 << 20
"""Bytes of observations that a table holds before they are dropped."""


class Node:
    """A state of a task, and what episodes need to know of it.

    Attributes:
        task: The program.
        state: The state.
        mask: Which actions apply.
        applies: The same in the form of `gym_mask`.
        shown: The same with a choice in each dimension, as learners need it.
        terminal: Whether the episode ends there.
        job: The request for its cost.
        known: The cost, where the state knows it.
        info: What `info` says of the candidates.
        after: The nodes that actions led to.
    """

    def __init__(self, task: Task[Any], state: Any) -> None:
        self.task = task
        self.state = state
        self.mask: Mask = task.mask(state)
        self.applies: BoolArray = gym_mask(task.space, self.mask)
        self.shown: BoolArray = with_a_choice(task.space, self.applies)
        self.terminal = task.terminal(state)
        self.job: Job = task.job(state)
        self.known: float | None = None if self.job.known is None else self.job.known.cost
        self.info = candidate_info(task.space, self.mask)
        self.after: dict[Action, Node] = {}
        self._potential: float | None = None

    @property
    def potential(self) -> float:
        """The potential of the state, for shaped rewards."""
        if self._potential is None:
            self._potential = potential(self.task, self.state)
        return self._potential


class Nodes:
    """Trees of nodes, one for each task, and costs; all are dropped when there are too many.

    Args:
        views: The observations of a state.
        evaluator: Where costs come from.
        episodes: Number of episodes that share it.
    """

    def __init__(self, views: Sequence[ObservationView], evaluator: Evaluator, episodes: int) -> None:
        self._views = views
        self._evaluator = evaluator
        self._kept = KEPT * episodes
        self._bytes = 0
        self._roots: dict[int, Node] = {}
        self._references: dict[int, Node] = {}
        self._count = 0
        self._seen: dict[Node, tuple[Any, ...]] = {}
        self._costs: dict[tuple[int, str], float] = {}
        self.of_cost = any(view.of_cost is not None for view in views)

    def root(self, task: Task[Any]) -> Node:
        """Return the node of a task's initial state."""
        root = self._roots.get(id(task))
        if root is None:
            root = self._roots[id(task)] = self._made(task, task.initial())
        return root

    def reference(self, task: Task[Any], reward: Reward) -> Node | None:
        """Return the node of `reference_state`; None where the reward needs none."""
        found = self._references.get(id(task))
        if found is None and (state := reference_state(reward, task)) is not None:
            found = self._references[id(task)] = self._made(task, state)
        return found

    def _made(self, task: Task[Any], state: Any) -> Node:
        """Return a new node. Equal states may differ in the memory of the episode, which masks show."""
        self._count += 1
        if self._count > self._kept:
            self._count = 0
            self._roots.clear()
            self._references.clear()
            self._costs.clear()
            self._forget()
        return Node(task, state)

    def step(self, nodes: Sequence[Node], actions: Sequence[Action]) -> list[Node]:
        """Return the nodes after an action each; states of one class of tasks are stepped in one call."""
        missing = list(
            {
                (node, action): None
                for node, action in zip(nodes, actions, strict=True)
                if action not in node.after
            }
        )
        stepped = step_all(
            [node.task for node, _ in missing],
            [node.state for node, _ in missing],
            [action for _, action in missing],
        )
        for (node, action), state in zip(missing, stepped, strict=True):
            node.after[action] = self._made(node.task, state)
        return [node.after[action] for node, action in zip(nodes, actions, strict=True)]

    def costs(self, nodes: Sequence[Node]) -> list[float]:
        """Return the costs of nodes, infinite for failures; new ones are one request."""
        missing = {
            (id(node.task), node.job.schedule): node.job
            for node in nodes
            if node.known is None and (id(node.task), node.job.schedule) not in self._costs
        }
        if missing:
            measured = self._evaluator.evaluate(list(missing.values()))
            for key, measurement in zip(missing, measured, strict=True):
                self._costs[key] = measurement.cost
        return [
            self._costs[id(node.task), node.job.schedule] if node.known is None else node.known
            for node in nodes
        ]

    def observations(self, node: Node) -> tuple[Any, ...]:
        """Return the values of all views of a node."""
        seen = self._seen.get(node)
        if seen is None:
            if self._bytes >= SEEN:
                self._forget()
            seen = self._seen[node] = tuple(
                view.element(node.task, node.state, lambda: self.costs([node])[0]) for view in self._views
            )
            self._bytes += _bytes_of(seen)
        return seen

    def _forget(self) -> None:
        self._seen.clear()
        self._bytes = 0


def _bytes_of(value: Any) -> int:
    """Return about how many bytes an observation takes."""
    if isinstance(value, tuple):
        return sum(map(_bytes_of, cast(tuple[Any, ...], value)))
    return len(value) if isinstance(value, str) else getattr(value, "nbytes", 0)
