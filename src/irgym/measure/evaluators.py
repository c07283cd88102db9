"""Evaluators: by a farm and the cost cache, in this process, or from recorded costs alone."""

import math
import time
from collections.abc import Callable, Hashable, Sequence

from irgym.base.errors import IrgymError, StorageError
from irgym.core.cost import Call, Job, Measurement, Outcome, Record, total
from irgym.measure.cache import CostCache
from irgym.measure.farm.protocol import Farm
from irgym.measure.isolation.protocol import Raised, Reply, Returned, resolve
from irgym.measure.replies import error_of, failure_of

CHUNK = 32
"""Greatest number of jobs per worker before results are recorded: a kill loses no more."""

CHUNK_S = 5.0
"""Seconds after which results are recorded, estimated from the duration of earlier jobs."""

TOGETHER = 16
"""Greatest number of jobs that one call answers."""


class Measured:
    """Looks up costs in the cache, and measures missing ones on a farm.

    Args:
        farm: Farm that runs the jobs' calls.
        cache: Cache of measurements, failures included; None for no cache. It must be that of the machine
            that the farm measures on.
        afresh: Measure each job once, although the cache may hold its cost; new costs are recorded.

    Attributes:
        hits: Number of distinct jobs that the cache answered, over all batches.
        misses: Number of distinct jobs that were measured, over all batches.
        before_chunk: Called before each group of jobs that is measured and recorded together, with the number
            of jobs measured and of jobs to measure; an exception ends the batch.
        cautious: Begin with one job for each worker while none was timed, since the batch may have to end.
    """

    def __init__(self, farm: Farm, cache: CostCache | None = None, afresh: bool = False):
        self.hits = 0
        self.misses = 0
        self.before_chunk: Callable[[int, int], None] = _do_nothing
        self.cautious = False
        self._job_s = 0.0
        self._farm = farm
        self._cache = cache
        self._measured: _Measurements | None = {} if afresh else None

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time."""
        return self._farm.workers

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job, in order; equal jobs are measured once.

        Raises:
            IrgymError: A call found an error of the user, or the original program cannot be measured on this
                machine.
            StorageError: The cache cannot be read or written.
            RuntimeError: A call has a bug, or the farm is broken.
        """
        return summed(jobs, self._evaluate)

    def _evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        known = {identity_of(job): job.known for job in jobs if job.known is not None}
        if len(known) == len(jobs):
            return [known[identity_of(job)] for job in jobs]
        distinct = {identity_of(job): job for job in jobs if job.known is None}
        known |= self._recorded(distinct)
        missing = [(identity, job) for identity, job in distinct.items() if identity not in known]
        self.hits += len(distinct) - len(missing)
        # One program after the other: processes cache the checks of the last few programs.
        missing.sort(key=lambda entry: entry[1].program)
        begin = 0
        while begin < len(missing):
            self.before_chunk(begin, len(missing))
            end = begin + self._chunk()
            known |= self._measure_timed(dict(missing[begin:end]))
            begin = end
        return [known[identity_of(job)] for job in jobs]

    def afresh(self) -> "Measured":
        """Return an evaluator on the same farm and cache that measures each job itself: see `Afresh`."""
        return Measured(self._farm, self._cache, afresh=True)

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Run any calls where jobs are measured, such as calls that measure many jobs; see `record`."""
        return self._farm.run(calls)

    def record(self, jobs: Sequence[Job], measurements: Sequence[Measurement]) -> list[Measurement]:
        """Record the measurements of calls by `run`, and return the valid measurement of each job.

        A measurement in the cache takes precedence, so that a repeated run gets the same costs. Otherwise the
        first measurement of a job is valid.

        Raises:
            StorageError: The cache cannot be read or written.
        """
        known = {identity_of(job): job.known for job in jobs if job.known is not None}
        known |= {
            identity_of(job): measurement
            for job, measurement in zip(jobs, measurements, strict=True)
            if job.parts
        }
        distinct = {identity_of(job): job for job in jobs if identity_of(job) not in known}
        known |= self._recorded(distinct)
        fresh: _Measurements = {}
        for job, measurement in zip(jobs, measurements, strict=True):
            if identity_of(job) not in known:
                fresh.setdefault(identity_of(job), measurement)
        self.hits += len(distinct) - len(fresh)
        self.misses += len(fresh)
        self._keep(distinct, fresh)
        known |= fresh
        return [known[identity_of(job)] for job in jobs]

    def recall(self, jobs: Sequence[Job]) -> list[Measurement | None]:
        """Return the known measurement of each job, without measuring; None where there is none.

        Raises:
            StorageError: The cache cannot be read.
        """
        found = self._cache.get_many(jobs) if self._cache else [None] * len(jobs)
        return [job.known or recorded for job, recorded in zip(jobs, found, strict=True)]

    def records(self, scheme: str, objective: str, target: str, limit: int | None) -> list[Record]:
        """Return the newest records of an environment's programs, the newest first; none without a cache.

        Raises:
            StorageError: The cache cannot be read.
        """
        return self._cache.records(scheme, objective, target, limit) if self._cache else []

    def _recorded(self, jobs: "_Jobs") -> "_Measurements":
        """Return the costs of jobs that need no measurement."""
        if self._measured is not None:
            return {identity: self._measured[identity] for identity in jobs.keys() & self._measured.keys()}
        return self._in_cache(jobs)

    def _in_cache(self, jobs: "_Jobs") -> "_Measurements":
        if not self._cache or not jobs:
            return {}
        found = self._cache.get_many(list(jobs.values()))
        return {
            identity: recorded for identity, recorded in zip(jobs, found, strict=True) if recorded is not None
        }

    def _chunk(self) -> int:
        """Return the number of jobs to measure before results are recorded."""
        most, least = CHUNK * self._farm.workers, self._farm.workers
        if not self._job_s:
            return least if self.cautious else most
        return max(least, min(most, int(CHUNK_S / self._job_s)))

    def _measure_timed(self, jobs: "_Jobs") -> "_Measurements":
        """Measure a chunk of jobs, and update the duration of a job."""
        started = time.monotonic()
        measured = self._measure(jobs)
        self._job_s = (time.monotonic() - started) / len(jobs)
        return measured

    def _measure(self, jobs: "_Jobs") -> "_Measurements":
        """Run a chunk of jobs and record the measurements, even if one of the jobs raises an error."""
        replies = self._replies(list(jobs.values()))
        self.misses += len(jobs)
        done: _Measurements = {}
        errors: list[Exception] = []
        for (identity, job), reply in zip(jobs.items(), replies, strict=True):
            outcome = _outcome(job, reply)
            if isinstance(outcome, Measurement):
                done[identity] = outcome
            else:
                errors.append(outcome)
        self._keep(jobs, done)
        if errors:
            raise errors[0]
        return done

    def _replies(self, jobs: Sequence[Job]) -> list[Reply]:
        """Run the calls of jobs, those with `Job.many` in groups; jobs of a failed group run again alone."""
        groups = _groups(jobs, self._farm.workers)
        found: dict[int, Reply] = {}
        replies = self._farm.run([_call([jobs[place] for place in places]) for places in groups])
        for places, reply in zip(groups, replies, strict=True):
            if len(places) == 1:
                found[places[0]] = reply
            elif isinstance(reply, Returned):
                found.update(zip(places, map(Returned, reply.value), strict=True))
        alone = [place for place in range(len(jobs)) if place not in found]
        if alone:
            found.update(zip(alone, self._farm.run([jobs[place].call for place in alone]), strict=True))
        return [found[place] for place in range(len(jobs))]

    def _keep(self, jobs: "_Jobs", measurements: "_Measurements") -> None:
        """Record measurements, except failures of original programs that are due to the machine."""
        lasting = {
            identity: measurement
            for identity, measurement in measurements.items()
            if not (jobs[identity].original and measurement.outcome in _OF_THE_MACHINE)
        }
        if self._measured is not None:
            self._measured |= measurements
            for identity in self._in_cache({identity: jobs[identity] for identity in lasting}):
                del lasting[identity]
        if self._cache and lasting:
            self._cache.put_many([jobs[identity] for identity in lasting], list(lasting.values()))


class Inline:
    """Runs the jobs' calls in this process, for operation counts and other costs without isolation."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job, in order.

        Raises:
            TypeError: A call did not return a measurement.
        """
        return summed(jobs, self._evaluate)

    def _evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [job.known or _checked(job.call, resolve(job.call)(*job.call.arguments)) for job in jobs]


class Recorded:
    """Answers from recorded costs alone, so that searches and agents run without measuring.

    Args:
        cache: Cache of the costs, with its machine.
    """

    def __init__(self, cache: CostCache):
        self._cache = cache

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job, in order.

        Raises:
            StorageError: A cost was never recorded, or the cache cannot be read.
        """
        return summed(jobs, self._evaluate)

    def _evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        found = self._cache.get_many(jobs)
        measurements: list[Measurement] = []
        for job, recorded in zip(jobs, found, strict=True):
            measurement = job.known or recorded
            if measurement is None:
                raise StorageError(
                    f"{self._cache.path} has no cost of {job.program} scheduled as {job.schedule!r} "
                    "for this machine, toolchain and target: measure it first"
                )
            measurements.append(measurement)
        return measurements


