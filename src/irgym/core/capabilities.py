"""Capabilities: optional methods of tasks, asked for here by type, and nowhere else.

A task offers a capability by having its methods; nothing is declared. What is not offered is left out:
without sketches a search starts from random episodes, without an analysis a reward has no shaping.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import Action
from irgym.core.baseline import ROUNDS
from irgym.core.cost import Call, Job
from irgym.core.drawing import Drawing
from irgym.core.schedule import Schedule
from irgym.core.task import Task

C = TypeVar("C")


@runtime_checkable
class Sketches(Protocol):
    """Random schedules of the form that experts write, which searches may start from."""

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return the actions of a random schedule."""
        ...


@runtime_checkable
class Preparation(Protocol):
    """A validation of which a part can be done before there is anything to validate."""

    def preparation(self, inputs: int, seed: int) -> Call:
        """Return the call that does it; its process then has it at hand. Arguments are as `validation`'s."""
        ...

    def warming(self) -> Call | None:
        """Return the call after which processes measure at once, if it takes about as long; else None."""
        ...

    def validation_s(self) -> float:
        """Return how many seconds preparation and validation take at most, by the program's size."""
        ...


@runtime_checkable
class BriefValidation(Protocol):
    """A validation that can leave out all but the most telling inputs, and says so."""

    def validation_within(self, state: Any, inputs: int, seed: int, seconds: float) -> Call:
        """Return the call of `Task.validation` that leaves out inputs for which there is no time."""
        ...


@runtime_checkable
class Macros(Protocol):
    """Macro-actions: those that stand for several others, one after the other."""

    def is_macro(self, action: Action) -> bool:
        """Say whether an action stands for several others."""
        ...


@runtime_checkable
class Analysis(Protocol):
    """Costs by a cheap model, on which shaping rests."""

    def analysis(self, state: Any) -> NDArray[np.float64]:
        """Return costs of the state, each as a share of the initial state's, shape [K]."""
        ...


@runtime_checkable
class CostAnalysis(Protocol):
    """The compiler's own counts of what a program does."""

    def cost_analysis(self, state: Any) -> NDArray[np.float64]:
        """Return floating-point operations, transcendental operations and bytes accessed, shape [3]."""
        ...


@runtime_checkable
class AnalysedForm(Protocol):
    """A form of the task that computes the analysis of a state with the state, where that takes its time."""

    def analysed(self) -> Task[Any]:
        """Return this task in a form that has the analysis of every state at hand; states suit both."""
        ...


@runtime_checkable
class CostFeatures(Protocol):
    """Features from which a learned model predicts costs."""

    def cost_features(self, state: Any) -> NDArray[np.float64]:
        """Return figures of the program, shape [K]: equal for states with equal keys.

        K is the same for all programs of an environment, so that a model can learn from some what it
        predicts of others.
        """
        ...


@runtime_checkable
class Estimates(Protocol):
    """Costs that can be estimated far sooner than measured, by running a part of the program."""

    def estimate(self, state: Any) -> Job | None:
        """Return the request for about the cost of a state; None where measuring it takes hardly longer.

        Its objective is another than that of the state's job: an estimate is never reported as a cost.
        """
        ...


@runtime_checkable
class JobFeatures(Protocol):
    """Cost features of the programs that jobs run, where keys cannot be read back."""

    def job_features(self, job: Job) -> NDArray[np.float64]:
        """Return the `CostFeatures` of the state whose job it is, shape [K]."""
        ...


@runtime_checkable
class Records(Protocol):
    """Programs that can be read back from their keys, so that recorded costs can be learnt from."""

    def recorded(self, key: str) -> Any:
        """Return a state with that key; None where the text is of no such state."""
        ...


@runtime_checkable
class Demonstrations(Protocol):
    """Schedules that can be read back from keys, so that a policy can be shown them."""

    def recorded_actions(self, key: str) -> Sequence[Action] | None:
        """Return the actions to a state with that key; None where there are none."""
        ...


