"""The task: the choice of common subexpressions to share in one function."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.cost import Call, Job
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.envs.cse.actions import names_of
from irgym.envs.cse.choice_task import ALL, COST_TEST, ChoiceTask
from irgym.envs.cse.compiling.export import FORMS, Choice, assembly_text, export
from irgym.envs.cse.compiling.toolchain import RUNNER, toolchain
from irgym.envs.cse.estimates.cost_test import REGISTERS, passes
from irgym.envs.cse.estimates.estimate import Machine
from irgym.envs.cse.estimates.estimator import Estimator
from irgym.envs.cse.estimates.facts import Surroundings
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.observing.features import Features
from irgym.envs.cse.state import CseState
from irgym.measure.target import runs_here

SCORE = Objective("score", "", "static score: LLVM's instructions, weighted", exact=True, timed=False)
"""The static score, which is no time: costs of the instructions, weighted by estimated block frequencies."""

INSTRUCTIONS = Objective("instructions", "", "instructions of the assembly", exact=True, timed=False)
"""The number of instructions."""

OBJECTIVES = (SCORE, INSTRUCTIONS)
"""Objectives, the default first."""

ESTIMATED = "estimated"
"""Name of the choice that minimises the estimate."""

PIPELINES = {
    ALL: "all candidates shared, as in compilers without a cost test",
    COST_TEST: "the candidates that pass a test of costs and registers, as in the .NET JIT",
    ESTIMATED: "a local optimum under a model of LLVM's registers, stack and frame",
}
"""Choices that need no compilation, by name."""

CHECKS = "irgym.envs.cse.checking.choices"
"""The module with the function that children run to check a choice."""


class CseTask(ChoiceTask):
    """The choice of candidates to share in a function.

    Args:
        uri: Canonical URI of the program.
        module: File of the prepared module.
        content: Digest of that file.
        analysed: The function.
        target: The target.
        objective: The objective to minimise.
    """

    objectives = OBJECTIVES
    forms = FORMS

    def __init__(
        self,
        uri: str,
        module: Path,
        content: str,
        analysed: Analysed,
        target: Target,
        objective: Objective = SCORE,
    ) -> None:
        super().__init__(uri, names_of(analysed.candidates), objective)
        self.module = module
        self.content = content
        self.analysed = analysed
        self._target = target

    @property
    def target(self) -> Target:
        """The target."""
        return self._target

    @cached_property
    def surroundings(self) -> Surroundings:
        """Facts about the candidates."""
        return Surroundings(self.analysed)

    @cached_property
    def features(self) -> Features:
        """Features of the function, which policies observe."""
        return Features(self.analysed, self.surroundings, self.estimator, self._target)

    @cached_property
    def estimator(self) -> Estimator:
        """A model of LLVM's code for the choices in the function."""
        lasting, total = REGISTERS[self._target.name]["integer"]
        machine = Machine(lasting - 1, total - 1, folds=self._target.name != "aarch64")
        return Estimator(self.analysed, self.surroundings.liveness, machine)

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.cse.observing.observations import VIEWS

        return VIEWS

    def analysis(self, state: CseState) -> NDArray[np.float64]:
        """Return the remaining savings by operation costs, as a share of the initial ones, shape [1]."""
        saved = [facts.cost * facts.saved for facts in self.surroundings.facts]
        left = sum(saved) - sum(saved[place] for place in state.shared)
        return np.array([left / sum(saved) if saved else 1.0])

    def job(self, state: CseState) -> Job:
        """Return the job that measures the score."""
        shared = tuple(sorted(state.shared))
        name = self.analysed.function.name
        arguments = (str(self.module), name, shared, self._target.name, self.objective.name)
        return Job(
            Call(f"{RUNNER}:measure", arguments),
            program=self.uri,
            schedule=self.key(state),
            toolchain=f"{toolchain()}; {self.content}",
            objective=self.objective.name,
            original=not shared,
            many=f"{RUNNER}:measure_many",
            target=self.target_text,
        )

    def validation(self, state: CseState, inputs: int, seed: int) -> Call:
        """Return the call that checks a choice.

        It proves shared results equal, then compares runs with the original. Code for another machine does
        not run.
        """
        shared = tuple(sorted(state.shared))
        arguments = (str(self.module), self.analysed.function.name, shared, inputs, seed)
        return Call(f"{CHECKS}:checked", (*arguments, runs_here(self._target)))

    def pipeline(self, name: str) -> Schedule:
        """Return the schedule of a choice that needs no compilation; see `PIPELINES`.

        Raises:
            IrgymError: There is no such pipeline.
        """
        if name not in PIPELINES:
            raise IrgymError(f"cse has no pipeline {name!r}: choose among {', '.join(PIPELINES)}")
        if name == ALL:
            return self.schedule_of(range(len(self.names)))
        if name == ESTIMATED:
            return self.schedule_of(tuple(self.estimator.settled))
        facts = enumerate(self.surroundings.facts)
        return self.schedule_of([place for place, candidate in facts if passes(candidate, self._target.name)])

    def describe(self, state: CseState) -> str:
        """Return a line for each candidate, which says whether it is shared."""
        rows = [
            f"{'shared' if place in state.shared else '      '}  {name:<20} {candidate.opcode:<14} "
            f"{len(candidate.members)} times, {len(candidate.leaders)} if it is shared"
            for place, (name, candidate) in enumerate(zip(self.names, self.analysed.candidates, strict=True))
        ]
        more = self.analysed.left_out
        last = [f"{more} more, with the least weight, are left out"] if more else []
        return "\n".join([*rows, *last]) or "nothing is computed twice in different blocks"

    def choice(self, state: CseState) -> Choice:
        """Return the choice of a state, for export."""
        shared = tuple(sorted(state.shared))
        return Choice(self.uri, self.module, self.analysed, self.names, shared, self._target.name)

    def text(self, state: CseState) -> str:
        """Return LLVM's IR of the function in a state."""
        lines = self.analysed.sharing.lines(sorted(state.shared))
        return "\n".join([self.analysed.function.header, *lines, "}", ""])

    def listings(self, state: CseState) -> Mapping[str, str]:
        """Return LLVM's IR of the function, and its assembly.

        Raises:
            IrgymError: LLVM fails on the function.
        """
        return {"LLVM's IR": self.text(state), "Assembly": assembly_text(self.choice(state))}

    def export(self, state: CseState, path: Path) -> list[Path]:
        """Write the module (.ll), the function's assembly (.s), or a list of what is shared (.txt).

        Raises:
            IrgymError: The suffix is another.
            StorageError: The file cannot be written.
        """
        return export(self.choice(state), path)
