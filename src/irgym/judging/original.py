"""Objects that programs are made of, such as torch modules: calls in their place are checked too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from irgym.base.errors import IrgymError, ProgramError
from irgym.core.cost import Validation
from irgym.core.environment import Environment
from irgym.core.task import Task
from irgym.judging.finding import Finding


@runtime_checkable
class Stands(Protocol):
    """A callable that can stand for the object that its program was made of."""

    def standing(self, program: Any) -> Callable[..., Any]:
        """Return what is called as its user calls the object, and calls it on inputs of another kind."""
        ...


@runtime_checkable
class Callables(Protocol):
    """A task whose programs can be called from Python where they were made of no object."""

    def function(self, state: Any) -> Callable[..., Any]:
        """Return a function of arrays that runs the program in this process.

        Raises:
            IrgymError: It cannot run here.
        """
        ...


@runtime_checkable
class CalledAs(Protocol):
    """An object of tensors that was made of one that its user calls in another way."""

    @property
    def module(self) -> Any:
        """The user's object."""
        ...

    @property
    def example(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Inputs of the user's object, by position and by name."""
        ...


@dataclass(frozen=True)
class Original:
    """An object that a program was made of.

    Attributes:
        program: The object.
        inputs: What it was given with.
        environment: What made the program of it.
    """

    program: object
    inputs: Sequence[Any]
    environment: Environment

    def function(self, task: Task[Any], state: Any) -> Callable[..., Any]:
        """Return what computes a scheduled program and is called as the object.

        Raises:
            IrgymError: Its environment cannot call it.
        """
        return self.environment.in_place_of(self.program, self.inputs, task, state)

    def standing(self, task: Task[Any], state: Any) -> Callable[..., Any]:
        """Return the same for its user, which calls the object itself where nothing was tuned, if it can.

        Raises:
            IrgymError: As for `function`.
        """
        function = self.function(task, state)
        return function.standing(self.program) if isinstance(function, Stands) else function

    def as_called(self) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
        """Return the object as its user has it, and its inputs by position and by name."""
        program: Any = self.program
        if isinstance(program, CalledAs):
            return program.module, *program.example
        return program, self.inputs, {}

    def confirmed(self, task: Task[Any], finding: Finding, seed: int) -> Finding:
        """Return a finding whose validation covers calls in place of the object, compared with calls of it.

        Args:
            task: The program that was made of the object.
            finding: What became of it.
            seed: Seed of the inputs beside the example.

        Raises:
            IrgymError: The results differ, or the program fails when it is called.
        """
        try:
            function = self.function(task, finding.state)
        except ProgramError as error:  # what is computed is right, and can be exported
            return replace(finding, validation=_uncalled(finding.validation, error))
        called = self.environment.compare_called(self.program, self.inputs, function, seed)
        if not called.ok:
            raise IrgymError(
                f"{task.uri} with this schedule, called in place of what it was made of, returns something "
                f"else ({called.detail}): please report it as a bug of irgym"
            )
        return replace(finding, validation=_both(finding.validation, called))


def _uncalled(validation: Validation | None, error: ProgramError) -> Validation | None:
    """Return a comparison that says that the program cannot be called, where it was compared."""
    if validation is None:
        return None
    return replace(validation, tolerance=f"{validation.tolerance}; it cannot be called: {error}")


def _both(validation: Validation | None, called: Validation) -> Validation:
    """Return what two comparisons come to, the first of programs, the second of calls."""
    if validation is None or not (validation.inputs or validation.blind):
        return called
    tolerance = f"{validation.tolerance}; {called.tolerance} on {called.inputs} inputs"
    return replace(validation, error=max(validation.error, called.error), tolerance=tolerance)
