import math
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from irgym.measure import timing
from irgym.measure.timing import Timing, interleave, sample


class Clock:
    """A clock that only candidates advance; `off_cpu` is how long each execution spends off the CPU."""

    def __init__(self, monkeypatch):
        self.wall = 0
        self.cpu = 0
        monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: self.wall)
        monkeypatch.setattr(timing.time, "thread_time_ns", lambda: self.cpu)
        monkeypatch.setattr(timing.time, "process_time_ns", lambda: self.cpu)

    def candidate(self, ns, off_cpu=()):
        """Return a candidate and the list of its numbers of repetitions."""
        asked = []
        disturbances = iter(off_cpu)

        def run(repetitions):
            asked.append(repetitions)
            self.cpu += round(ns * repetitions)
            self.wall += round(ns * repetitions) + next(disturbances, 0)

        return run, asked


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.mark.parametrize("ns", [10, 1_000, 95_000, 150_000, 700_000])
def test_samples_fill_the_budget_and_are_long_enough(clock, ns):
    run, asked = clock.candidate(ns)
    samples = sample(run)
    assert samples == pytest.approx([ns] * len(samples))
    assert 5 <= len(samples) <= 10
    assert min(asked[2:]) * ns >= 0.5 * Timing().sample_ns
    assert sum(asked) * ns <= max(1.5 * Timing().budget_ns, 8 * ns)


@pytest.mark.parametrize(("ns", "count"), [(1_900_000, 5), (3_000_000, 2), (50_000_000, 1)])
def test_slow_candidates_are_cut_short(clock, ns, count):
    run, asked = clock.candidate(ns)
    assert sample(run) == (ns,) * count
    assert len(asked) <= count + 2


def test_a_slow_first_execution_does_not_decide(clock):
    run, _ = clock.candidate(1_000, off_cpu=[80_000_000])
    assert sample(run) == pytest.approx([1_000] * 10)


def test_a_cold_first_execution_does_not_decide(clock):
    costs = iter([5_000_000])

    def run(repetitions):
        clock.wall += next(costs, 1_000 * repetitions)
        clock.cpu = clock.wall

    assert sample(run) == pytest.approx([1_000] * 10)


def test_disturbed_samples_are_taken_again(clock):
    run, asked = clock.candidate(200_000, off_cpu=[0, 0, 4_000_000, 0, 4_000_000])
    assert sample(run) == (200_000,) * 5
    assert len(asked) == 2 + 5 + 2


def test_retakes_are_bounded_on_a_machine_that_never_calms_down(clock):
    def always():
        while True:
            yield 1_000_000

    run, asked = clock.candidate(200_000, off_cpu=always())
    samples = sample(run)
    assert len(asked) <= 2 + 5 * (1 + Timing().retakes)
    assert samples
    assert min(samples) >= 200_000


@pytest.mark.timed
def test_a_real_candidate_is_timed_in_nanoseconds():
    def run(repetitions):
        end = time.perf_counter_ns() + repetitions * 20_000
        while time.perf_counter_ns() < end:
            pass

    assert min(sample(run)) == pytest.approx(20_000, rel=0.2)


@pytest.mark.timed
def test_caches_are_empty_where_the_protocol_says_so():
    read = np.ones(1 << 15)  # 256 KiB, which stay in a core's caches

    def run(repetitions):
        for _ in range(repetitions):
            read.sum()

    warm, cold = (min(sample(run, protocol)) for protocol in (Timing(), Timing().emptying()))
    assert cold > 1.2 * warm


def test_protocols_with_empty_caches_have_another_version():
    cold = Timing().emptying()
    assert cold.version != Timing().version and cold.cold


