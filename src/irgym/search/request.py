"""Settings of one search: its budget, its seed, and what may guide it."""

from collections.abc import Sequence
from dataclasses import dataclass

from irgym.core.cost import CostHistory
from irgym.core.schedule import Schedule
from irgym.policies.policy import Policy
from irgym.search.budget import Budget
from irgym.search.progress import OnProgress
from irgym.search.tree import OnEvaluated


@dataclass(frozen=True)
class SearchRequest:
    """Settings of one search, whatever its strategy.

    Attributes:
        budget: Limits of the search.
        seed: Seed of all random choices.
        policy: Policy that guides the strategy, or None.
        history: Costs measured in the past, from which a strategy may learn; None for none.
        observer: Called after each batch of evaluations.
        evaluated: Called with the nodes of each batch and their costs, such as `SearchTree.add`; of a program
            of parts with those of the whole only.
        known: Schedules found before, or the compiler's default ones. They may be longer than an episode;
            actions that no longer apply are skipped.
        stoppable: Whether an interrupt ends the search alone, once it has found something.
    """

    budget: Budget
    seed: int = 0
    policy: Policy | None = None
    history: CostHistory | None = None
    observer: OnProgress | None = None
    evaluated: OnEvaluated | None = None
    known: Sequence[Schedule] = ()
    stoppable: bool = False
