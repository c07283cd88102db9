"""Evolutionary search over schedules."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core.schedule import Candidate
from irgym.search.mutation import bred, founder
from irgym.search.session import Session
from irgym.search.walks import Walk, together

Breed = Callable[[Callable[[], Walk[Candidate]], int], list[Candidate]]


@dataclass(frozen=True)
class Evolutionary:
    """Steady-state evolution: tournaments choose parents, the cheapest of parents and offspring survive.

    Attributes:
        population: Schedules that survive a generation.
        offspring: Schedules made, and evaluated together, in a generation.
        tournament: Schedules that compete to be a parent.
        crossover: Probability that offspring have two parents; otherwise they are changed copies of one.
        fresh: Probability that offspring are new schedules instead, as the first ones are.
    """

    population: Annotated[int, Range(1, 1_000_000)] = 32
    offspring: Annotated[int, Range(1, 1_000_000)] = 16
    tournament: Annotated[int, Range(1, 1_000_000)] = 3
    crossover: Annotated[float, Range(0, 1)] = 0.25
    fresh: Annotated[float, Range(0, 1)] = 0.05

    def __post_init__(self) -> None:
        check_fields(self, "evolutionary")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent."""
        self.evolve(session, rng, lambda make, count: together(session, [make() for _ in range(count)]))

    def evolve(self, session: Session, rng: np.random.Generator, breed: Breed) -> None:
        """Search until the budget is spent, with a choice of the schedules to evaluate.

        Args:
            session: The search.
            rng: Of all random choices.
            breed: Makes about so many schedules by a function that makes one.
        """
        founders = [session.root, *session.known]
        while len(founders) <= self.population:
            fresh = breed(lambda: founder(session, rng), self.offspring)
            session.costs(fresh)
            founders += fresh
        survivors = select(session, founders, self.population)
        while True:
            children = breed(partial(self._child, session, survivors, rng), self.offspring)
            survivors = select(session, [*survivors, *children], self.population)

    def _child(self, session: Session, ranked: list[Candidate], rng: np.random.Generator) -> Walk[Candidate]:
        if rng.random() < self.fresh:
            return founder(session, rng)
        return bred(session, ranked, rng, self.tournament, self.crossover)


def select(session: Session, nodes: list[Candidate], count: int) -> list[Candidate]:
    """Return the cheapest nodes, ascending, one for each cost; of equal ones the shortest schedule."""
    costs = session.costs(nodes)
    order = sorted(range(len(nodes)), key=lambda place: (costs[place], len(nodes[place].schedule)))
    distinct = {costs[place]: nodes[place] for place in reversed(order)}
    return [distinct[cost] for cost in sorted(distinct)][:count]
