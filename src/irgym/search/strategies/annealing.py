"""Simulated annealing over schedules."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.search.mutation import mutate
from irgym.search.session import Session
from irgym.search.walks import together


@dataclass(frozen=True)
class Annealing:
    """Chains of random changes of the schedule, some of them for the worse.

    A step up in log cost is taken with probability exp(-step / temperature). The temperature falls
    geometrically with the share of the budget that is spent (Kirkpatrick et al. 1983).

    Attributes:
        chains: Independent chains, evaluated together.
        hot: First temperature, in units of log cost: 0.5 takes a slowdown of 1.65x once in e times.
        cold: Last temperature.
    """

    chains: Annotated[int, Range(1, 1_000_000)] = 8
    hot: Annotated[float, Range(above=0)] = 0.5
    cold: Annotated[float, Range(above=0)] = 0.01

    def __post_init__(self) -> None:
        check_fields(self, "annealing")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent."""
        current = [session.root] * self.chains
        costs = session.costs(current)
        while True:
            temperature = self.hot * (self.cold / self.hot) ** session.progress
            proposals = together(session, [mutate(session, node, rng) for node in current])
            for chain, cost in enumerate(session.costs(proposals)):
                if self._accepts(costs[chain], cost, temperature, rng):
                    current[chain], costs[chain] = proposals[chain], cost

    def _accepts(self, old: float, new: float, temperature: float, rng: np.random.Generator) -> bool:
        """Say whether a chain moves; a failure is left for anything and entered from nothing else."""
        if new <= old:
            return True
        return math.isfinite(new) and rng.random() < (old / new) ** (1.0 / temperature)
