"""Beam search, depth-first and breadth-first (LoopTune, section 5: widths 2 and 4)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from irgym.search.session import Node, Session


def _unseen(nodes: Iterable[Node], seen: set[Hashable]) -> list[Node]:
    """Return the nodes whose states are new, and remember those states."""
    new: list[Node] = []
    for node in nodes:
        if node.state not in seen:
            seen.add(node.state)
            new.append(node)
    return new


def _cheapest(session: Session, nodes: list[Node], count: int, rng: np.random.Generator) -> list[Node]:
    """Return the cheapest nodes, ascending; equal costs in random order."""
    ranks = list(zip(session.costs(nodes), rng.random(len(nodes)), strict=True))
    return [nodes[place] for place in sorted(range(len(nodes)), key=ranks.__getitem__)[:count]]


@dataclass(frozen=True)
class DepthFirstBeam:
    """Descend into the cheapest children of each state, the cheapest first, down to the horizon and back.

    Attributes:
        width: Children of a state that are descended into.
    """

    width: int = 4

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search the whole tree of that width, or until the budget is spent."""
        seen: set[Hashable] = {session.root.state}
        stack = [session.root]
        while stack:
            children = _unseen(session.children(stack.pop()), seen)
            stack += reversed(_cheapest(session, children, self.width, rng))


@dataclass(frozen=True)
class BreadthFirstBeam:
    """Keep the cheapest states of each depth, down to the horizon; then start again with twice the width.

    Attributes:
        width: States kept of each depth in the first descent.
    """

    width: int = 4

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until a descent cuts nothing off, or until the budget is spent."""
        width, cut = self.width, True
        while cut:
            cut = False
            seen: set[Hashable] = {session.root.state}
            beam = [session.root]
            while beam:
                children = _unseen((child for node in beam for child in session.children(node)), seen)
                cut |= len(children) > width
                beam = _cheapest(session, children, width, rng)
            width *= 2
