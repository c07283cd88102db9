"""Schedules about as good as the best, by program.

Many schedules of a program are about equally good. A policy that is shown a different one for each program
learns a mixture, which may be worthless; so it is shown the schedules that suit the most programs.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.agents.archive.script_state import scripts_from_state, scripts_state
from irgym.policies.layout import IntArray

AS_GOOD = 1.05
"""Costs within this factor count as equal: single measurements differ by as much."""

Script = tuple[tuple[int, ...], ...]
"""The choices of an episode."""


def script_of(choices: NDArray[Any]) -> Script:
    """Return choices of shape [steps, S] as a hashable value."""
    return tuple(map(tuple, choices.tolist()))


def choices_of(script: Script) -> IntArray:
    """Return a script as choices of shape [steps, S]."""
    return np.array(script, dtype=np.int64)


class NearBest:
    """The schedules of each program whose cost is at most `AS_GOOD` times the least."""

    def __init__(self, segments: int) -> None:
        """Start empty, for choices in `segments` segments."""
        self._segments = segments
        self._costs: dict[int, dict[Script, float]] = {}
        self._least: dict[int, float] = {}
        self._programs: Counter[Script] = Counter()

    def add(self, program: int, script: Script, cost: float) -> None:
        """Record a finite cost of a program's schedule, and drop schedules that are now too slow."""
        least = self._least.get(program, np.inf)
        if cost > AS_GOOD * least:
            return
        row = self._costs.setdefault(program, {})
        if script not in row:
            self._programs[script] += 1
        row[script] = min(cost, row.get(script, np.inf))
        if cost < least:
            self._least[program] = cost
            for slower in [known for known, value in row.items() if value > AS_GOOD * cost]:
                del row[slower]
                self._programs[slower] -= 1

    def of(self, program: int) -> Collection[Script]:
        """Return the schedules of a program."""
        return self._costs.get(program, {}).keys()

    def rank(self, script: Script) -> tuple[int, int]:
        """Return a sort key: schedules of the most programs first, then the shortest."""
        return -self._programs[script], len(script)

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors."""
        entries = [(program, *entry) for program, row in self._costs.items() for entry in row.items()]
        return scripts_state(
            [program for program, _, _ in entries],
            [choices_of(script) for _, script, _ in entries],
            [cost for _, _, cost in entries],
            self._segments,
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`, exactly."""
        for entries in (self._costs, self._least, self._programs):
            entries.clear()
        for program, choices, cost in scripts_from_state(state):
            self.add(program, script_of(choices), cost)
