"""Farms: where calls run, several at a time. Compiling may run in parallel; timing has its core to itself."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Protocol

from irgym.core.cost import Call
from irgym.measure.child import Child
from irgym.measure.machine import timing_core
from irgym.measure.protocol import Limits, Reply


class Farm(Protocol):
    """Runs calls in isolation, each exactly once.

    A call that crashes, hangs or runs out of memory is answered as such. A farm raises only where it is
    itself broken, and retries only then. `irgym.measure.timing` takes the timing core wherever a call runs,
    so a farm need not know which part of a call is timed.
    """

    @property
    def workers(self) -> int:
        """How many calls run at once."""
        ...

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order."""
        ...

    def close(self) -> None:
        """Give up the workers."""
        ...


class LocalFarm:
    """Isolated child processes on this machine. Use it as a context manager, or close it.

    Args:
        workers: Number of processes. More than one compile in parallel, and take turns on the timing core.
        limits: What a call may use; by default with timing on `timing_core()`.
    """

    def __init__(self, workers: int = 1, limits: Limits | None = None):
        if workers < 1:
            raise ValueError("a farm needs at least one worker")
        limits = limits or Limits(core=timing_core())
        if workers > 1:
            limits = replace(limits, shared_core=True)
        self._children = [Child(limits) for _ in range(workers)]

    @property
    def workers(self) -> int:
        """How many calls run at once."""
        return len(self._children)

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order.

        Raises:
            ChildError: A child process does not start or stops working between calls.
        """
        if len(self._children) == 1:
            return list(self._children[0].stream(calls))
        waiting = deque(enumerate(calls))
        replies: dict[int, Reply] = {}
        with ThreadPoolExecutor(len(self._children)) as threads:
            runs = [threads.submit(_work, child, waiting, replies) for child in self._children]
        for run in runs:
            run.result()
        return [replies[place] for place in range(len(calls))]

    def close(self) -> None:
        """End the processes. A later run starts new ones."""
        for child in self._children:
            child.close()

    def __enter__(self) -> "LocalFarm":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _work(child: Child, waiting: deque[tuple[int, Call]], replies: dict[int, Reply]) -> None:
    """Let one child take calls from those that wait, until there are none."""
    taken: deque[int] = deque()

    def take() -> Iterator[Call]:
        while waiting:
            try:
                place, call = waiting.popleft()
            except IndexError:
                return  # another child took the last one in the meantime
            taken.append(place)
            yield call

    for reply in child.stream(take()):
        replies[taken.popleft()] = reply
