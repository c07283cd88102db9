"""The result of tuning a program, or of replaying a schedule on it: all that the command line prints."""

import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError
from irgym.base.values import plain
from irgym.core.baseline import ROUNDS, Versus
from irgym.core.capabilities import ideal_cost
from irgym.core.objective import Objective
from irgym.core.task import Task, form_of
from irgym.judging.calls import time_calls
from irgym.judging.finding import Finding, gain_ratio, over
from irgym.judging.gains import LIMIT_S, Gain, gains_of
from irgym.judging.interrupted import best_so_far
from irgym.judging.judge import Judge
from irgym.judging.original import Callables, Original, Stands
from irgym.judging.patience import Checks
from irgym.judging.reference import Reference, reference_of
from irgym.judging.targets import machine_text
from irgym.search.choosing import label
from irgym.search.result import SearchResult


@dataclass(frozen=True)
class Search:
    """How a schedule was found.

    Attributes:
        name: Name of the search.
        policy: Name of the policy that led it; None where none did.
        evaluations: Number of distinct candidates evaluated, the original program included.
        seconds: Wall-clock time.
        complete: Whether these were all that there are, so that none is better.
        interrupted: Whether the user ended it.
    """

    name: str
    policy: str | None
    evaluations: int
    seconds: float
    complete: bool = False
    interrupted: bool = False

    @property
    def label(self) -> str:
        """The search in words."""
        return label(self.name, self.policy)


