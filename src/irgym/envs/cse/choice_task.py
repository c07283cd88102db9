"""The task of choosing candidates to share, for any compiler: states are sets of candidates."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action, Mask
from irgym.core.objective import Objective
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.envs.cse.actions import SHARE, SPACE, STOP
from irgym.envs.cse.state import CseState

ALL, COST_TEST = "all", "cost-test"
"""Names of the compilers' choices: all candidates, or those that pass the cost test."""


class ChoiceTask(Task[CseState]):
    """A function and its candidates.

    Args:
        uri: Canonical URI of the program.
        names: Names of the candidates in schedules.
        objective: The objective to minimise.
    """

    space = SPACE

    def __init__(self, uri: str, names: Sequence[str], objective: Objective) -> None:
        self.uri = uri
        self.names = tuple(names)
        self.objective = objective
        self.horizon = len(self.names) + 1
        self._places = {name: place for place, name in enumerate(self.names)}

    def programs(self) -> int:
        """Return the number of choices."""
        return 1 << len(self.names)

    def taken(self, state: CseState) -> int:
        """Return the number of shared candidates."""
        return len(state.shared)

    def initial(self) -> CseState:
        """Return the function with nothing shared."""
        return CseState()

    def mask(self, state: CseState) -> Mask:
        """Return the legal actions: the candidates that are not shared yet, and `stop`."""
        kinds = np.zeros(len(self.space.kinds), dtype=np.bool_)
        kinds[STOP] = not state.stopped
        left = tuple((SHARE, self.names[place]) for place in self.left(state))
        return Mask(kinds, candidates=left)

    def left(self, state: CseState) -> list[int]:
        """Return the places of the candidates that are not shared yet; none once the schedule has ended."""
        return (
            [] if state.stopped else [place for place in range(len(self.names)) if place not in state.shared]
        )

    def step(self, state: CseState, action: Action) -> CseState:
        """Return the state after one more candidate is shared, or after `stop`.

        Raises:
            ScheduleError: The candidate is shared already or does not exist, or the schedule has ended.
        """
        place = self._places.get(action.candidate)
        if not state.stopped and action.kind == STOP:
            return replace(state, stopped=True)
        if state.stopped or place is None or place in state.shared:
            raise ScheduleError(f"{self.space.text(action)} does not apply here")
        return replace(state, shared=state.shared | {place})

    def terminal(self, state: CseState) -> bool:
        """Say whether the schedule has ended."""
        return state.stopped

    def key(self, state: CseState) -> str:
        """Return the names of the shared candidates, in order."""
        return " ".join(self.names[place] for place in sorted(state.shared))

    def schedule_of(self, chosen: Sequence[int]) -> Schedule:
        """Return the schedule that shares the candidates at some places."""
        return Schedule(tuple(Action(SHARE, candidate=self.names[place]) for place in sorted(chosen)))
