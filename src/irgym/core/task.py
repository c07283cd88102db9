"""A task: one program on one compiler as a pure transition system."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job

S = TypeVar("S", bound=Hashable)


class Task(ABC, Generic[S]):
    """One program on one compiler.

    States are immutable and hashable, so a fork is a variable: a search tree, a replay and an
    episode make the same calls.

    Attributes:
        uri: Canonical URI of the program.
        space: The actions.
        horizon: Number of steps after which an episode is cut off.
        objective: What a cost means, such as `time`; its unit is nanoseconds for `time`.
    """

    uri: str
    space: ActionSpace
    horizon: int
    objective: str = "time"

    @abstractmethod
    def initial(self) -> S:
        """Return the state of the program as written, with no action taken."""

    @abstractmethod
    def mask(self, state: S) -> Mask:
        """Return which actions apply. An action that the mask allows can be stepped."""

    @abstractmethod
    def step(self, state: S, action: Action) -> S:
        """Return the state after `action`, which the mask of `state` must allow.

        Raises:
            ScheduleError: The action does not apply.
        """

    def step_batch(self, states: Sequence[S], actions: Sequence[Action]) -> list[S]:
        """Step many states at once; a back end with slow transitions overrides this to spread them."""
        return [self.step(state, action) for state, action in zip(states, actions, strict=True)]

    @abstractmethod
    def terminal(self, state: S) -> bool:
        """Say whether the episode ended here: no action applies any more."""

    @abstractmethod
    def observe(self, state: S) -> Any:
        """Return what a policy sees; the policy's `collate` makes a batch of such values."""

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
        """

    def ideal_cost(self, peak_gflops: float) -> float | None:
        """Return a lower bound on the cost on a machine with that peak, or None where none is known."""
        del peak_gflops
        return None
