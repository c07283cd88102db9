"""Evolutionary search that measures only the schedules which a learned cost model prefers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core import capabilities
from irgym.core.schedule import Candidate
from irgym.cost_model.choice import EXPLORED, promising
from irgym.cost_model.model import NONE, CostModel, FloatArray, Samples, check_predictable, log_ratio
from irgym.cost_model.recorded import recorded_samples, tasks_beside
from irgym.search.session import Session
from irgym.search.strategies.evolutionary import Evolutionary
from irgym.search.walks import Walk, together


@dataclass(frozen=True)
class Screened:
    """Evolution that makes many more schedules than it measures, those that a cost model likes best.

    As AutoTVM (arXiv 1805.08166) and Ansor (arXiv 2006.06762) do. The model learns from the session's
    history, if there is one, and from what the search measures.

    Attributes:
        evolution: Source of the schedules.
        proposals: Schedules made for each one that is measured.
        explored: Share of those measured that is random.
    """

    evolution: Evolutionary = field(default_factory=Evolutionary)
    proposals: Annotated[int, Range(1, 1_000_000)] = 8
    explored: Annotated[float, Range(0, 1)] = EXPLORED

    def __post_init__(self) -> None:
        check_fields(self, "screened")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent.

        Raises:
            IrgymError: Costs of the task cannot be predicted.
            BackendError: The library for it is missing.
        """
        check_predictable(session.task)
        prior = NONE
        if session.history is not None:
            prior = recorded_samples(session.history, session.task, tasks_beside(session.task))
        model = CostModel(prior)

        def breed(make: Callable[[], Walk[Candidate]], count: int) -> list[Candidate]:
            walks = [make() for _ in range(count * self.proposals if model.ready else count)]
            made = together(session, walks)
            new = _distinct(session, made)
            if not new:
                return made
            cost_features = np.stack([_cost_features(session, node) for node in new])
            if model.ready:
                chosen = promising(model.predict(cost_features), count, rng, self.explored)
                new, cost_features = [new[int(place)] for place in chosen], cost_features[chosen]
            costs = session.costs(new)
            if math.isfinite(session.first_cost):
                ratios = [log_ratio(cost, session.first_cost) for cost in costs]
                model.learn(Samples(cost_features, np.array(ratios)))
            return new

        self.evolution.evolve(session, rng, breed)


def _distinct(session: Session, nodes: Sequence[Candidate]) -> list[Candidate]:
    """Return nodes of different programs whose costs are not known yet."""
    programs: dict[str, Candidate] = {}
    for node in nodes:
        programs.setdefault(session.task.key(node.state), node)
    return [node for node in programs.values() if not session.knows(node)]


def _cost_features(session: Session, node: Candidate) -> FloatArray:
    cost_features = capabilities.cost_features(session.task, node.state)
    assert cost_features is not None
    return cost_features.astype(np.float32)
