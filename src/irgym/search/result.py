"""Results of searches: the best schedules, and the best cost over time."""

from dataclasses import dataclass
from typing import NamedTuple

from irgym.core.schedule import Candidate, Schedule


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
    """Outcome of a search.

    Attributes:
        finalists: The cheapest distinct programs, ascending; empty if every evaluation failed. The first has
            no needless actions, the others may have some. Measure them again: the least of many noisy costs
            is biased low.
        cost: Cost of the first; infinite if every evaluation failed.
        first_cost: Cost of the initial state.
        evaluations: Number of distinct states evaluated.
        seconds: Wall-clock time spent.
        trace: The best cost over time, falling; it begins with the initial state's, unless that failed.
        complete: Whether every reachable program was evaluated, so that the best is optimal.
        begun: Starting candidates of the search that run: the best known schedule, the end of the policy's
            episode, and the best of both, even if many cheaper ones were found later.
        interrupted: Whether the user ended it.
    """

    finalists: tuple[Candidate, ...]
    cost: float
    first_cost: float
    evaluations: int
    seconds: float
    trace: tuple[TracePoint, ...]
    complete: bool = False
    begun: tuple[Candidate, ...] = ()
    interrupted: bool = False

    @property
    def schedule(self) -> Schedule:
        """Schedule of the cheapest program evaluated; empty if every evaluation failed."""
        return self.finalists[0].schedule if self.finalists else Schedule()
