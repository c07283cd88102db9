"""Search led by a policy: rollouts find good regions, random changes of the best schedules refine them."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from typing import Annotated, ClassVar

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core import capabilities
from irgym.core.schedule import Candidate
from irgym.search.mutation import bred, mutate, pick
from irgym.search.parts import by_parts
from irgym.search.rollouts import (
    candidates,
    finished,
    most_probable,
    outcome,
    policy_of,
    rollout,
)
from irgym.search.session import Session
from irgym.search.strategies.evolutionary import Evolutionary, select
from irgym.search.strategies.rollout import Rollout
from irgym.search.walks import Walk, follow, together

FIRST = 0.6
"""Share of the budget after which the most probable episode ends where it is: it is to be evaluated too."""

ROUND = 0.3
"""Share of the time left that the episodes of a round may take; one is always played."""

GROWTH = 2
"""Changed schedules in the first round, and how many more there are in each further one."""


@dataclass(frozen=True)
class Guided:
    """First the most probable episode, then sampled episodes by turns with changes of the best schedules.

    Of an episode its end is evaluated; of the first one also the states on the way, where they may be better
    (`candidates`), and of all where states know their costs. Changes are few at first, while what they start
    from is still poor: where measuring is slow, most time then goes to episodes and sketches. The sampling
    temperature rises from round to round, from 1 (the policy itself) to `hottest`, and falls back
    to 1. A program that is made of smaller ones is searched part by part before that: see `by_parts`.

    Attributes:
        rollouts: Episodes sampled in a round, in lockstep.
        mutations: Changed schedules evaluated in a round; fewer in the first ones, see `GROWTH`.
        sketches: Sketches evaluated in a round, where the task has some.
        sweeps: Schedules, the best, that a round extends by each of their actions, where states know their
            costs.
        elite: Number of schedules that changes start from, each as likely.
        population: The same where states know their costs. Far more are evaluated then, so that the search
            would end in a local optimum: parents are chosen as in evolutionary search, the better ones more
            often, and some changed schedules have two.
        heating: Factor by which the temperature rises in a round.
        hottest: Greatest temperature.
    """

    needs_policy: ClassVar[bool] = True
    rollouts: Annotated[int, Range(1, 1_000_000)] = 4
    mutations: Annotated[int, Range(0, 1_000_000)] = 24
    sketches: Annotated[int, Range(0, 1_000_000)] = 4
    sweeps: Annotated[int, Range(0, 1_000_000)] = 1
    elite: Annotated[int, Range(1, 1_000_000)] = 8
    population: Annotated[int, Range(1, 1_000_000)] = Evolutionary.population
    heating: Annotated[float, Range(low=1)] = 1.25
    hottest: Annotated[float, Range(above=0)] = 4.0

    def __post_init__(self) -> None:
        check_fields(self, "guided")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent.

        Raises:
            IrgymError: The session has no policy.
        """
        policy = policy_of(session)
        started = session.seconds
        kept = self.population if session.known_costs else self.elite
        greedy = most_probable(session.task, policy, lambda: session.progress >= FIRST)
        episode_s = session.seconds - started
        session.begun.append(outcome(session.task, greedy))
        elite = select(session, [*session.known, *candidates(session.task, greedy)], kept)
        session.begun.append(elite[0])
        elite = select(session, [*elite, *by_parts(session, Rollout(), self, rng)], kept)
        swept: set[Hashable] = set()
        temperature = 1.0
        for number in count(1):
            paths = rollout(
                session.task,
                policy,
                self._affordable(session, episode_s),
                rng,
                temperature,
                lambda: session.progress >= 1.0,
            )
            sampled = [node for path in paths for node in _evaluated(session, path)]
            elite = select(session, [*elite, *self._sketched(session, rng), *sampled], kept)
            mutations = min(self.mutations, GROWTH * number)
            changed = together(session, [self._changed(session, elite, rng) for _ in range(mutations)])
            elite = select(session, [*elite, *changed], kept)
            elite = select(session, [*elite, *self._swept(session, elite, swept)], kept)
            temperature *= self.heating
            if temperature > self.hottest:
                temperature = 1.0

    def _affordable(self, session: Session, episode_s: float) -> int:
        """Return how many episodes to play, so that changes of the best schedules have their turn too."""
        if math.isinf(session.left_s):
            return self.rollouts
        return min(self.rollouts, max(1, int(ROUND * session.left_s / max(episode_s, 1e-6))))

    def _changed(self, session: Session, elite: list[Candidate], rng: np.random.Generator) -> Walk[Candidate]:
        """Return the end of a schedule made of the best ones."""
        if not session.known_costs:
            return mutate(session, pick(elite, rng), rng)
        return bred(session, elite, rng, Evolutionary.tournament, Evolutionary.crossover)

    def _swept(self, session: Session, elite: list[Candidate], swept: set[Hashable]) -> list[Candidate]:
        """Return all nodes one action further than the best that were not swept before."""
        if not session.known_costs:
            return []
        best = [node for node in elite if session.identity(node) not in swept][: self.sweeps]
        swept.update(session.identity(node) for node in best)
        return session.expand(best)

    def _sketched(self, session: Session, rng: np.random.Generator) -> list[Candidate]:
        drawn = [capabilities.sketch(session.task, rng) for _ in range(self.sketches)]
        walks = [follow(session, session.root, sketch) for sketch in drawn if sketch is not None]
        return [path[-1] for path in together(session, walks)]


def _evaluated(session: Session, path: list[Candidate]) -> list[Candidate]:
    """Return the nodes of an episode to evaluate: its end, or all and what the compiler does after them.

    All are evaluated if costs are known; what the compiler does is left out when the time is up.
    """
    if not session.known_costs:
        return path[-1:]
    return path if session.progress >= 1.0 else [*path, *finished(session.task, path)]