@dataclass(frozen=True, kw_only=True)
class Tuned(Finding):
    """A program after a schedule: checked, measured again, and compared with the original and others.

    The measurements are attributes of `Finding`.

    Attributes:
        program: URI.
        schedule: Text of the schedule: `irgym.replay` applies it.
        objective: What a cost is.
        steps: What groups of actions gain; empty where states know no costs and nothing on the way is timed,
            or where there was no time for it.
        program_after: The program as text.
        gflops: Throughput in GFLOP/s; None where costs are no times, or the work is not known.
        reference: What the compiler's default schedule comes to; None where there is none.
        search: How the schedule was found; None where it was given.
        machine: The machine, threads and load, in words.
        date: When it was measured: ISO 8601, UTC.
        task: The program's task.
        original: The object that it was made of, in place of which it can be called; None for a URI or file.
        checks: What followed the search; None where none went before.
        fixed: A faster result that is fixed to the measured sizes, where this one keeps them open; else None.
        no_fixed: Why there is none, in words; empty where nobody expects one.
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
    fixed: "Fixed | None" = None
    no_fixed: str = ""

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute the program, as the object that it was made of would.

        An ONNX file is called with arrays or tensors, in the order or by the names of its inputs.

        Args:
            inputs: As that takes them, of the shapes and types that it was tuned for.
            named: Those that are given by their names.

        Raises:
            IrgymError: Its environment cannot call it, or inputs do not fit.
        """
        return self._function(*inputs, **named)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        if self.original is not None:
            return self.original.standing(self.task, self.state)
        if not isinstance(self.task, Callables):
            raise IrgymError(
                f"{self.program} was given by its name, so there is nothing to call it like: export it"
            )
        return self.task.function(self.state)

    @property
    def module(self) -> Any:
        """The `torch.nn.Module` to call in place of the module that this was made of.

        It pickles and copies where that does, and runs in threads and other processes. On inputs that it was
        not tuned for it calls the module itself, with one warning.

        Raises:
            IrgymError: This was made of no torch module, or cannot be called.
        """
        function = self._function if self.original is not None else None
        if not isinstance(function, Stands):
            raise IrgymError(f"{self.program} was made of no torch module: call the result, or export it")
        return function

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the module in place of a torch module: measurements belong to this process."""
        if self.original is not None and isinstance(self._function, Stands):
            return copy, (self._function,)
        return super().__reduce_ex__(protocol)

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
        if self.original is None:
            raise IrgymError(
                f"{self.program} was given by its name: give the object itself to compare with it"
            )
        ours = self._function
        program, inputs, keywords = self.original.as_called()
        theirs = program if other is None else other
        name = getattr(theirs, "__name__", type(theirs).__name__)
        detail = f"{name}, called from Python"
        return time_calls(partial(ours, **keywords), partial(theirs, **keywords), inputs, rounds, detail)

    @property
    def cut_short(self) -> bool:
        """Whether an interrupt ended the search, or the checks after it."""
        return bool(self.interrupted) or (self.search is not None and self.search.interrupted)

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
        """See `irgym.judging.finding.gain_ratio` (arXiv 2308.14364)."""
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
                "interrupted": self.interrupted or None,
                "running": self.running or None,
                "baseline_detail": self.versus.detail if self.versus else self.no_baseline or None,
                "at_sizes": [asdict(timed) for timed in self.versus.at] if self.versus else [],
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
                "fixed": None if self.fixed is None else self.fixed.to_json(),
                "no_fixed": self.no_fixed or None,
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


@dataclass(frozen=True)
class Fixed:
    """A result that is fixed to one size, beside one that keeps sizes open.

    Attributes:
        sizes: The sizes, in words.
        result: The program with fixed sizes.
        versus: Timings in turn with the result that keeps sizes open, as the baseline.
    """

    sizes: str
    result: Tuned
    versus: Versus

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        keys = ("program", "schedule", "running", "cost", "baseline_ratio", "validated", "tolerance")
        told = self.result.to_json()
        return {"sizes": self.sizes, "ratio": self.versus.ratio, **{key: told[key] for key in keys}}


def _gains(judge: Judge, finding: Finding) -> tuple[Gain, ...]:
    """Return what the actions gain; nothing where that is to be timed and no time is left."""
    if finding.interrupted:
        return ()
    left_s = judge.patience.last_s
    if judge.task.objective.timed and not (left_s and judge.patience.comparison(ROUNDS, last=True)):
        return ()
    limit_s = min(LIMIT_S, left_s)
    return gains_of(judge.bench, judge.task, finding.actions, limit_s)


def judged(judge: Judge, found: SearchResult, original: Original | None = None) -> Tuned:
    """Return the best of what a search found as a result, without the search itself.

    The first interrupt ends the checks: the result is then the best that is validated so far.

    Args:
        judge: The judge.
        found: Outcome of the search.
        original: As for `tuned`.

    Raises:
        IrgymError: As for `tuned`; or the original program no longer runs.
        KeyboardInterrupt: The user interrupted twice, the search included.
    """
    try:
        judge.so_far.best = judge.best_of(found)
        judge.so_far.doing = "finding out what its parts gain"
        return tuned(judge, judge.so_far.best, None, original)
    except KeyboardInterrupt:
        if found.interrupted:
            raise
        print(
            "irgym: interrupted: the best that is validated so far follows; interrupt again to stop",
            file=sys.stderr,
        )
    return tuned(judge, best_so_far(judge, found), None, original)


def tuned(judge: Judge, finding: Finding, search: Search | None, original: Original | None = None) -> Tuned:
    """Return a finding as a result, with its reference, its gains and where it was measured.

    Args:
        judge: Judged the finding; the default schedule is measured on its bench too.
        finding: The finding.
        search: The search that found it; None for a given schedule.
        original: The object that the program was made of; calls in its place are compared with calls of it.

    Raises:
        IrgymError: Calls return other results than the object's.
    """
    bench, task = judge.bench, judge.task
    if original is not None:
        finding = original.confirmed(task, finding, judge.validator.seed)
    work = ideal_cost(task, 1.0)
    return Tuned(
        **vars(finding),
        program=task.uri,
        schedule=finding.actions.text(task.space),
        objective=task.objective,
        steps=_gains(judge, finding),
        program_after=task.describe(finding.state),
        gflops=None if work is None else work / finding.cost,
        reference=None if finding.interrupted else _reference(judge),
        search=search,
        machine=machine_text(bench, task),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        task=task,
        original=original,
    )


def _reference(judge: Judge) -> Reference | None:
    """Return what the default schedule comes to; None where it fails, and a line that says why."""
    try:
        return reference_of(judge.environment, judge.bench, judge.task)
    except IrgymError as error:
        name = judge.environment.reference(judge.task.objective)
        print(f"irgym: the ratio to {name} is left out, as {name} fails: {error}", file=sys.stderr)
        return None
