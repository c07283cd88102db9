"""Benches: where the programs of an environment are measured."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from irgym.core.cost import Call, Evaluator, Job, Measurement


class Bench(Protocol):
    """Where an environment's programs are measured: an evaluator and an isolated process."""

    def prepare(self, *calls: Call, candidates: Call | None = None) -> None:
        """Begin to start what takes time to start, and return at once.

        Args:
            calls: What to run beforehand, for what it leaves behind; nobody is told what they return.
            candidates: The same for each process that measures.
        """
        ...

    def settle(self) -> None:
        """Wait for what `prepare` began, so that nothing runs beside a measurement."""
        ...

    @property
    def evaluator(self) -> Evaluator:
        """Evaluator of jobs."""
        ...

    @property
    def peak_gflops(self) -> float:
        """Peak float32 throughput of one core in GFLOP/s, measured on first use."""
        ...

    @property
    def machine(self) -> str:
        """The machine, threads and load, in words."""
        ...

    @property
    def conditions(self) -> str:
        """Key of the machine, and of what a candidate may use."""
        ...

    def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Measure jobs without the cache; failures are measurements too."""
        ...

    def call(
        self, call: Call, timeout_s: float | None = None, told: Callable[[str], None] | None = None
    ) -> Any:
        """Run a function in isolation and return its result.

        Args:
            call: The call.
            timeout_s: Time limit; by default that of a candidate.
            told: Called with each line of text that the function tells by `irgym.measure.machine.tell`.

        Raises:
            IrgymError: It crashed, hung, ran out of memory or reported bad input.
        """
        ...

    def close(self) -> None:
        """End the isolated process."""
        ...

    def __enter__(self) -> "Bench":
        """Return itself."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        ...
