"""What follows a search: measure the finalists anew, validate the best, compare it with a baseline."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from irgym.base.errors import BaselineError, IrgymError, UnknownPipelineError, WrongResultsError
from irgym.core import capabilities
from irgym.core.cost import Measurement, Validation
from irgym.core.environment import Bench, Environment, Versus
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task
from irgym.judging.patience import ENDLESS, Patience
from irgym.judging.targets import of_baseline

ROUNDS = 3
"""Measurements of which the least counts; one where costs are known exactly."""


def over(first: float, second: float) -> float:
    """Return a ratio of costs; counts may be 0."""
    if second == 0.0:
        return 1.0 if first == 0.0 else math.inf
    return first / second


class Validator:
    """Compares programs with their originals on random inputs, each distinct program once.

    Attributes:
        inputs: Number of random inputs; with 0 nothing is compared.
    """

    def __init__(self, bench: Bench, inputs: int, seed: int) -> None:
        """Compare nothing yet."""
        self.inputs = inputs
        self._bench = bench
        self._seed = seed
        self._seen: dict[tuple[str, str], Validation | IrgymError] = {}

    def prepare(self, task: Task[Any]) -> None:
        """Begin what can be done before there is anything to compare, and return at once."""
        preparation = capabilities.ask(task, capabilities.Preparation)
        if self.inputs and preparation is not None:
            self._bench.prepare(preparation.preparation(self.inputs, self._seed))

    def __call__(self, task: Task[Any], state: Any) -> Validation | None:
        """Return the comparison with the original, None where none is wanted.

        Results that agree may still not be checkable: `Validation.blind` then says what would pass too, or
        why the original does not run.

        Raises:
            WrongResultsError: The results differ, or the program does not run where the original does.
        """
        if not self.inputs:
            return None
        validation = self._compared(task, state)
        if not validation.ok:
            raise WrongResultsError(
                f"the schedule gives wrong results for {task.uri} ({validation.detail}; allowed: "
                f"{validation.tolerance}): please report it as a bug of irgym"
            )
        return validation

    def _compared(self, task: Task[Any], state: Any) -> Validation:
        """Return the comparison of a program with its original, or why the original has none.

        Raises:
            WrongResultsError: The program does not run, but the original does.
        """
        found = self._run(task, state)
        if isinstance(found, Validation) and found.ok:
            return found
        # A failure says nothing of the program where the original, compared with itself, fails too.
        original = self._run(task, task.initial())
        if isinstance(original, IrgymError):
            return Validation(True, 0.0, "", 0, blind=f"the program as written does not run: {original}")
        if not original.ok:
            return Validation(True, 0.0, "", 0, blind=f"the program as written fails too: {original.detail}")
        if isinstance(found, IrgymError):
            raise WrongResultsError(
                f"{task.uri} fails with this schedule when it is checked: {found}"
            ) from found
        return found

    def _run(self, task: Task[Any], state: Any) -> Validation | IrgymError:
        """Run a program and its original, each distinct program once."""
        key = task.uri, task.job(state).schedule
        if key not in self._seen:
            try:
                self._seen[key] = self._bench.call(task.validation(state, self.inputs, self._seed))
            except IrgymError as error:
                self._seen[key] = error
        return self._seen[key]


@dataclass(frozen=True)
class Finding:
    """An optimised program, measured and validated after the search. Costs are of one objective.

    Attributes:
        actions: What leads to it.
        state: The task's state there.
        cost: Cost measured after the search, not the least that the search saw.
        cost_as_written: Cost of the program with no action taken, measured in the same way.
        validation: The comparison with the original program; None where it was not wanted.
        baseline: Name of the environment's baseline; None where it has none, or costs are no times.
        versus: Timings in turn with the baseline; None without one, and where it cannot compute the program.
        peak: Timings in turn with the machine's peak; None where none bounds the cost.
        no_baseline: Why the baseline cannot compute the program; empty where it can.
        running: How the program is to be run, in words; empty where there is nothing to choose.
        no_gain: That nothing better than the program as written, or than the baseline, was found, so that
            this is the program as written, in the latter case to be run as the baseline runs it; empty where
            something was.
        is_baseline: Whether this is the baseline itself, so that timings of the two in turn are noise.
        left_out: Candidates that the search chose and whose effect no check could see.
        rejected: What was wrong with better programs that the search found, a sentence each.
    """

    actions: Schedule = field(repr=False)
    state: Any = field(repr=False, compare=False)
    cost: float
    cost_as_written: float
    validation: Validation | None
    baseline: str | None
    versus: Versus | None
    peak: Versus | None = None
    no_baseline: str = ""
    running: str = ""
    no_gain: str = ""
    is_baseline: bool = False
    left_out: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    @property
    def speedup(self) -> float:
        """Cost as written over the cost; infinite where only the cost is 0."""
        return over(self.cost_as_written, self.cost)

    @property
    def validated(self) -> bool:
        """Whether the results agree with the original program's, and wrong ones would not have."""
        return self.validation is not None and self.validation.checked

    @property
    def baseline_ratio(self) -> float | None:
        """Median of the baseline's time over ours; above 1, irgym is faster. None for the baseline itself."""
        return None if self.versus is None or self.is_baseline else self.versus.ratio

    @property
    def baseline_noise(self) -> tuple[float, float] | None:
        """Least and greatest ratio of timings of the baseline in turn with itself; None for anything else."""
        if self.versus is None or not self.is_baseline:
            return None
        return min(self.versus.ratios), max(self.versus.ratios)

    @property
    def peak_share(self) -> float | None:
        """Median share of the machine's peak."""
        return None if self.peak is None else self.peak.ratio


