"""The backtracking search of TASO (Jia et al., SOSP 2019), which Tensat and X-RLflow compare with."""

from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Annotated

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core.schedule import Candidate
from irgym.search.session import Session, unseen


@dataclass(frozen=True)
class Backtracking:
    """Expand the cheapest state that waits; new successors wait too, unless they cost far more than the best.

    It ends when no state waits. As in TASO a step is one rewrite: macro-actions are left out.

    Attributes:
        alpha: A successor waits if it costs less than this times the least cost so far. With 1 the search is
            greedy; TASO's choice is 1.05.
    """

    alpha: Annotated[float, Range(low=0)] = 1.05

    def __post_init__(self) -> None:
        check_fields(self, "taso")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until nothing waits, or until the budget is spent."""
        del rng
        seen: set[Hashable] = {session.identity(session.root)}
        order = count()  # of equally cheap states, the first found comes first
        [cost] = session.costs([session.root])
        waiting: list[tuple[float, int, Candidate]] = [(cost, next(order), session.root)]
        while waiting:
            _, _, node = heappop(waiting)
            children = unseen(session, session.children(node, macros=False), seen)
            for cost, child in zip(session.costs(children), children, strict=True):
                if cost < self.alpha * session.best_cost:
                    heappush(waiting, (cost, next(order), child))
