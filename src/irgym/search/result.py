"""What a search found, and when."""

from dataclasses import dataclass
from typing import NamedTuple

from irgym.core.schedule import Schedule


class TracePoint(NamedTuple):
    """One improvement of the best cost.

    Attributes:
        evaluations: Distinct states evaluated until then, this one included.
        seconds: Wall-clock time since the search began.
        cost: The best cost from then on.
    """

    evaluations: int
    seconds: float
    cost: float


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        schedule: Leads to the cheapest program evaluated, without needless actions.
        finalists: Schedules of the cheapest distinct programs, ascending, `schedule` first; empty where every
            evaluation failed. The others may have needless actions. Measure them anew: the least of many
            noisy costs flatters its owner.
        cost: Its cost; infinite where every evaluation failed.
        first_cost: Cost of the initial state.
        evaluations: Number of distinct states evaluated.
        seconds: Wall-clock time spent.
        trace: The best cost over time, falling; it begins with the initial state's, unless that failed.
        complete: Whether every program that the actions make was evaluated, so that none is better.
        begun: What the search began with, and what runs: the best of the past, the end of the policy's own
            episode, and the best of both, however many cheaper ones were found since.
    """

    schedule: Schedule
    finalists: tuple[Schedule, ...]
    cost: float
    first_cost: float
    evaluations: int
    seconds: float
    trace: tuple[TracePoint, ...]
    complete: bool = False
    begun: tuple[Schedule, ...] = ()
