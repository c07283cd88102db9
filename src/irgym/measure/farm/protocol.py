"""Interface of farms, which run calls in isolation and in parallel, on machines of one kind.

Compiling may run in parallel; timing has exclusive use of its core.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from irgym.core.cost import Call
from irgym.measure.isolation.protocol import Limits, Reply
from irgym.measure.machine import threads_text
from irgym.measure.variables import keyed


class Farm(Protocol):
    """Runs calls in isolation; a call runs again if something else may have caused its failure.

    A call that crashes, hangs or runs out of memory gets a reply that says so. A farm raises an exception
    only if the farm is broken. `irgym.measure.timing` takes the timing core wherever a call runs, so that a
    farm need not know which part of a call is timed.
    """

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time, at least 1."""
        ...

    @property
    def conditions(self) -> str:
        """Key of the machine and the limits, on which results depend in addition to the call."""
        ...

    @property
    def machine(self) -> str:
        """Description of the machine, with the cores and threads used."""
        ...

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order."""
        ...

    def call(
        self, call: Call, timeout_s: float | None = None, told: Callable[[str], None] | None = None
    ) -> Reply:
        """Run one call other than a candidate, such as a validation; it may change environment variables.

        Args:
            call: The call.
            timeout_s: Time limit; by default that of a candidate.
            told: Called with each line of text that the call tells, where a farm can hear it.
        """
        ...

    def close(self) -> None:
        """Release the workers."""
        ...


def limits_of(call: Call, limits: Limits, timeout_s: float | None) -> Limits | None:
    """Return the limits of a call that needs a separate process; None if it does not.

    Args:
        call: The call, which may set environment variables.
        limits: Limits of other calls.
        timeout_s: A different time limit, or None.
    """
    if timeout_s is None and not call.environment:
        return None
    environment = {**limits.environment, **dict(call.environment)}
    return replace(limits, timeout_s=timeout_s or limits.timeout_s, environment=environment)


def conditions(machine: str, limits: Limits) -> str:
    """Return the key of a machine and of a candidate's limits, which decide whether it times out.

    Args:
        machine: Result of `machine_key` where calls run.
        limits: Limits of a candidate.
    """
    threads = f", {threads_text(limits.threads)}" if limits.threads > 1 else ""
    set_variables = keyed(limits.environment)
    variables = f"; {set_variables}" if set_variables else ""
    return f"{machine}; at most {limits.timeout_s:g} s, {limits.memory_bytes >> 20} MiB{threads}{variables}"