@runtime_checkable
class Turns(Protocol):
    """States that count actions, so that different ones can be allowed at different steps."""

    def taken(self, state: Any) -> int:
        """Return how many actions were taken in this turn, or in the episode where there are no turns.

        It is 0 at the beginning, and equal for equal states.
        """
        ...


@runtime_checkable
class Parts(Protocol):
    """Programs that are made of smaller ones, whose schedules can be found apart and put together."""

    def parts(self) -> Sequence[Task[Any]]:
        """Return the smaller programs, equal ones as one and the same task; none where there are no two."""
        ...

    def joined(self, schedules: Sequence[Schedule]) -> Schedule:
        """Return the schedule that applies to each part the schedule found for it.

        Args:
            schedules: One for each of `parts`.
        """
        ...


@runtime_checkable
class Counted(Protocol):
    """How many programs there are, so that small tasks can be searched exhaustively."""

    def programs(self) -> int:
        """Return how many distinct programs the actions can make, the original program included."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """A lower bound on costs."""

    def ideal_cost(self, peak_gflops: float) -> float:
        """Return the least that the cost can be on a machine with that peak."""
        ...


@runtime_checkable
class Baselines(Protocol):
    """Other libraries that compute the same program."""

    def baseline_call(self, name: str, state: Any, rounds: int = ROUNDS) -> Call:
        """Return the call that checks a baseline and times it and the state in turn, a `Versus`."""
        ...


@runtime_checkable
class Endings(Protocol):
    """Ways to end a schedule that no mask offers to searches; `tune` tries them on what searches found."""

    def endings(self, state: Any) -> Sequence[Action]:
        """Return actions that end a schedule in a state, which the mask does not offer but `accepts` does."""
        ...

    def ending_of(self, baseline: str) -> Action | None:
        """Return the ending that makes the original program what a baseline is; None where none does."""
        ...

    def running(self, state: Any) -> str:
        """Return how the program in a state is to be run, in words; exported programs say so too."""
        ...


@runtime_checkable
class Finishing(Protocol):
    """A compiler that runs its default pipeline after every schedule."""

    def finishing(self, state: Any) -> Schedule:
        """Return what that order comes to in a state; it may be longer than an episode."""
        ...


@runtime_checkable
class Peak(Protocol):
    """A peak of the machine that bounds times."""

    def peak_call(self, state: Any, rounds: int = ROUNDS) -> Call | None:
        """Return the call that times the state in turn with the peak: it returns a `Versus`.

        None where no peak bounds the times of this program.
        """
        ...


@runtime_checkable
class Pipelines(Protocol):
    """The compiler's own orders of its transformations."""

    def pipeline(self, name: str) -> Schedule:
        """Return what a pipeline comes to on the program.

        Raises:
            IrgymError: There is none of that name.
        """
        ...


@runtime_checkable
class Stages(Protocol):
    """Programs on the way of a schedule, timed in turn, so that what its parts gain can be told."""

    def stage_call(self, before: Any, after: Any) -> Call:
        """Return the call that times two states in turn.

        It returns a list of pairs, one a round: nanoseconds of `before` and of `after`.
        """
        ...


@runtime_checkable
class Drawn(Protocol):
    """Programs that can be shown as pictures."""

    def drawing(self, state: Any) -> Drawing:
        """Return the program as boxes and arrows; boxes keep their names while what they stand for lasts."""
        ...


@runtime_checkable
class Listed(Protocol):
    """Programs that are worth comparing before and after as texts, in several forms."""

    def listings(self, state: Any) -> Mapping[str, str]:
        """Return the program by what the text is, such as `assembly`.

        Raises:
            IrgymError: A text cannot be made.
        """
        ...


@cache
def _offers(owner: type[Any], capability: type[Any]) -> bool:
    return issubclass(owner, capability)


