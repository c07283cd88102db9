"""The result of tuning a program, or of replaying a schedule on it: all that the command line prints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError, ProgramError
from irgym.base.values import plain
from irgym.core.capabilities import ideal_cost
from irgym.core.cost import Validation
from irgym.core.environment import Bench, Environment, Versus
from irgym.core.objective import Objective
from irgym.core.task import Task, form_of
from irgym.judging.gains import Gain, gains_of
from irgym.judging.in_turn import time_calls
from irgym.judging.patience import Checks
from irgym.judging.targets import machine_text
from irgym.judging.tuning import Finding, Reference, gain_ratio, over, reference_of


@dataclass(frozen=True)
class Search:
    """How a schedule was found.

    Attributes:
        name: Name of the search.
        policy: Name of the policy that led it; None where none did.
        evaluations: Number of distinct candidates evaluated, the program as written included.
        seconds: Wall-clock time.
        complete: Whether these were all that there are, so that none is better.
    """

    name: str
    policy: str | None
    evaluations: int
    seconds: float
    complete: bool = False

    @property
    def label(self) -> str:
        """The search in words."""
        return label(self.name, self.policy)


def label(search: str, policy: str | None) -> str:
    """Return a search, and the policy that leads it, in words."""
    return f"{search} search" + ("" if policy is None else f" led by policy {policy}")


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


@dataclass(frozen=True, kw_only=True)
class Tuned(Finding):
    """A program after a schedule: checked, measured anew, compared with others; all that is to be said of it.

    What was measured is among the attributes of `Finding`.

    Attributes:
        program: URI.
        schedule: Text of the schedule: `irgym.replay` applies it.
        objective: What a cost is.
        steps: What groups of actions gain; empty where states know no costs and nothing on the way is timed.
        program_after: The program as text.
        gflops: Throughput in GFLOP/s; None where costs are no times, or the work is not known.
        reference: What the compiler's default schedule comes to; None where there is none.
        search: How the schedule was found; None where it was given.
        machine: The machine, threads and load, in words.
        date: When it was measured: ISO 8601, UTC.
        task: The program's task.
        original: The object that it was made of, in place of which it can be called; None for a URI or file.
        checks: What followed the search; None where none went before.
    """

    program: str
    schedule: str
    objective: Objective
    steps: tuple[Gain, ...]
    program_after: str
    gflops: float | None
    reference: Reference | None
    search: Search | None
    machine: str
    date: str
    task: Task[Any] = field(repr=False, compare=False)
    original: Original | None = field(default=None, repr=False, compare=False)
    checks: Checks | None = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute the program, as the object that it was made of would.

        Args:
            inputs: As that takes them, of the shapes and types that it was tuned for.
            named: Those that are given by their names.

        Raises:
            IrgymError: It was made of a URI or a file; its environment cannot call it; or inputs do not fit.
        """
        return self._function(*inputs, **named)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        if self.original is None:
            raise IrgymError(
                f"{self.program} was given by its name, so there is nothing to call it like: export it"
            )
        return self.original.function(self.task, self.state)

    def versus_original(self, other: Callable[..., Any] | None = None, rounds: int = 15) -> Versus:
        """Time calls of this in turn with calls of what it was made of, in this process.

        That includes what a call from Python costs. Threads are those that the libraries are set to here.

        Args:
            other: What to compare with instead, such as `torch.compile(module)`; by default the original as
                it is. A function of JAX that is not jitted runs one operation at a time: give
                `jax.jit(function)`.
            rounds: Number of rounds; fewer where they would take long.

        Raises:
            IrgymError: As for a call; or inputs were given as shapes only, with which nothing can be called.
        """
        ours = self._function
        assert self.original is not None
        program: Any = self.original.program
        theirs: Callable[..., Any] = program if other is None else other
        name = getattr(theirs, "__name__", type(theirs).__name__)
        return time_calls(ours, theirs, self.original.inputs, rounds, f"{name}, called from Python")

    @property
    def peak_gflops(self) -> float | None:
        """The machine's peak in GFLOP/s, as timed in turn with the program."""
        if self.peak is None or self.gflops is None:
            return None
        return self.gflops * self.cost / self.peak.baseline_ns

    @property
    def reference_ratio(self) -> float | None:
        """Cost after the default schedule over ours."""
        return None if self.reference is None else over(self.reference.cost, self.cost)

    @property
    def gain_ratio(self) -> float | None:
        """See `irgym.judging.tuning.gain_ratio` (arXiv 2308.14364)."""
        if self.reference is None:
            return None
        return gain_ratio(self.cost_as_written, self.reference.cost, self.cost)

    @property
    def forms(self) -> Mapping[str, str]:
        """The suffixes of the files that `export` writes, and what each stands for."""
        return self.task.forms

    def export(self, path: str | Path) -> list[Path]:
        """Write the program in a form that is usable without irgym.

        Args:
            path: File to write; its suffix chooses the form, one of `forms`. Companions go beside it.

        Returns:
            The files written.

        Raises:
            IrgymError: The suffix names no form, or the program has none such.
            StorageError: A file cannot be written.
        """
        form_of(Path(path), self.forms)
        return self.task.export(self.state, Path(path))

    def to_json(self) -> dict[str, Any]:
        """Return plain data, of `tune` and of `replay` with the same keys; what there is not is None.

        Numbers that are not finite become None, too.
        """
        checked, reference, search = self.validation, self.reference, self.search
        return plain(
            {
                "program": self.program,
                "schedule": self.schedule,
                "objective": self.objective.name,
                "unit": self.objective.unit,
                "target": None if self.task.target is None else self.task.target.name,
                "cost": self.cost,
                "cost_as_written": self.cost_as_written,
                "speedup": self.speedup,
                "gflops": self.gflops,
                "peak_gflops": self.peak_gflops,
                "peak_share": self.peak_share,
                "baseline": self.baseline,
                "baseline_ratio": self.baseline_ratio,
                "baseline_noise": self.baseline_noise,
                "no_gain": self.no_gain or None,
                "left_out": list(self.left_out),
                "rejected": list(self.rejected),
                "running": self.running or None,
                "baseline_detail": self.versus.detail if self.versus else self.no_baseline or None,
                "reference": None if reference is None else reference.name,
                "reference_cost": None if reference is None else reference.cost,
                "reference_ratio": self.reference_ratio,
                "gain_ratio": self.gain_ratio,
                "steps": [{**asdict(step), "gain": step.gain} for step in self.steps],
                "validated": self.validated,
                "not_checkable": None if checked is None else checked.blind or None,
                "validation_error": None if checked is None else checked.error,
                "tolerance": None if checked is None else checked.tolerance,
                "validation_figures": {} if checked is None else dict(checked.figures),
                "search": None if search is None else search.name,
                "policy": None if search is None else search.policy,
                "evaluations": None if search is None else search.evaluations,
                "seconds": None if search is None else search.seconds,
                "checks_seconds": None if self.checks is None else self.checks.seconds,
                "checks_bound": None if self.checks is None else self.checks.bound_s,
                "proven": None if search is None else search.complete,
                "program_after": self.program_after,
                "machine": self.machine,
                "date": self.date,
            }
        )


def tuned(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    finding: Finding,
    search: Search | None,
    original: Original | None = None,
) -> Tuned:
    """Return a finding with all that is to be said of it.

    Args:
        environment: Where the program comes from.
        bench: Where it was measured; the default schedule is measured there too.
        task: The program.
        finding: What was found.
        search: How it was found; None where the schedule was given.
        original: The object that the program was made of.

    Raises:
        IrgymError: The environment's default schedule fails on this program.
    """
    work = ideal_cost(task, 1.0)
    return Tuned(
        **vars(finding),
        program=task.uri,
        schedule=finding.actions.text(task.space),
        objective=task.objective,
        steps=gains_of(bench, task, finding.actions),
        program_after=task.describe(finding.state),
        gflops=None if work is None else work / finding.cost,
        reference=reference_of(environment, bench, task),
        search=search,
        machine=machine_text(bench, task),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        task=task,
        original=original,
    )
