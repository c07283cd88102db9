"""Exhaustive search: evaluate every reachable program."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from irgym.core.schedule import Candidate
from irgym.search.session import Session, unseen

PORTION = 16
"""Nodes that are expanded before their children are evaluated."""


@dataclass(frozen=True)
class Exhaustive:
    """Evaluate every program once, those with the fewest actions first.

    Where it comes to its end within the budget, costs are exact and no node has more actions than a search
    considers, the best is proven to be the best of all.
    """

    complete: ClassVar[bool] = True

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until everything was seen, or until the budget is spent."""
        del rng
        seen: set[Hashable] = {session.identity(session.root)}
        level = [session.root]
        while level:
            following: list[Candidate] = []
            for begin in range(0, len(level), PORTION):
                children = unseen(session, session.expand(level[begin : begin + PORTION]), seen)
                if children:
                    session.costs(children)
                following += children
            level = following