@pytest.mark.parametrize("ns, untimed", [(50_000, ["baseline", "ours"]), (3_000_000, [])])
def test_interleaved_rounds_alternate_and_compare(clock, ns: int, untimed: list[str]):
    order = []

    def logged(name, ns):
        run, _ = clock.candidate(ns)

        def inner(repetitions):
            order.append(name)
            run(repetitions)

        return inner

    pairs = interleave(logged("ours", ns), logged("baseline", 2 * ns), rounds=15)
    assert pairs == [(ns, 2 * ns)] * 15
    rounds = [*untimed, "ours", "baseline", "baseline", "ours"] * 15
    assert order[-len(rounds) :] == rounds


def test_a_slow_first_execution_does_not_shorten_samples(clock):
    lengths = []

    def run(repetitions):
        # Like a call of 2 us around a kernel of 0.2 us.
        clock.wall += 2_000 + 200 * repetitions
        clock.cpu += 2_000 + 200 * repetitions
        lengths.append(repetitions)

    assert min(sample(run)) == pytest.approx(200, rel=0.05)
    assert 250 <= lengths[-1] <= 500  # at least half of a sample of 100 us


def test_threads_that_wake_up_late_at_first_do_not_shorten_samples(clock):
    def run(repetitions):
        clock.wall += 100 * repetitions + (5_000_000 if clock.wall < 30_000_000 else 50_000)
        clock.cpu = 2 * clock.wall

    threads = Timing(sample_ns=3_000_000, clock="process")
    baseline, _ = clock.candidate(1_000)
    pairs = interleave(run, baseline, rounds=15, timing=threads)
    assert [ours_ns for ours_ns, _ in pairs] == pytest.approx([100] * 15, rel=0.05)


def spin(seconds):
    """Return a running thread that computes for so long."""
    end = time.perf_counter() + seconds

    def compute():
        while time.perf_counter() < end:
            pass

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    return thread


def test_threads_of_one_candidate_are_asleep_before_the_other_is_timed():
    spinning = [spin(0.0)]
    seen = []

    def ours(repetitions):
        seen.append(spinning[0].is_alive())
        time.sleep(1e-4)

    def theirs(repetitions):
        spinning[0].join()
        spinning[0] = spin(0.05)

    interleave(ours, theirs, rounds=2, timing=Timing(sample_ns=1, retakes=0), rest_s=0.2)
    assert len(seen) > 4 and not any(seen)


def test_disturbed_rounds_are_taken_again(clock):
    ours, _ = clock.candidate(100_000, off_cpu=[0, 0, 5_000_000])
    baseline, _ = clock.candidate(200_000)
    assert interleave(ours, baseline, rounds=15) == [(100_000, 200_000)] * 15


def test_interleaving_ends_on_a_machine_that_never_calms_down(clock):
    ours, _ = clock.candidate(100_000, off_cpu=[10**6] * 1000)
    baseline, asked = clock.candidate(200_000)
    pairs = interleave(ours, baseline, rounds=4)
    assert len(pairs) == 4
    assert len(asked) <= 2 + 3 * 4 * (1 + Timing().retakes)
    assert all(math.isfinite(ours_ns) for ours_ns, _ in pairs)


def test_every_parameter_is_part_of_the_version():
    versions = {Timing().version}
    for name in Timing.__dataclass_fields__:
        versions.add(Timing(**{name: 3}).version)
    assert len(versions) == 1 + len(Timing.__dataclass_fields__)


@pytest.mark.timed
def test_slow_candidates_are_compared_in_fewer_rounds(monkeypatch):
    monkeypatch.setattr(timing, "LONG_S", 0.2)
    pairs = interleave(lambda _: time.sleep(0.05), lambda _: time.sleep(0.05), rounds=15)
    assert timing.FEWEST_ROUNDS <= len(pairs) < 15


def test_programs_are_calm_by_the_time_of_children():
    command = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    before = timing._cpu_ns("children"), timing._cpu_ns("process")
    subprocess.run(command, check=True)
    assert timing._cpu_ns("children") - before[0] >= 0.25e9 > timing._cpu_ns("process") - before[1]