_OF_THE_MACHINE = (Outcome.CRASH, Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY)
"""Outcomes of an original program that the machine causes."""

Identity = tuple[str, str, str, str, str]
_Jobs = dict[Identity, Job]
_Measurements = dict[Identity, Measurement]


def identity_of(job: Job) -> Identity:
    """Return the five texts that identify a job: all that its result depends on, except the machine."""
    return job.program, job.schedule, job.objective, job.toolchain, job.target


def summed(jobs: Sequence[Job], evaluate: Callable[[Sequence[Job]], list[Measurement]]) -> list[Measurement]:
    """Return one measurement for each job; some of the jobs may be sums.

    Args:
        jobs: The jobs.
        evaluate: Evaluates jobs other than sums; it is called once, with each distinct part.
    """
    if not any(job.parts for job in jobs):
        return evaluate(jobs)
    single = {identity_of(part): part for job in jobs for part in ([part for _, part in job.parts] or [job])}
    found = dict(zip(single, evaluate(list(single.values())), strict=True))
    return [
        total([(factor, found[identity_of(part)]) for factor, part in job.parts])
        if job.parts
        else found[identity_of(job)]
        for job in jobs
    ]


def _groups(jobs: Sequence[Job], workers: int) -> list[list[int]]:
    """Return groups of jobs, by place, that one call answers: at most `TOGETHER`, spread over workers."""
    kinds: dict[Hashable, list[int]] = {}
    for place, job in enumerate(jobs):
        key = (job.many, job.program, job.objective, job.target) if job.many else place
        kinds.setdefault(key, []).append(place)
    groups: list[list[int]] = []
    for places in kinds.values():
        size = min(TOGETHER, math.ceil(len(places) / workers))
        groups += [places[begin : begin + size] for begin in range(0, len(places), size)]
    return groups


def _call(jobs: Sequence[Job]) -> Call:
    if len(jobs) == 1:
        return jobs[0].call
    return Call(jobs[0].many, ([job.call.arguments for job in jobs],))


def _do_nothing(done: int, count: int) -> None:
    """Let the measurements go on."""


def _outcome(job: Job, reply: Reply) -> Measurement | Exception:
    """Return the measurement of a reply, or the error to raise."""
    if isinstance(reply, Raised):
        return error_of(job.call, reply)
    if isinstance(reply, Returned):
        value = reply.value
        return value if isinstance(value, Measurement) else _not_a_measurement(job.call, value)
    failure = failure_of(reply)
    if job.original and reply.doubtful:
        return IrgymError(
            f"the original program {job.program} cannot be measured here ({failure.detail}): free the "
            "machine's memory and processor and try again, or choose a smaller program"
        )
    return failure


def _checked(call: Call, value: object) -> Measurement:
    if isinstance(value, Measurement):
        return value
    raise _not_a_measurement(call, value)


def _not_a_measurement(call: Call, value: object) -> TypeError:
    return TypeError(f"{call.function} returned {type(value).__name__}, not a Measurement")