@dataclass(frozen=True)
class Reference:
    """What an environment's reference pipeline makes of a program.

    Attributes:
        name: Name of the pipeline.
        schedule: What it comes to on the program.
        program: Canonical text of the program that it leads to.
        cost: Cost of that program.
        seconds: Wall-clock time that finding the schedule took.
    """

    name: str
    schedule: Schedule
    program: str
    cost: float
    seconds: float


def reference_of(environment: Environment, bench: Bench, task: Task[Any]) -> Reference | None:
    """Return what the reference pipeline makes of a program; None where there is none, or it is not told.

    Raises:
        IrgymError: The pipeline fails on this program.
    """
    started = time.perf_counter()
    schedule = _default_schedule(environment, task)
    name = environment.reference_pipeline
    if schedule is None or name is None:
        return None
    seconds = time.perf_counter() - started
    state = replay(task, schedule)
    return Reference(name, schedule, task.job(state).schedule, least_cost(bench, task, state), seconds)


def default_schedules(environment: Environment, task: Task[Any]) -> list[Schedule]:
    """Return what a search may begin with: the default schedule, where costs are exact; or nothing.

    So a search ends no worse than the compiler by itself. Where costs are measured, that compiler runs after
    all schedules anyway.

    Raises:
        IrgymError: The pipeline fails on this program.
    """
    schedule = _default_schedule(environment, task) if task.objective.exact else None
    return [] if schedule is None else [schedule]


def _default_schedule(environment: Environment, task: Task[Any]) -> Schedule | None:
    """Return what the reference pipeline comes to; None where there is none, or it is not told."""
    name = environment.reference_pipeline
    if name is None:
        return None
    try:
        return capabilities.pipeline(task, name)
    except UnknownPipelineError:
        return None


def gain_ratio(first: float, reference: float, cost: float) -> float | None:
    """Return our reduction of the cost over the reference's (arXiv 2308.14364); None where that is nothing.

    Args:
        first: Cost of the program as written.
        reference: Cost after the reference pipeline.
        cost: Our cost.
    """
    return (first - cost) / (first - reference) if reference < first else None


def same_program(task: Task[Any], first: Any, second: Any) -> bool:
    """Say whether two states are one program, whatever led to it."""
    return task.key(first) == task.key(second)


def measure_anew(bench: Bench, task: Task[Any], state: Any) -> Measurement:
    """Measure a state without the cost cache."""
    [measurement] = bench.measure([task.job(state)])
    return measurement


def least_cost(bench: Bench, task: Task[Any], state: Any) -> float:
    """Return the least of some costs measured anew, or the cost that the state knows.

    Raises:
        IrgymError: The program fails.
    """
    [cost] = least_costs(bench, task, [state])
    return cost


def least_costs(
    bench: Bench, task: Task[Any], states: Sequence[Any], patience: Patience = ENDLESS
) -> list[float]:
    """Return for each state the least of some costs measured anew, in turn, or the cost that it knows.

    In turn, since what slows the machine down may last for longer than all measurements of one state.
    `ROUNDS` times, as far as patience reaches.

    Raises:
        IrgymError: A program fails.
    """
    repeats = 1 if task.objective.exact else ROUNDS
    rounds = [[_cost(bench, task, state) for state in states] for _ in patience.rounds(repeats)]
    return [min(costs) for costs in zip(*rounds, strict=True)]


def _cost(bench: Bench, task: Task[Any], state: Any) -> float:
    measurement = task.job(state).known or measure_anew(bench, task, state)
    if not measurement.ok:
        raise IrgymError(
            f"{task.uri} does not run with this schedule: {measurement.outcome.value} {measurement.detail}"
        )
    return measurement.cost


def confirm(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    schedule: Schedule,
    validator: Validator,
    no_gain: str = "",
    patience: Patience = ENDLESS,
) -> Finding:
    """Validate and measure what a schedule makes of a program.

    Args:
        environment: Where the program comes from.
        bench: Where it is measured.
        task: The program.
        schedule: The schedule.
        validator: Compares the results with the original's.
        no_gain: See `Finding.no_gain`.
        patience: How long to measure anew.

    Raises:
        WrongResultsError: Its results are wrong, or it fails where the program as written does not.
        IrgymError: The schedule does not apply, or its program does not run when it is measured.
    """
    state = replay(task, schedule)
    validation = validator(task, state)
    first = task.initial()
    states = [first] if same_program(task, state, first) else [first, state]
    costs = least_costs(bench, task, states, patience)
    # Baselines are timed: beside other costs they say nothing.
    baseline = environment.reference_baseline if task.objective.timed else None
    versus, no_baseline = None, ""
    if baseline is not None:
        try:
            call = capabilities.baseline_call(task, baseline, state)
            versus = of_baseline(bench.call(call), task, call)
        except BaselineError as error:
            no_baseline = str(error)
    peak_call = capabilities.peak_call(task, state)
    against_peak = bench.call(peak_call) if peak_call else None
    return Finding(
        schedule,
        state,
        costs[-1],
        costs[0],
        validation,
        baseline,
        versus,
        against_peak,
        no_baseline,
        capabilities.running(task, state),
        no_gain,
        baseline is not None and is_baseline(task, state, baseline),
    )


def is_baseline(task: Task[Any], state: Any, baseline: str) -> bool:
    """Say whether a state is the very program that a baseline runs, under the same options."""
    ending = capabilities.ending_of(task, baseline)
    return ending is not None and same_program(task, state, replay(task, Schedule((ending,))))
