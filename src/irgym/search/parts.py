"""Searches of programs that consist of parts: search each part, then join the schedules.

A network takes seconds to compile, and each of its operators hundredths of one. So operators are tuned
separately, each for as long as it matters to the whole, as Ansor does (arXiv 2006.06762, section 6).
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from irgym.core import capabilities
from irgym.core.schedule import Candidate
from irgym.core.task import Task
from irgym.search.result import SearchResult
from irgym.search.run import run_search
from irgym.search.session import Session
from irgym.search.strategy import Strategy
from irgym.search.walks import alone, follow

SHARE = 0.7
"""Share of the budget for the parts; the rest is for the whole program."""

LOOK = 0.25
"""Share of that for a first look at each part, by which the rest is shared out."""


def by_parts(session: Session, first: Strategy, then: Strategy, rng: np.random.Generator) -> list[Candidate]:
    """Return the program with the best schedule of each part; no node if it has no parts.

    Args:
        session: Session of the whole program.
        first: Strategy of the first look at each part.
        then: Strategy of the further search, in proportion to the part's share of the program's time.
        rng: Source of randomness.

    Raises:
        Exhausted: The budget is spent.
    """
    divided = capabilities.ask(session.task, capabilities.Parts)
    parts: Sequence[Task[Any]] = () if divided is None else divided.parts()
    if divided is None or not parts:
        return []
    tasks = {id(part): part for part in parts}
    counts = Counter(id(part) for part in parts)
    found = {
        name: _searched(session, first, task, SHARE * LOOK / len(tasks), rng) for name, task in tasks.items()
    }
    weights = {
        name: counts[name] * result.cost for name, result in found.items() if math.isfinite(result.cost)
    }
    left = SHARE - session.progress
    for name in sorted(weights, key=lambda name: -weights[name]):
        if session.progress >= SHARE:
            break
        share = left * weights[name] / sum(weights.values())
        further = _searched(session, then, tasks[name], share, rng)
        if further.cost < found[name].cost:
            found[name] = further
    schedule = divided.joined([found[id(part)].schedule for part in parts])
    return alone(session, follow(session, session.root, schedule.actions))[-1:]


def _searched(
    session: Session, strategy: Strategy, part: Task[Any], share: float, rng: np.random.Generator
) -> SearchResult:
    """Search one part on a share of the session's budget.

    Raises:
        Exhausted: The budget is spent.
    """
    request = session.part_request(share, int(rng.integers(2**31)))
    result = run_search(strategy, part, session.evaluator, request)
    session.count_part(result)
    return result
