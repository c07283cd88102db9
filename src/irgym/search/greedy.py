"""Greedy search with look-ahead (LoopTune, section 5: look-ahead 1 and 2)."""

from dataclasses import dataclass

import numpy as np

from irgym.search.session import Node, Session


@dataclass(frozen=True)
class Greedy:
    """Move to the cheapest state within reach as long as that is an improvement; stop at a local optimum.

    Attributes:
        lookahead: How many actions are in reach.
    """

    lookahead: int = 1

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until no state within reach is cheaper."""
        del rng
        node = session.root
        [cost] = session.costs([node])
        while reach := self._reach(session, node):
            costs = session.costs(reach)
            cheapest = int(np.argmin(costs))
            if not costs[cheapest] < cost:
                return
            node, cost = reach[cheapest], costs[cheapest]

    def _reach(self, session: Session, node: Node) -> list[Node]:
        """Return the distinct states that at most `lookahead` actions lead to, the nearest first."""
        seen = {node.state}
        reach: list[Node] = []
        frontier = [node]
        for _ in range(self.lookahead):
            children = [child for parent in frontier for child in session.children(parent)]
            frontier = list[Node]()
            for child in children:
                if child.state not in seen:
                    seen.add(child.state)
                    frontier.append(child)
            reach += frontier
        return reach


def greedy2() -> Greedy:
    """Return greedy search with look-ahead 2."""
    return Greedy(lookahead=2)
