"""A task: one program on one compiler as a pure transition system."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job
from irgym.core.objective import TIME, Objective, objective_named
from irgym.core.observation import ObservationView, observed
from irgym.core.target import Target

S = TypeVar("S", bound=Hashable)


def form_of(path: Path, forms: Mapping[str, str]) -> str:
    """Return which of some suffixes a file's name ends in, in lower or upper case; the longest of several.

    Whoever writes a file asks here what form it is to have, and nowhere else.

    Args:
        path: The file.
        forms: What each suffix, in lower case, stands for, such as `C source` for `.c`.

    Raises:
        IrgymError: It ends in none of them, or there are none.
    """
    if not forms:
        raise IrgymError(f"cannot export to {path.name!r}: this back end exports nothing; choose another one")
    name = path.name.lower()
    matching = [suffix for suffix in forms if name.endswith(suffix) and len(name) > len(suffix)]
    if not matching:
        known = ", ".join(f"{suffix} ({form})" for suffix, form in forms.items())
        raise IrgymError(f"cannot export to {path.name!r}: end the name in one of {known}")
    return max(matching, key=len)


class Task(ABC, Generic[S]):
    """One program on one compiler.

    States are immutable and hashable, so a fork is a variable: a search tree, a replay and an
    episode make the same calls.

    Attributes:
        uri: Canonical URI of the program.
        space: The actions.
        horizon: Number of steps after which an episode is cut off.
        objectives: What may be minimised, the default first.
        objective: What is minimised: what a cost means. At the start the first of `objectives`.
        forms: The suffixes that `export` writes, and what each stands for.
        gradual: Whether states on an episode's way may well be better than its end, and so are worth their
            measurement. Not where actions pay only together.
        runs_beside: Whether transitions that were begun run beside what this process does meanwhile.
    """

    uri: str
    space: ActionSpace
    horizon: int
    objectives: Sequence[Objective] = (TIME,)
    objective: Objective = TIME
    forms: Mapping[str, str] = MappingProxyType({})
    gradual: bool = True
    runs_beside: bool = False

    def __init_subclass__(cls) -> None:
        """Make the first of the class's own `objectives` its objective."""
        super().__init_subclass__()
        if "objectives" in vars(cls):
            cls.objective = cls.objectives[0]

    @abstractmethod
    def initial(self) -> S:
        """Return the state of the original program, with no action taken."""

    @abstractmethod
    def mask(self, state: S) -> Mask:
        """Return which actions apply. An action that the mask allows can be stepped."""

    @abstractmethod
    def step(self, state: S, action: Action) -> S:
        """Return the state after an action that `accepts` accepts: callers make sure of that."""

    def accepts(self, state: S, action: Action) -> bool:
        """Say whether an action can be stepped: what the mask allows, and what it keeps from searches.

        Schedules are replayed by what is accepted; searches and policies go by the mask.
        """
        return self.space.allows(self.mask(state), action)

    @classmethod
    def step_many(
        cls, tasks: "Sequence[Task[Any]]", states: Sequence[Any], actions: Sequence[Action]
    ) -> list[Any]:
        """Step a state of each of some tasks of this class, which may repeat.

        A back end whose transitions are slow overrides this to spread them over processes.
        """
        return [task.step(state, action) for task, state, action in zip(tasks, states, actions, strict=True)]

    @classmethod
    def begin_many(
        cls, tasks: "Sequence[Task[Any]]", states: Sequence[Any], actions: Sequence[Action]
    ) -> Callable[[], list[Any]]:
        """Begin what `step_many` does; return a function that waits for the states.

        A back end whose transitions run in other processes overrides this too, and sets `runs_beside`.
        """
        after = cls.step_many(tasks, states, actions)
        return lambda: after

    def step_batch(self, states: Sequence[S], actions: Sequence[Action]) -> list[S]:
        """Step many states of this task at once."""
        return self.step_many([self] * len(states), states, actions)

    @abstractmethod
    def terminal(self, state: S) -> bool:
        """Say whether the episode ended here: no action applies any more."""

    @property
    @abstractmethod
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""

    def observe(self, state: S, observation: str = "") -> Any:
        """Return what a policy sees; the policy's `collate` makes a batch of such values.

        Args:
            state: A state.
            observation: Name of one of `views`; several, separated by commas, are joined; empty for the
                default.

        Raises:
            IrgymError: There is no such observation, or policies cannot see it.
        """
        return observed(self.views, observation, self, state)

    @abstractmethod
    def key(self, state: S) -> str:
        """Return the canonical text of the program in this state: equal texts mean equal programs.

        It is the `schedule` of the state's job.
        """

    @abstractmethod
    def job(self, state: S) -> Job:
        """Return the request for the cost of `state`."""

    @abstractmethod
    def validation(self, state: S, inputs: int, seed: int) -> Call:
        """Return the call that compares `state` with the original program on random inputs.

        The call returns a `Validation`.
        """

    @abstractmethod
    def describe(self, state: S) -> str:
        """Return the program in this state as text a person can read."""

    @abstractmethod
    def export(self, state: S, path: Path) -> list[Path]:
        """Write the program in this state in a form usable without irgym.

        Args:
            state: What to write.
            path: File to write; its suffix chooses the form. Companions go beside it.

        Returns:
            The files written.

        Raises:
            IrgymError: The suffix names no form, or the state has none such.
            StorageError: A file cannot be written.
        """

    def under(self, objective: str | None) -> Self:
        """Return the same program with another objective; states of either suit both.

        Args:
            objective: Name of the objective; None for the one that the task has.

        Raises:
            IrgymError: There is no such objective.
        """
        if objective is None or objective == self.objective.name:
            return self
        task = copy(self)
        task.objective = objective_named(objective, self.objectives, self.uri.partition(":")[0])
        return task

    @property
    def wrapped(self) -> "Task[Any] | None":
        """The task that this one is another view of, and has the capabilities of; mostly none."""
        return None

    @property
    def target(self) -> Target | None:
        """Target of its code; None if its costs depend on no target."""
        return None

    @property
    def target_text(self) -> str:
        """The target as jobs name it; empty where there is none."""
        return "" if self.target is None else self.target.text

    def identity(self, state: S) -> Hashable:
        """Return what searches tell states apart by; states with equal identities have equal futures.

        Coarser than equality where states remember the way that they were reached. A wrong match costs a
        search a candidate, never a wrong result.
        """
        return state


def targets_of(tasks: "Sequence[Task[Any]]") -> tuple[str, ...]:
    """Return the names of the targets of some tasks, each once; none where costs depend on no target."""
    return tuple(dict.fromkeys(task.target.name for task in tasks if task.target is not None))
