"""The local farm: isolated children on this machine."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from irgym.base.closing import Closing
from irgym.core.cost import Call
from irgym.measure.farm.protocol import conditions, limits_of
from irgym.measure.isolation.child import AHEAD, Child
from irgym.measure.isolation.protocol import Limits, Reply
from irgym.measure.machine import fingerprint, load, threads_text, timing_core, timing_cores
from irgym.measure.variables import machine_key


class LocalFarm(Closing):
    """Isolated child processes on this machine. Use it as a context manager, or close it.

    Args:
        workers: Number of processes; several compile in parallel, and take turns on the timing core.
        limits: Limits of a call; by default with timing on `timing_core()`.
    """

    def __init__(self, workers: int = 1, limits: Limits | None = None):
        if workers < 1:
            raise ValueError("a farm needs at least one worker")
        self._limits = limits or Limits(core=timing_core())
        shared = replace(self._limits, shared_core=True)
        self._children = [Child(shared if workers > 1 else self._limits) for _ in range(workers)]
        # Keeps the imports of validations and baselines out of the candidates' processes. Compilers use all
        # cores there, and only timing is restricted to the timing cores.
        self._aside = Child(shared)

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time."""
        return len(self._children)

    @property
    def conditions(self) -> str:
        """Key of this machine and of the limits."""
        return conditions(machine_key(fingerprint()), self._limits)

    @property
    def machine(self) -> str:
        """The machine with the cores and threads used, and its load."""
        cores = timing_cores(self._limits.core, self._limits.threads)
        where = f" on core{'s' if len(cores) > 1 else ''} {', '.join(map(str, cores))}" if cores else ""
        shared = f", shared by {self.workers} processes" if self.workers > 1 else ""
        threads = threads_text(self._limits.threads)
        return f"{fingerprint().text()}; {threads}{where}{shared}; {load().text()}"

    def start(
        self,
        candidates: Sequence[str],
        others: Sequence[str],
        calls: Sequence[Call] = (),
        measuring: Call | None = None,
    ) -> None:
        """Start the processes, and let them import modules; do not wait for them.

        Args:
            candidates: Modules that candidates need; empty if there may be no candidates.
            others: Modules that other calls need.
            calls: Calls that the process for other calls runs in advance; their results are dropped.
            measuring: The call that each process for candidates runs in advance.
        """
        if candidates:
            for child in self._children:
                child.start(candidates, () if measuring is None else (measuring,))
        self._aside.start(others, calls)

    def settle(self) -> None:
        """Wait until all processes have run the calls that they were given in advance."""
        for child in (*self._children, self._aside):
            child.settle()

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order.

        Raises:
            ChildError: A child process does not start or stops working between calls.
        """
        if len(self._children) == 1:
            return list(self._children[0].stream(calls))
        waiting = deque(enumerate(calls))
        replies: dict[int, Reply] = {}
        # With few long calls, none should wait for a busy child while another child is idle.
        ahead = max(1, min(AHEAD, len(calls) // (2 * self.workers)))
        with ThreadPoolExecutor(len(self._children)) as threads:
            runs = [threads.submit(_work, child, waiting, replies, ahead) for child in self._children]
        for run in runs:
            run.result()
        return [replies[place] for place in range(len(calls))]

    def call(
        self, call: Call, timeout_s: float | None = None, told: Callable[[str], None] | None = None
    ) -> Reply:
        """Run one call in a process apart from the candidates', or in a new one if it has other limits.

        Raises:
            ChildError: The process does not start.
        """
        limits = limits_of(call, self._limits, timeout_s)
        if limits is None:
            return self._aside.call(call)
        with Child(limits, told) as child:
            return child.call(call)

    def close(self) -> None:
        """End the processes. A later run starts new ones."""
        children = (*self._children, self._aside)
        for child in children:
            child.dismiss()
        for child in children:
            child.close()


def _work(child: Child, waiting: deque[tuple[int, Call]], replies: dict[int, Reply], ahead: int) -> None:
    """Let a child take waiting calls until there are none; it has up to `ahead` calls at a time."""
    taken: deque[int] = deque()

    def take() -> Iterator[Call]:
        while waiting:
            try:
                place, call = waiting.popleft()
            except IndexError:
                return  # another child took the last call in the meantime
            taken.append(place)
            yield call

    for reply in child.stream(take(), ahead):
        replies[taken.popleft()] = reply
