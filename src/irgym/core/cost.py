"""Costs: what is asked for (`Job`), what comes back (`Measurement`), and who answers (`Evaluator`)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable


class Outcome(Enum):
    """How an evaluation ended. Everything but `OK` is a property of the candidate, not an error of ours."""

    OK = "ok"
    COMPILE_ERROR = "compile error"
    WRONG_RESULT = "wrong result"
    CRASH = "crash"
    TIMEOUT = "time-out"
    OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True)
class Measurement:
    """The outcome of one evaluation.

    Attributes:
        outcome: How it ended.
        samples: Raw costs; nanoseconds where the objective is time. Empty unless `outcome` is `OK`.
        compile_s: Seconds spent in compiling.
        detail: For a failure, what happened, in one sentence.
        cached: Whether it came from the cost cache.
        predicted: Whether nothing was measured: a cost model says so. Never recorded, never reported.
    """

    outcome: Outcome
    samples: tuple[float, ...] = ()
    compile_s: float = 0.0
    detail: str = ""
    cached: bool = False
    predicted: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is a cost."""
        return self.outcome is Outcome.OK

    @property
    def cost(self) -> float:
        """The least sample, or infinity for a failure."""
        return min(self.samples) if self.ok else math.inf

    @property
    def failure(self) -> str:
        """How an evaluation failed, and why, as in `time-out: it took longer than 5 s`."""
        return f"{self.outcome.value}: {self.detail}".rstrip(": ")


@dataclass(frozen=True)
class Call:
    """A function to run in an isolated process, and its arguments.

    Attributes:
        function: `package.module:function`, imported where it runs.
        arguments: Picklable positional arguments.
        environment: Variables that are set before anything is imported: the call gets a new process.
            Not for candidates.
    """

    function: str
    arguments: tuple[Any, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Job:
    """A request for one cost. Its five texts and the machine are all that the result may depend on.

    Attributes:
        call: Returns a `Measurement`.
        program: Canonical URI of the program.
        schedule: Canonical text of what is measured: equal texts mean equal code.
        toolchain: Versions of everything that makes the code and measures it.
        objective: What is measured, such as `time`.
        known: The result where the state knows it already, such as an op count: nothing is run.
        original: Whether it is the original program. That is known to run, so that a crash, a time-out or
            too little memory tell of the machine, and are never recorded.
        parts: Where the cost is a sum: factors, and the jobs whose costs they multiply. Each of these is
            evaluated like any other job; the call is not run, and the sum itself is never recorded.
        many: Name of a function that answers several such jobs at once, where that takes less time: from a
            list of the calls' arguments to a list of measurements. They have the program in common, and all
            that `target` and `objective` say. Empty where there is none.
        target: What the code is made for, `Target.text`; empty where the result depends on none.
        runs: Time of one run on each of its inputs over the cost: above 1 where that is a mean over several.
    """

    call: Call
    program: str
    schedule: str
    toolchain: str
    objective: str = "time"
    known: Measurement | None = None
    original: bool = False
    parts: "tuple[tuple[float, Job], ...]" = ()
    many: str = ""
    runs: float = 1.0
    # No default: a task that forgets it would mix costs of two targets.
    target: str = field(kw_only=True)


def total(parts: Sequence[tuple[float, Measurement]]) -> Measurement:
    """Return the sum of some costs, each times its factor; the first failure where there is one."""
    failed = next((part for _, part in parts if not part.ok), None)
    if failed is not None:
        return failed
    cost = sum(factor * part.cost for factor, part in parts)
    return Measurement(Outcome.OK, (cost,), cached=all(part.cached for _, part in parts))


@dataclass(frozen=True)
class Validation:
    """The comparison of an optimised program with the original.

    Attributes:
        ok: Whether every output agreed within the tolerance.
        error: Greatest error seen, as a share of what that element may be off.
        tolerance: What was allowed, in words.
        inputs: Number of random inputs compared; with 0 nothing was run, and so nothing checked.
        detail: What differs, in words; empty where nothing does.
        blind: What wrong answer would have passed too, in words; empty where those that were tried show.
        notes: Further findings, each in words, such as what was proved.
        figures: The numbers in these findings, by name.
        unseen: Candidates of the actions whose effect no input shows; the rest of the program was checked.
    """

    ok: bool
    error: float
    tolerance: str
    inputs: int
    detail: str = ""
    blind: str = ""
    notes: tuple[str, ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict[str, int])
    unseen: tuple[str, ...] = ()

    @property
    def checked(self) -> bool:
        """Whether both programs ran, their results agreed, and wrong ones would have been noticed."""
        return self.ok and self.inputs > 0 and not self.blind


class Evaluator(Protocol):
    """Turns jobs into measurements, many at a time. Nothing else measures."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job, in order."""
        ...


@dataclass(frozen=True)
class Record:
    """A measurement that was made before: what its job said, and what came back."""

    program: str
    schedule: str
    toolchain: str
    measurement: Measurement


@runtime_checkable
class Afresh(Protocol):
    """Evaluators that remember costs, and can forget them where the time of measuring counts."""

    def afresh(self) -> Evaluator:
        """Return an evaluator of the same costs that measures each job itself, once."""
        ...


@runtime_checkable
class CostHistory(Protocol):
    """Past measurements, which evaluators with a cost cache remember; all of one kind of machine."""

    def recall(self, jobs: Sequence[Job]) -> list[Measurement | None]:
        """Return what is known of each job without measuring, None where nothing is."""
        ...

    def records(self, scheme: str, objective: str, target: str, limit: int | None) -> list[Record]:
        """Return the newest records of an environment's programs, the newest first.

        Args:
            scheme: The environment: what its URIs begin with, such as `loops`.
            objective: What was measured.
            target: What their code was made for, `Target.text`; empty where costs depend on none.
            limit: Greatest number of records; None for all.
        """
        ...
