"""Validation of candidates: compared with the original program on random inputs."""

import math
from typing import Any

from irgym.base.errors import IrgymError, WrongResultsError
from irgym.core import capabilities
from irgym.core.bench import Bench
from irgym.core.cost import Call, Validation
from irgym.core.task import Task


class Validator:
    """Compares programs with their originals on random inputs, each distinct program once.

    Attributes:
        inputs: Number of random inputs; 0 turns validation off.
        seed: Seed of the inputs.
    """

    def __init__(self, bench: Bench, inputs: int, seed: int) -> None:
        """Set up without comparing anything yet."""
        self.inputs = inputs
        self.seed = seed
        self._bench = bench
        self._seen: dict[tuple[str, str], Validation | IrgymError] = {}

    def prepare(self, task: Task[Any]) -> None:
        """Start the work that does not depend on a candidate.

        Where costs are times, nothing may run beside a measurement: the work is done, and awaited, if what
        measuring needs takes as long and can be done beside it.
        """
        preparation = capabilities.ask(task, capabilities.Preparation)
        if not self.inputs or preparation is None:
            return
        warming = preparation.warming()
        if warming is not None or not task.objective.timed:
            self._bench.prepare(preparation.preparation(self.inputs, self.seed), candidates=warming)
        if warming is not None and task.objective.timed:
            self._bench.settle()

    def __call__(self, task: Task[Any], state: Any, seconds: float = math.inf) -> Validation | None:
        """Return the comparison with the original; None if validation is off.

        Results may agree and still not be checkable: `Validation.blind` then names the wrong answer that
        would pass too, or the reason why the original does not run.

        Args:
            task: The program.
            state: Its state.
            seconds: Time for it; where there is little, a validation that can be shortened is.

        Raises:
            WrongResultsError: The results differ, or the program fails where the original runs.
        """
        if not self.inputs:
            return None
        validation = self._compared(task, state, seconds)
        if not validation.ok:
            raise WrongResultsError(
                f"the schedule gives wrong results for {task.uri} ({validation.detail}; allowed: "
                f"{validation.tolerance}): please report it as a bug of irgym"
            )
        return validation

    def _compared(self, task: Task[Any], state: Any, seconds: float) -> Validation:
        """Return the comparison of a program with its original.

        Raises:
            WrongResultsError: The program fails, but the original runs.
        """
        found = self._run(task, state, seconds)
        if isinstance(found, Validation) and found.ok:
            return found
        # A failure proves nothing if the original, compared with itself, fails too.
        original = self._run(task, task.initial(), seconds)
        if isinstance(original, IrgymError):
            return Validation(True, 0.0, "", 0, blind=f"the original program does not run: {original}")
        if not original.ok:
            return Validation(True, 0.0, "", 0, blind=f"the original program fails too: {original.detail}")
        if isinstance(found, IrgymError):
            raise WrongResultsError(
                f"{task.uri} fails with this schedule when it is checked: {found}"
            ) from found
        return found

    def _run(self, task: Task[Any], state: Any, seconds: float) -> Validation | IrgymError:
        """Run a program and its original, each distinct program once."""
        key = task.uri, task.job(state).schedule
        if key not in self._seen:
            try:
                self._seen[key] = self._bench.call(self._call(task, state, seconds))
            except IrgymError as error:
                self._seen[key] = error
        return self._seen[key]

    def _call(self, task: Task[Any], state: Any, seconds: float) -> Call:
        brief = capabilities.ask(task, capabilities.BriefValidation)
        if brief is None or math.isinf(seconds):
            return task.validation(state, self.inputs, self.seed)
        return brief.validation_within(state, self.inputs, self.seed, seconds)
