"""Monte Carlo tree search with transpositions (UCT, Kocsis and Szepesvári 2006, for one player)."""

import math
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core.actions import Action
from irgym.core.schedule import Candidate
from irgym.search.mutation import random_action, random_walk
from irgym.search.rollouts import policy_of
from irgym.search.session import Session
from irgym.search.walks import Walk, together

DRAWS = 4
"""Actions that a policy draws at a time, of which the first untried one is taken."""

LEAST_COST = 1e-9
"""Costs below this count as this much, so that every throughput is finite."""


@dataclass
class _Statistics:
    """Statistics of a state, over all paths that reach it.

    Attributes:
        tried: Actions taken so far, and the states they led to.
        visits: Simulations that passed through, those that wait for their cost included.
        fruitful: Simulations that evaluated a new program.
        total: Sum of the gains of these.
        greatest: Greatest of these gains.
    """

    tried: dict[Action, Hashable] = field(default_factory=dict[Action, Hashable])
    visits: int = 0
    fruitful: int = 0
    total: float = 0.0
    greatest: float = 0.0


@dataclass(frozen=True)
class MonteCarloTreeSearch:
    """Select by UCT, expand by one state, play an episode on, and back up the better of the two costs.

    A simulation's gain is its throughput (1 / cost) beyond the first program's; less counts as none. The
    value of a state is its gain relative to the best so far: half the mean and half the greatest of its
    simulations, as what counts is the best state, not the average one (after Schadd et al. 2008).
    A simulation that only sees known programs counts as a visit without value, so the search moves on.

    A state gets another child only as its visits grow (progressive widening, Coulom 2007), so the tree is
    deep where there are many actions. Where a policy leads the search, it draws these children and the
    actions of the episodes (after Hubert et al., "Learning and Planning in Complex Action Spaces", 2021).

    Attributes:
        exploration: Weight of the exploration term.
        rollout: Greatest number of actions after the expanded state.
        batch: Simulations evaluated at a time; those that wait count as visits without value (virtual loss).
        widening: A state has at most as many children as its visits to this power; 1 for no limit.
    """

    takes_policy: ClassVar[bool] = True
    exploration: Annotated[float, Range(low=0)] = 0.5
    rollout: Annotated[int, Range(0, 1_000_000)] = 8
    batch: Annotated[int, Range(1, 1_000_000)] = 8
    widening: Annotated[float, Range(0, 1)] = 0.5

    def __post_init__(self) -> None:
        check_fields(self, "mcts")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent."""
        tree = {session.identity(session.root): _Statistics()}
        while True:
            paths = [self._select(session, tree, rng) for _ in range(self.batch)]
            lengths = rng.integers(self.rollout + 1, size=self.batch).tolist()
            ways = [_way(session, path[-1], steps, rng) for path, steps in zip(paths, lengths, strict=True)]
            ends = [way[-1] for way in together(session, ways)]
            nodes = [*(path[-1] for path in paths), *ends]
            fresh = [not session.knows(node) for node in nodes]
            costs = session.costs(nodes)
            for place, path in enumerate(paths):
                pair = place, place + self.batch
                if not any(fresh[index] for index in pair):
                    continue
                gain = _gain(session, min(costs[index] for index in pair))
                for identity in {session.identity(node) for node in path}:
                    tree[identity].fruitful += 1
                    tree[identity].total += gain
                    tree[identity].greatest = max(tree[identity].greatest, gain)

    def _select(
        self, session: Session, tree: dict[Hashable, _Statistics], rng: np.random.Generator
    ) -> list[Candidate]:
        """Descend to a state that may have another child, add that, and count the visit."""
        path = [session.root]
        while actions := session.actions(path[-1]):
            key = session.identity(path[-1])
            here = tree[key]
            # Equal states may have other masks: those show the memory of the episode, too.
            mask = session.onward(path[-1])
            children = [
                action
                for action, led_to in here.tried.items()
                if led_to != key and session.task.space.allows(mask, action)
            ]
            wide = len(children) >= (here.visits + 1) ** self.widening
            action = None if wide else _untried(session, path[-1], actions, here.tried, rng)
            if action is not None:
                child = session.step(path[-1], action)
                here.tried[action] = session.identity(child)
                if here.tried[action] == key:
                    continue  # it has no effect: no simulation is spent on it
                path.append(child)
                tree.setdefault(here.tried[action], _Statistics())
                break
            if not children:
                break
            scores = {action: self._score(session, here, tree[here.tried[action]]) for action in children}
            path.append(session.step(path[-1], max(scores, key=scores.__getitem__)))
            # The same action may lead elsewhere on another path, where identities are coarse.
            tree.setdefault(session.identity(path[-1]), _Statistics())
        for identity in {session.identity(node) for node in path}:
            tree[identity].visits += 1
        return path

    def _score(self, session: Session, parent: _Statistics, child: _Statistics) -> float:
        """Return the upper confidence bound of a child that was visited."""
        best = _gain(session, session.best_cost)
        mean = (child.total + child.fruitful * child.greatest) / (2 * child.visits)
        bonus = self.exploration * math.sqrt(math.log(max(1, parent.visits)) / child.visits)
        return (mean / best if best > 0.0 else 0.0) + bonus


def _untried(
    session: Session,
    node: Candidate,
    actions: Sequence[Action],
    tried: Container[Action],
    rng: np.random.Generator,
) -> Action | None:
    """Return an action that was not tried in a node, the policy's choice if one leads; None if all were."""
    drawn = [] if session.policy is None else _drawn(session, node, DRAWS, rng)
    chosen = next((action for action in drawn if action not in tried), None)
    if chosen is None and (others := [action for action in actions if action not in tried]):
        chosen = random_action(others, rng)
    return chosen


def _way(session: Session, node: Candidate, steps: int, rng: np.random.Generator) -> Walk[list[Candidate]]:
    """Return the nodes of an episode of at most `steps` actions, the policy's choices if one leads.

    Actions without effect are left out.
    """
    if session.policy is None:
        return (yield from random_walk(session, node, steps, rng))
    path = [node]
    for _ in range(steps):
        if not session.actions(path[-1]):
            break
        [action] = _drawn(session, path[-1], 1, rng)
        child = yield path[-1], action
        if session.identity(child) != session.identity(path[-1]):
            path.append(child)
    return path


def _drawn(session: Session, node: Candidate, count: int, rng: np.random.Generator) -> list[Action]:
    """Return actions that the policy draws in a node, of those that lead on."""
    policy = policy_of(session)
    seen, mask = session.task.observe(node.state, policy.observation), session.onward(node)
    return policy.act([seen] * count, [mask] * count, rng)


def _gain(session: Session, cost: float) -> float:
    """Return the throughput of a cost beyond the first program's."""
    return max(0.0, 1.0 / max(LEAST_COST, cost) - 1.0 / max(LEAST_COST, session.first_cost))
