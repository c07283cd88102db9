"""The task: the choice of common subexpressions that the .NET JIT shares in one method."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError, UnknownPipelineError
from irgym.base.files import write_file
from irgym.core.cost import Call, Job
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule
from irgym.core.task import form_of
from irgym.envs.cse.choice_task import ALL, COST_TEST, ChoiceTask
from irgym.envs.cse.state import CseState
from irgym.envs.cse.superpmi.answers import JitMethod
from irgym.envs.cse.superpmi.session import replayed
from irgym.envs.cse.superpmi.uris import MethodUri

OBJECTIVES = (
    Objective("score", "", "PerfScore of the .NET JIT", exact=True, timed=False),
    Objective("bytes", "B", "bytes of code", exact=True, timed=False),
    Objective("instructions", "", "instructions", exact=True, timed=False),
)
"""Objectives, the default first."""

PIPELINES = {
    ALL: "all viable candidates shared",
    COST_TEST: "the candidates that the JIT's heuristic shares",
}
"""Choices that need no search, by name."""

RUNNER = "irgym.envs.cse.superpmi.runner"
"""The module with the functions that children run."""


class SuperPmiTask(ChoiceTask):
    """The choice of candidates to share in a method.

    Args:
        program: The method's URI.
        method: The method, compiled with nothing shared.
        heuristic: The candidates that the JIT's heuristic shares, from 0; None if unknown.
        toolchain: Identifies the JIT and the collection.
        objective: The objective to minimise.
    """

    objectives = OBJECTIVES
    forms: Mapping[str, str] = {".txt": "list of what is shared, with the JIT's option that does so"}

    def __init__(
        self,
        program: MethodUri,
        method: JitMethod,
        heuristic: Sequence[int] | None,
        toolchain: str,
        objective: Objective = OBJECTIVES[0],
    ) -> None:
        self.program = program
        self.method = method
        self._toolchain = toolchain
        self._numbers = [place for place, candidate in enumerate(method.candidates) if candidate["viable"]]
        self._heuristic = (
            heuristic if heuristic is not None and set(heuristic) <= set(self._numbers) else None
        )
        super().__init__(program.uri, [f"cse-{number + 1}" for number in self._numbers], objective)

    @cached_property
    def rows(self) -> NDArray[np.float32]:
        """Features of each candidate, shape [N, CANDIDATE]."""
        from irgym.envs.cse.superpmi.observations import rows_of

        return rows_of(self.method)[self._numbers]

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.cse.superpmi.observations import VIEWS

        return VIEWS

    def chosen(self, state: CseState) -> tuple[int, ...]:
        """Return the shared candidates as the JIT numbers them, from 0."""
        return tuple(self._numbers[place] for place in sorted(state.shared))

    def job(self, state: CseState) -> Job:
        """Return the job that measures the cost."""
        arguments = (self.program.collection, self.program.index, self.chosen(state), self.objective.name)
        return Job(
            Call(f"{RUNNER}:measure", arguments),
            program=self.uri,
            schedule=self.key(state),
            toolchain=self._toolchain,
            objective=self.objective.name,
            original=not state.shared,
            target="",
        )

    def validation(self, state: CseState, inputs: int, seed: int) -> Call:
        """Return the call in which the JIT compiles a choice again; no code is run."""
        del inputs, seed
        return Call(f"{RUNNER}:validate", (self.program.collection, self.program.index, self.chosen(state)))

    def pipeline(self, name: str) -> Schedule:
        """Return the schedule of a choice that needs no search; see `PIPELINES`.

        Raises:
            UnknownPipelineError: The JIT does not say what its heuristic shares.
            IrgymError: There is no such pipeline.
        """
        if name not in PIPELINES:
            raise IrgymError(f"superpmi has no pipeline {name!r}: choose among {', '.join(PIPELINES)}")
        chosen = self._numbers if name == ALL else self._heuristic
        if chosen is None:
            raise UnknownPipelineError(
                f"the JIT does not tell what it shares in {self.uri}: leave {name} out"
            )
        return self.schedule_of([place for place, number in enumerate(self._numbers) if number in chosen])

    def describe(self, state: CseState) -> str:
        """Return the method's name and a line for each candidate, which says whether it is shared."""
        rows = [
            f"{'shared' if place in state.shared else '      '}  {name:<8} "
            + ", ".join(f"{key} {value}" for key, value in self.method.candidates[number].items() if value)
            for place, (name, number) in enumerate(zip(self.names, self._numbers, strict=True))
        ]
        return "\n".join([self.method.name, *(rows or ["the JIT finds nothing to share"])])

    def export(self, state: CseState, path: Path) -> list[Path]:
        """Write a list of the shared candidates, with the JIT's option that shares them.

        Raises:
            IrgymError: The suffix is another.
            StorageError: The file cannot be written.
        """
        form_of(path, self.forms)
        lines = [
            self.method.name,
            replayed(self.chosen(state)),
            *(self.names[place] for place in sorted(state.shared)),
        ]
        write_file(path, "".join(f"{line}\n" for line in lines).encode())
        return [path]
