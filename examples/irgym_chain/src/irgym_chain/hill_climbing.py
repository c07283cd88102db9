"""Hill climbing: take any change that does no harm."""

from dataclasses import dataclass

import numpy as np

from irgym.search.mutation import mutate
from irgym.search.session import Session
from irgym.search.walks import together


@dataclass(frozen=True)
class HillClimbing:
    """Changes the best schedule at random.

    Attributes:
        neighbours: Changed schedules evaluated together.
    """

    neighbours: int = 8

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent; `session.costs` ends the search then."""
        best = session.root
        [least] = session.costs([best])
        while True:
            nodes = together(session, [mutate(session, best, rng) for _ in range(self.neighbours)])
            costs = session.costs(nodes)
            place = int(np.argmin(costs))
            if costs[place] <= least:
                best, least = nodes[place], costs[place]
