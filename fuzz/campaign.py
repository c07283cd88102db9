"""A campaign: fuzzers take turns in child processes, with seeds that grow."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from fuzz.fuzzer import Fuzzer, Tally
from irgym.core.cost import Call
from irgym.measure.isolation.child import Child, Limits, Raised, Returned

LIMITS = Limits(timeout_s=300.0, memory_bytes=8 << 30)
"""Limits of a seed, far beyond what it needs: a fuzzer that hangs or grows is a finding."""

TURN_S = 30.0
"""Seconds after which the next fuzzer has its turn: starting its process takes some."""

COMMAND = "python fuzz/run.py"


@dataclass
class Course:
    """A fuzzer's way through its seeds.

    Attributes:
        fuzzer: The fuzzer.
        first: The first seed.
        seeds: Number of seeds so far.
        seconds: Seconds that they took.
        tally: Their results.
    """

    fuzzer: Fuzzer
    first: int
    seeds: int = 0
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)

    @property
    def next(self) -> int:
        """The next seed."""
        return self.first + self.seeds

    def command(self, first: int, seeds: int) -> str:
        """Return the command that repeats some seeds."""
        return f"{COMMAND} {self.fuzzer.name} --first {first} --seeds {seeds}"


class Campaign:
    """Fuzzers, each with its seeds.

    Args:
        fuzzers: The fuzzers.
        first: First seed of each.
        seeds: Number of seeds of each; None for no limit.
        seconds: Seconds after which no seed begins; None for no limit.
        say: Takes each finding as it comes.
    """

    def __init__(
        self,
        fuzzers: Sequence[Fuzzer],
        first: int,
        seeds: int | None,
        seconds: float | None,
        say: Callable[[str], None],
    ) -> None:
        self.courses = [Course(fuzzer, first) for fuzzer in fuzzers]
        self._waiting = deque(self.courses)
        self._seeds = seeds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._turn_s = TURN_S if seconds is None else min(TURN_S, seconds / len(fuzzers))
        self._say = say
        self._stopped = threading.Event()
        self._children: set[Child] = set()
        self._lock = threading.Lock()

    def run(self, workers: int) -> bool:
        """Run the fuzzers, several at a time; return whether Ctrl-C ended it."""
        with ThreadPoolExecutor(workers) as pool:
            working = [pool.submit(self._work) for _ in range(workers)]
            try:
                for work in working:
                    work.result()
            except KeyboardInterrupt:
                return True
            finally:
                self._stop()
        return False

    def findings(self) -> list[tuple[Course, str]]:
        """Return all findings, those about shares of all cases included."""
        return [
            (course, said)
            for course in self.courses
            for said in (*course.tally.findings, *course.tally.above())
        ]

    def _stop(self) -> None:
        with self._lock:
            self._stopped.set()
            for child in self._children:
                child.interrupt()

    def _work(self) -> None:
        """Give turns to fuzzers until none waits."""
        while not self._over():
            with self._lock:
                if not self._waiting:
                    return
                course = self._waiting.popleft()
            self._turn(course)
            if not self._done(course):
                with self._lock:
                    self._waiting.append(course)

    def _over(self) -> bool:
        late = self._end is not None and time.monotonic() >= self._end
        return late or self._stopped.is_set()

    def _done(self, course: Course) -> bool:
        return self._seeds is not None and course.seeds >= self._seeds

    def _turn(self, course: Course) -> None:
        """Run seeds of a fuzzer until its turn is over."""
        end = time.monotonic() + self._turn_s
        with Child(LIMITS) as child:
            with self._lock:
                self._children.add(child)
            try:
                while not self._done(course) and not self._over():
                    self._seed(child, course)
                    if self._waiting and time.monotonic() >= end:
                        break
            finally:
                with self._lock:
                    self._children.discard(child)

    def _seed(self, child: Child, course: Course) -> None:
        """Run the next seed of a fuzzer."""
        started, seed = time.monotonic(), course.next
        tally = tally_of(child, course.fuzzer, seed)
        if self._stopped.is_set():
            return  # the process was killed while it ran
        course.tally.merge(tally)
        course.seeds += 1
        course.seconds += time.monotonic() - started
        for word, sentences in (("FOUND", tally.findings), ("remark", tally.remarks)):
            for said in sentences:
                self._say(f"{word} {course.fuzzer.name}: {said}\n  repeat: {course.command(seed, 1)}")


def tally_of(child: Child, fuzzer: Fuzzer, seed: int) -> Tally:
    """Run a seed in a child process; a fuzzer that raises an exception, dies or hangs there is a finding."""
    reply = child.call(Call(fuzzer.function, (seed,)))
    if isinstance(reply, Returned):
        return reply.value
    if isinstance(reply, Raised):
        return Tally(findings=[f"it ended with {reply.message}\n{reply.traceback.rstrip()}"])
    return Tally(findings=[f"its process did not end well: {reply}"])
