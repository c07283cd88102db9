"""The task: one function, and which of its common subexpressions are shared."""

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
from irgym.envs.cse.choosing import ALL, COST_TEST, ChoiceTask
from irgym.envs.cse.compiling.toolchain import toolchain
from irgym.envs.cse.estimates.estimator import Estimator, Machine
from irgym.envs.cse.heuristics import REGISTERS, passes
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.facts import Surroundings
from irgym.envs.cse.observing.features import Features
from irgym.envs.cse.state import CseState
from irgym.measure.target import runs_here

SCORE = Objective("score", "", "static score: LLVM's instructions, weighted", exact=True, timed=False)
"""Not a time: what the instructions of the assembly cost, times how often their blocks run by an estimate."""

INSTRUCTIONS = Objective("instructions", "", "instructions of the assembly", exact=True, timed=False)
"""How many instructions there are."""

OBJECTIVES = (SCORE, INSTRUCTIONS)
"""What may be minimised, the default first."""

ESTIMATED = "estimated"
"""The choice that estimates prefer."""

PIPELINES = {
    ALL: "all candidates shared, as compilers do that test nothing",
    COST_TEST: "those shared that a test of costs and registers lets pass, as in the .NET JIT",
    ESTIMATED: "those shared that a model of LLVM's registers, stack and frame prefers, by descent",
}
"""What is chosen without looking at code, by name."""

RUNNER, CHECKS = "irgym.envs.cse.runner", "irgym.envs.cse.checking.choices"


class CseTask(ChoiceTask):
    """Choosing what one function shares.

    Args:
        uri: Canonical URI of the program.
        module: The file of its module, prepared.
        content: What stands for the content of that file.
        analysed: What is known of the function.
        target: What code is made for.
        objective: What is minimised.
    """

    objectives = OBJECTIVES
    forms = {  # noqa: RUF012
        ".ll": "LLVM IR of the module",
        ".s": "assembly of the function",
        ".txt": "list of what is shared",
    }

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
        """What code is made for."""
        return self._target

    @cached_property
    def surroundings(self) -> Surroundings:
        """The function, seen from its candidates."""
        return Surroundings(self.analysed)

    @cached_property
    def features(self) -> Features:
        """What policies see of the function."""
        return Features(self.analysed, self.surroundings, self.estimator, self._target)

    @cached_property
    def estimator(self) -> Estimator:
        """A model of what LLVM makes of the function's choices."""
        lasting, whole = REGISTERS[self._target.name]["integer"]
        machine = Machine(lasting - 1, whole - 1, folds=self._target.name != "aarch64")
        return Estimator(self.analysed, self.surroundings.liveness, machine)

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.cse.observing.observations import VIEWS

        return VIEWS

    def analysis(self, state: CseState) -> NDArray[np.float64]:
        """Return what is left to save, by the operations' costs, as a share of the first, shape [1]."""
        saved = [one.cost * one.saved for one in self.surroundings.facts]
        left = sum(saved) - sum(saved[place] for place in state.shared)
        return np.array([left / sum(saved) if saved else 1.0])

    def job(self, state: CseState) -> Job:
        """Return the request for the score."""
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
        """Return the call that proves what it can, and runs the function beside the function as written.

        Code for another machine is not run.
        """
        shared = tuple(sorted(state.shared))
        arguments = (str(self.module), self.analysed.function.name, shared, inputs, seed)
        return Call(f"{CHECKS}:checked", (*arguments, runs_here(self._target)))

    def pipeline(self, name: str) -> Schedule:
        """Return what a compiler would share, or the model of code generation.

        Raises:
            IrgymError: There is no such choice.
        """
        if name not in PIPELINES:
            raise IrgymError(f"cse has no pipeline {name!r}: choose among {', '.join(PIPELINES)}")
        if name == ALL:
            return self.schedule_of(range(len(self.names)))
        if name == ESTIMATED:
            return self.schedule_of(tuple(self.estimator.settled))
        facts = enumerate(self.surroundings.facts)
        return self.schedule_of([place for place, one in facts if passes(one, self._target.name)])

    def describe(self, state: CseState) -> str:
        """Return each candidate, and whether it is shared."""
        rows = [
            f"{'shared' if place in state.shared else '      '}  {name:<20} {one.opcode:<14} "
            f"{len(one.members)} times, {len(one.leaders)} of them stay if it is shared"
            for place, (name, one) in enumerate(zip(self.names, self.analysed.candidates, strict=True))
        ]
        more = self.analysed.left_out
        last = [f"{more} more, with the least weight, are left out"] if more else []
        return "\n".join([*rows, *last]) or "nothing is computed twice in different blocks"

    def text(self, state: CseState) -> str:
        """Return the function in a state, as LLVM's IR."""
        lines = self.analysed.sharing.lines(sorted(state.shared))
        return "\n".join([self.analysed.function.header, *lines, "}", ""])

    def listings(self, state: CseState) -> Mapping[str, str]:
        """Return the function as LLVM's IR, and its assembly.

        Raises:
            IrgymError: LLVM does not make it.
        """
        from irgym.envs.cse.compiling.export import assembly_text

        return {"LLVM's IR": self.text(state), "Assembly": assembly_text(self, state)}

    def export(self, state: CseState, path: Path) -> list[Path]:
        """Write the module (.ll), the function's assembly (.s), or a list of what is shared (.txt).

        Raises:
            IrgymError: The suffix is another.
            StorageError: The file cannot be written.
        """
        from irgym.envs.cse.compiling.export import export

        return export(self, state, path)
