"""What every farm does: runs calls in isolation, several at a time, on machines of one kind.

Compiling may run in parallel; timing has its core to itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from irgym.core.cost import Call
from irgym.measure.isolation.protocol import Limits, Reply
from irgym.measure.machine import threads_text
from irgym.measure.variables import keyed


class Farm(Protocol):
    """Runs calls in isolation, each once, or twice where the first end may not have been its own doing.

    A call that crashes, hangs or runs out of memory is answered as such. A farm raises only where it is
    itself broken. `irgym.measure.timing` takes the timing core wherever a call runs,
    so a farm need not know which part of a call is timed.
    """

    @property
    def workers(self) -> int:
        """How many calls run at once, at least 1."""
        ...

    @property
    def conditions(self) -> str:
        """Key of what a result depends on beside its call: where it ran, and what it may use."""
        ...

    @property
    def machine(self) -> str:
        """The same in words, with the cores and threads used."""
        ...

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order."""
        ...

    def call(self, call: Call, timeout_s: float | None = None) -> Reply:
        """Run one call that is no candidate, such as a validation; its environment may be its own.

        Args:
            call: What to run.
            timeout_s: Time limit; by default that of a candidate.
        """
        ...

    def close(self) -> None:
        """Give up the workers."""
        ...


def limits_of(call: Call, limits: Limits, timeout_s: float | None) -> Limits | None:
    """Return the limits of a call that needs a process of its own; None where it needs none.

    Args:
        call: It may have variables of its own.
        limits: What others may use.
        timeout_s: Another time limit than theirs.
    """
    if timeout_s is None and not call.environment:
        return None
    environment = {**limits.environment, **dict(call.environment)}
    return replace(limits, timeout_s=timeout_s or limits.timeout_s, environment=environment)


def conditions(machine: str, limits: Limits) -> str:
    """Return the key of a machine and of what a candidate may use: limits decide whether one times out.

    Args:
        machine: As `machine_key` returns it where calls run.
        limits: What a candidate may use.
    """
    threads = f", {threads_text(limits.threads)}" if limits.threads > 1 else ""
    own = keyed(limits.environment)
    variables = f"; {own}" if own else ""
    return f"{machine}; at most {limits.timeout_s:g} s, {limits.memory_bytes >> 20} MiB{threads}{variables}"
