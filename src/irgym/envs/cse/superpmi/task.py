"""The task: one method of a collection, and which of its common subexpressions the .NET JIT shares."""

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
from irgym.envs.cse.choosing import ALL, COST_TEST, ChoiceTask
from irgym.envs.cse.state import CseState
from irgym.envs.cse.superpmi.answers import JitMethod
from irgym.envs.cse.superpmi.session import replayed
from irgym.envs.cse.superpmi.uris import MethodUri

OBJECTIVES = (
    Objective("score", "", "PerfScore of the .NET JIT", exact=True, timed=False),
    Objective("bytes", "B", "bytes of code", exact=True, timed=False),
    Objective("instructions", "", "instructions", exact=True, timed=False),
)
"""What may be minimised, the default first."""

PIPELINES = {
    ALL: "all candidates shared that the JIT lets be shared",
    COST_TEST: "what the JIT's own heuristic shares",
}
"""What is chosen without a search, by name."""

RUNNER = "irgym.envs.cse.superpmi.runner"


class SuperPmiTask(ChoiceTask):
    """Choosing what one method shares.

    Args:
        program: The method.
        method: What the JIT makes of it with nothing shared.
        heuristic: The candidates that the JIT's own heuristic shares, from 0 on; None where the JIT does not
            tell.
        toolchain: What stands for the JIT and the collection.
        objective: What is minimised.
    """

    objectives = OBJECTIVES
    forms = {".txt": "list of what is shared, with the JIT's option that does so"}  # noqa: RUF012

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
        self._numbers = [place for place, one in enumerate(method.candidates) if one["viable"]]
        self._heuristic = (
            heuristic if heuristic is not None and set(heuristic) <= set(self._numbers) else None
        )
        super().__init__(program.uri, [f"cse-{one + 1}" for one in self._numbers], objective)

    @cached_property
    def rows(self) -> NDArray[np.float32]:
        """What is seen of each candidate, shape [N, CANDIDATE]."""
        from irgym.envs.cse.superpmi.observations import rows_of

        return rows_of(self.method)[self._numbers]

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.cse.superpmi.observations import VIEWS

        return VIEWS

    def chosen(self, state: CseState) -> tuple[int, ...]:
        """Return what is shared, as the JIT counts candidates, from 0 on."""
        return tuple(self._numbers[place] for place in sorted(state.shared))

    def job(self, state: CseState) -> Job:
        """Return the request for the cost."""
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
        """Return the call that has the JIT compile a choice once more: no code is run."""
        del inputs, seed
        return Call(f"{RUNNER}:validate", (self.program.collection, self.program.index, self.chosen(state)))

    def pipeline(self, name: str) -> Schedule:
        """Return what the JIT would share.

        Raises:
            UnknownPipelineError: The JIT does not tell what it shares.
            IrgymError: There is no such choice.
        """
        if name not in PIPELINES:
            raise IrgymError(f"superpmi has no pipeline {name!r}: choose among {', '.join(PIPELINES)}")
        own = self._numbers if name == ALL else self._heuristic
        if own is None:
            raise UnknownPipelineError(
                f"the JIT does not tell what it shares in {self.uri}: leave {name} out"
            )
        return self.schedule_of([place for place, number in enumerate(self._numbers) if number in own])

    def describe(self, state: CseState) -> str:
        """Return the method's name and each candidate, and whether it is shared."""
        rows = [
            f"{'shared' if place in state.shared else '      '}  {name:<8} "
            + ", ".join(f"{key} {value}" for key, value in self.method.candidates[number].items() if value)
            for place, (name, number) in enumerate(zip(self.names, self._numbers, strict=True))
        ]
        return "\n".join([self.method.name, *(rows or ["the JIT finds nothing to share"])])

    def export(self, state: CseState, path: Path) -> list[Path]:
        """Write a list of what is shared, with the option under which the JIT does the same.

        Raises:
            IrgymError: The suffix is another.
            StorageError: The file cannot be written.
        """
        form_of(path, self.forms)
        lines = [
            self.method.name,
            replayed(self.chosen(state)),
            *(self.names[one] for one in sorted(state.shared)),
        ]
        write_file(path, "".join(f"{line}\n" for line in lines).encode())
        return [path]
