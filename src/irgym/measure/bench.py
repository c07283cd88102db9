"""The bench: a farm, the user's cost cache, and the machine's peak."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from irgym.base.closing import Closing
from irgym.base.errors import IrgymError
from irgym.core.cost import Call, Evaluator, Job, Measurement
from irgym.measure.cache import CostCache, default_path
from irgym.measure.evaluators import Measured
from irgym.measure.farm import LocalFarm, open_farm
from irgym.measure.isolation.protocol import Crashed, Limits, OutOfMemory, Raised, Reply, Returned
from irgym.measure.machine import timing_core
from irgym.measure.peak import Peak
from irgym.measure.replies import error_of


class MeasuringBench(Closing):
    """Measures on a farm. Use it as a context manager, or close it.

    Args:
        cache: The cost cache; by default the user's.
        limits: Limits of a candidate.
        farm: Address of a farm, see `open_farm`; by default one process on this machine.
        candidates: Modules that measuring a candidate needs.
        others: Modules that other calls need.

    Raises:
        FarmError: The farm's address is malformed, or nothing answers there.
        BackendError: The farm needs a library that is not installed.
        StorageError: The cache cannot be opened.
    """

    def __init__(
        self,
        cache: CostCache | None = None,
        limits: Limits | None = None,
        farm: str | None = None,
        candidates: Sequence[str] = (),
        others: Sequence[str] = (),
    ) -> None:
        self._modules = candidates, others
        self._farm = open_farm(farm, limits or Limits(core=timing_core()))
        self._owns_cache = cache is None
        try:
            self._cache = cache or CostCache(default_path(), self._farm.conditions)
        except BaseException:
            self._farm.close()
            raise
        self._peak: Peak | None = None
        self._evaluator = Measured(self._farm, self._cache)

    def prepare(self, *calls: Call, candidates: Call | None = None) -> None:
        """Start the local processes, if there are any, and let them import the modules that they need.

        Args:
            calls: Calls that the process for other calls than candidates runs in advance.
            candidates: The call that each process for candidates runs in advance.
        """
        if isinstance(self._farm, LocalFarm):
            self._farm.start(*self._modules, calls, candidates)

    def settle(self) -> None:
        """Wait until the local processes, if there are any, have run what `prepare` gave them."""
        if isinstance(self._farm, LocalFarm):
            self._farm.settle()

    @property
    def evaluator(self) -> Evaluator:
        """Evaluator that answers jobs from the cache, or else by the farm."""
        return self._evaluator

    @property
    def peak_gflops(self) -> float:
        """Peak float32 throughput of one core in GFLOP/s, measured on first use."""
        if self._peak is None:
            self._peak = cast(Peak, self.call(Call("irgym.measure.peak:measure_peak")))
        return self._peak.gflops

    @property
    def machine(self) -> str:
        """The machine, and the cores and threads used."""
        return self._farm.machine

    @property
    def conditions(self) -> str:
        """Key of the machine and of the limits, under which costs are recorded."""
        return self._farm.conditions

    def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Measure jobs again, without the cache; failures are measurements too.

        Sums are an exception: their parts come from the cache.
        """
        sums = iter(self._evaluator.evaluate([job for job in jobs if job.parts]))
        others = iter(Measured(self._farm).evaluate([job for job in jobs if not job.parts]))
        return [next(sums if job.parts else others) for job in jobs]

    def call(
        self, call: Call, timeout_s: float | None = None, told: Callable[[str], None] | None = None
    ) -> Any:
        """Run a function in isolation and return its result.

        Args:
            call: The call.
            timeout_s: Time limit; by default that of a candidate. Another limit needs a separate process.
            told: Called with each line of text that the function tells by `irgym.measure.machine.tell`, if it
                runs in a separate process of this machine.

        Raises:
            IrgymError: It crashed, hung, ran out of memory or reported bad input.
            RuntimeError: It has a bug.
        """
        return _value(call, self._farm.call(call, timeout_s, told))

    def close(self) -> None:
        """Leave the farm and close the cache."""
        self._farm.close()
        if self._owns_cache:
            self._cache.close()


def _value(call: Call, reply: Reply) -> Any:
    if isinstance(reply, Returned):
        return reply.value
    name = call.function.rpartition(":")[2]
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    if isinstance(reply, Crashed):
        raise IrgymError(f"the isolated process crashed in {name} ({reply.detail}): try again, or report it")
    if isinstance(reply, OutOfMemory):
        raise IrgymError(f"the isolated process ran out of memory in {name}: choose a smaller program")
    raise IrgymError(f"{name} took longer than {reply.seconds:g} s: choose a smaller program")
