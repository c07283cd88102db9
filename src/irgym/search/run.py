"""Running a strategy on a task."""

import math
from contextlib import suppress
from typing import Any

import numpy as np

from irgym.core.cost import Evaluator
from irgym.core.limits import UNLIMITED, is_ordered, limits_of
from irgym.core.task import Task
from irgym.search.minimise import minimise
from irgym.search.request import SearchRequest
from irgym.search.result import SearchResult
from irgym.search.session import Exhausted, Session
from irgym.search.strategy import Strategy, is_complete
from irgym.search.walks import follow, together

MINIMISING = 0.05
"""Share of the time of a search that shortening its best schedule may take beyond it."""


def run_search(
    strategy: Strategy, task: Task[Any], evaluator: Evaluator, request: SearchRequest
) -> SearchResult:
    """Evaluate the initial state, then run a strategy until it ends or the budget is spent.

    If the budget limits only evaluations, equal requests and equal costs give equal results.

    Args:
        strategy: Proposes schedules.
        task: The program.
        evaluator: Source of costs.
        request: Budget, seed, and what may guide the search.

    Raises:
        KeyboardInterrupt: The user interrupted it before it found something, or it is not `stoppable`.
    """
    session = Session(task, evaluator, request)
    ended = interrupted = False
    try:
        with suppress(Exhausted):
            _search(strategy, session, request)
            ended = True
    except KeyboardInterrupt:
        if not (request.stoppable and session.finalists):
            raise
        interrupted = True
    finalists = [node for _, node in session.finalists]
    try:
        # Where transitions are slow, minimising takes time: other finalists wait until one is chosen.
        if finalists and not is_ordered(task):
            finalists[0] = minimise(task, finalists[0], _spare(request.budget.seconds))
    except KeyboardInterrupt:
        if not request.stoppable or interrupted:
            raise
        interrupted = True
    free = limits_of(task) == UNLIMITED  # within limits, the best of all programs may be out of reach
    return SearchResult(
        finalists=tuple(finalists),
        cost=session.best_cost,
        first_cost=session.first_cost,
        evaluations=session.evaluations,
        seconds=session.seconds,
        trace=tuple(session.trace),
        complete=ended and session.whole and task.objective.exact and is_complete(strategy) and free,
        begun=tuple(dict.fromkeys(node for node in session.begun if session.ran(node))),
        interrupted=interrupted,
    )


def _search(strategy: Strategy, session: Session, request: SearchRequest) -> None:
    """Evaluate the initial state and the known schedules, then run the strategy.

    Raises:
        Exhausted: The budget is spent.
    """
    session.costs([session.root])
    known = [follow(session, session.root, schedule.actions, math.inf) for schedule in request.known]
    session.known = [path[-1] for path in together(session, known)]
    costs = session.costs(session.known)
    session.begun += [session.known[place] for place in np.argsort(costs)[:1]]
    strategy.run(session, np.random.default_rng(request.seed))


def _spare(seconds: float | None) -> float:
    """Return for how long the best schedule of a search may be shortened, in seconds."""
    return math.inf if seconds is None else MINIMISING * seconds
