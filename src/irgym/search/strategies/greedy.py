"""Greedy search with look-ahead (LoopTune, section 5: look-ahead 1 and 2)."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core.schedule import Candidate
from irgym.search.session import Session, unseen


@dataclass(frozen=True)
class Greedy:
    """Move to the cheapest state within reach as long as that is an improvement; stop at a local optimum.

    Attributes:
        lookahead: How many actions are in reach.
    """

    lookahead: Annotated[int, Range(1, 1_000_000)] = 1

    def __post_init__(self) -> None:
        check_fields(self, "greedy")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until no state within reach is cheaper."""
        del rng
        node = session.root
        [cost] = session.costs([node])
        while reach := self._reach(session, node):
            cheapest = min(reach, key=itemgetter(0))
            if not cheapest[0] < cost:
                return
            cost, node = cheapest

    def _reach(self, session: Session, node: Candidate) -> list[tuple[float, Candidate]]:
        """Return the distinct states that at most `lookahead` actions lead to, with costs, nearest first.

        Costs are asked for parent by parent, so that little is lost when the time is up.
        """
        seen = {session.identity(node)}
        reach: list[tuple[float, Candidate]] = []
        frontier = [node]
        for _ in range(self.lookahead):
            parents, frontier = frontier, list[Candidate]()
            for parent in parents:
                children = unseen(session, session.children(parent), seen)
                reach += zip(session.costs(children), children, strict=True)
                frontier += children
        return reach


def greedy2() -> Greedy:
    """Return greedy search with look-ahead 2."""
    return Greedy(lookahead=2)
