"""How costs and what is gained on them are said: times with units, counts as they are."""

import math

from irgym.core.objective import Objective
from irgym.judging.statistics import Verdict
from irgym.search.progress import SearchProgress


def cost_text(value: float, objective: Objective) -> str:
    """Return a cost for people: a time, which is in nanoseconds, with a fitting unit; a count as it is."""
    if not objective.timed:
        return f"{value:.0f}" if value.is_integer() and value < 1e9 else f"{value:.6g}"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ns"


def gain_word(objective: Objective) -> str:
    """Return what the first cost over another one is called."""
    return "speedup" if objective.timed else "improvement"


def verdict_word(verdict: Verdict, objective: Objective) -> str:
    """Return a verdict in words: only times make a program faster."""
    if objective.timed:
        return verdict.value
    return {Verdict.FASTER: "better", Verdict.TIE: "tie", Verdict.SLOWER: "worse"}[verdict]


def progress_text(progress: SearchProgress, objective: Objective) -> str:
    """Return where a search stands: candidates, the best so far, the time left."""
    words = [f"{progress.evaluations} candidates"]
    if math.isfinite(progress.best_cost):
        gain = progress.first_cost / progress.best_cost if progress.best_cost else math.inf
        over = f" ({gain:.2f}x)" if math.isfinite(gain) else ""
        words.append(f"best {cost_text(progress.best_cost, objective)}{over}")
    if progress.seconds_left is not None:
        words.append(f"{progress.seconds_left:.0f} s left")
    return ", ".join(words)
