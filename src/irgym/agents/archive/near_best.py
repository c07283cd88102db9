"""Which schedules are about as good as the best, on which programs.

Many schedules of a program are of about the same worth. If a policy is shown another one for each program, it
learns a mixture, which may be worth nothing; so it is shown those that suit the most programs.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.agents.archive.script_state import scripts_from_state, scripts_state
from irgym.policies.layout import IntArray

AS_GOOD = 1.05
"""Factor between costs that count as the same: measured once, they differ by as much."""

Script = tuple[tuple[int, ...], ...]
"""The choices of an episode."""


def script_of(choices: NDArray[Any]) -> Script:
    """Return choices of shape [steps, S] as what can be compared and counted."""
    return tuple(map(tuple, choices.tolist()))


def choices_of(script: Script) -> IntArray:
    """Return a script as choices of shape [steps, S]."""
    return np.array(script, dtype=np.int64)


class NearBest:
    """The schedules of each program whose cost is at most `AS_GOOD` times the least."""

    def __init__(self, segments: int) -> None:
        """Begin with none, of choices in so many segments."""
        self._segments = segments
        self._costs: dict[int, dict[Script, float]] = {}
        self._least: dict[int, float] = {}
        self._programs: Counter[Script] = Counter()

    def add(self, program: int, script: Script, cost: float) -> None:
        """Note a finite cost of a program; those that it shows to be too high are left out."""
        least = self._least.get(program, np.inf)
        if cost > AS_GOOD * least:
            return
        row = self._costs.setdefault(program, {})
        if script not in row:
            self._programs[script] += 1
        row[script] = min(cost, row.get(script, np.inf))
        if cost < least:
            self._least[program] = cost
            for other in [one for one, its in row.items() if its > AS_GOOD * cost]:
                del row[other]
                self._programs[other] -= 1

    def of(self, program: int) -> Collection[Script]:
        """Return the schedules of a program."""
        return self._costs.get(program, {}).keys()

    def rank(self, script: Script) -> tuple[int, int]:
        """Return what is least for what suits the most programs, and then for the shortest."""
        return -self._programs[script], len(script)

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors."""
        entries = [(program, *one) for program, row in self._costs.items() for one in row.items()]
        return scripts_state(
            [program for program, _, _ in entries],
            [choices_of(script) for _, script, _ in entries],
            [cost for _, _, cost in entries],
            self._segments,
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        for entries in (self._costs, self._least, self._programs):
            entries.clear()
        for program, choices, cost in scripts_from_state(state):
            self.add(program, script_of(choices), cost)