def ask(owner: object, capability: type[C]) -> C | None:
    """Return the owner as what has a capability; None where it does not offer it.

    A task that wraps another offers what that one offers, by methods of the wrapper where there are some.
    """
    offers = _offers(type(owner), capability)
    wrapped = cast("Task[Any]", owner).wrapped if isinstance(owner, Task) else None
    inner = None if wrapped is None else ask(wrapped, capability)
    if wrapped is not None and (inner is None or not offers):
        return inner
    return cast(C, owner) if offers else None


def sketch(task: Task[Any], rng: np.random.Generator) -> Sequence[Action] | None:
    """Return the actions of a random sketch; None where the task has none."""
    sketches = ask(task, Sketches)
    return None if sketches is None else sketches.sketch(rng)


def is_macro(task: Task[Any], action: Action) -> bool:
    """Say whether an action stands for several others; none does where the task has no macro-actions."""
    macros = ask(task, Macros)
    return macros is not None and macros.is_macro(action)


def analysed(task: Task[Any]) -> Task[Any]:
    """Return the task in a form that has the analysis of every state at hand, where it has any."""
    form = ask(task, AnalysedForm)
    return task if form is None else form.analysed()


def cost_features(task: Task[Any], state: Any) -> NDArray[np.float64] | None:
    """Return what tells the state's cost, shape [K]: the task's features, or else its analysis, or None."""
    if (features := ask(task, CostFeatures)) is not None:
        return features.cost_features(state)
    analysis = ask(task, Analysis)
    return None if analysis is None else analysis.analysis(state)


def recorded(task: Task[Any], key: str) -> Any:
    """Return a state with that key; None where there is none, and where keys cannot be read back."""
    records = ask(task, Records)
    return None if records is None else records.recorded(key)


def recorded_actions(task: Task[Any], key: str) -> Sequence[Action] | None:
    """Return the actions to a state with that key; None where there are none that can be read back."""
    demonstrations = ask(task, Demonstrations)
    return None if demonstrations is None else demonstrations.recorded_actions(key)


def ideal_cost(task: Task[Any], peak_gflops: float) -> float | None:
    """Return a lower bound on the cost on a machine with that peak; None where none is known."""
    bounded = ask(task, Bounded)
    return None if bounded is None else bounded.ideal_cost(peak_gflops)


def baseline_call(task: Task[Any], name: str, state: Any, rounds: int = ROUNDS) -> Call:
    """Return the call that times a baseline and the state in turn.

    Raises:
        IrgymError: The task has no baselines.
    """
    if (baselines := ask(task, Baselines)) is None:
        raise IrgymError(f"{task.uri} has no baseline {name!r}: leave it out")
    return baselines.baseline_call(name, state, rounds)


def endings(task: Task[Any], state: Any) -> Sequence[Action]:
    """Return the other ways to end a schedule in a state; none where the task has none."""
    offered = ask(task, Endings)
    return () if offered is None else offered.endings(state)


def ending_of(task: Task[Any], baseline: str) -> Action | None:
    """Return the ending that makes the original program what a baseline is; None where none does."""
    offered = ask(task, Endings)
    return None if offered is None else offered.ending_of(baseline)


def running(task: Task[Any], state: Any) -> str:
    """Return how the program in a state is to be run, in words; empty where there is nothing to choose."""
    offered = ask(task, Endings)
    return "" if offered is None else offered.running(state)


def peak_call(task: Task[Any], state: Any, rounds: int = ROUNDS) -> Call | None:
    """Return the call that times the state in turn with the peak; None where no peak bounds times."""
    peak = ask(task, Peak)
    return None if peak is None else peak.peak_call(state, rounds)


def pipeline(task: Task[Any], name: str) -> Schedule:
    """Return what a pipeline of the compiler comes to on the program.

    Raises:
        IrgymError: There is none of that name.
    """
    if (pipelines := ask(task, Pipelines)) is None:
        raise IrgymError(f"{task.uri} has no pipeline {name!r}: leave it out")
    return pipelines.pipeline(name)


def drawing(task: Task[Any], state: Any) -> Drawing | None:
    """Return a picture of the program; None where the task draws none."""
    drawn = ask(task, Drawn)
    return None if drawn is None else drawn.drawing(state)
