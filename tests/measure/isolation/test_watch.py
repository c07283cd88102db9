import pytest

from irgym.measure.isolation import watch
from irgym.measure.isolation.watch import GRACE, STOPPED_S, Watch


class World:
    """A clock, and a process that computes some share of the time."""

    def __init__(self, monkeypatch):
        self.now = self.processor = 100.0
        self.stopped = False
        monkeypatch.setattr(watch.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(watch, "_processor_s", lambda group: self.processor)
        monkeypatch.setattr(watch, "_stopped", lambda pid: self.stopped)

    def until_late(self, watch, share, longest=1000.0):
        """Return when a process with the given share of the processor is late, and whether certainly."""
        begin = self.now
        while self.now < begin + longest:
            self.now += watch.wait_s
            self.processor += share * watch.wait_s
            verdict = watch.late()
            if verdict is not None:
                return self.now - begin, verdict
        return None


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def clock(world):
    clock = Watch(1)
    clock.restart(10.0)
    return clock


def test_a_busy_call_is_certainly_late_at_the_limit(world, clock):
    assert world.until_late(clock, 1.0) == (pytest.approx(10.0, abs=0.11), True)


def test_many_threads_have_no_less_time(world, clock):
    assert world.until_late(clock, 8.0) == (pytest.approx(10.0, abs=0.11), True)


def test_who_sleeps_is_late_at_the_limit_in_doubt(world, clock):
    assert world.until_late(clock, 0.0) == (pytest.approx(10.0, abs=0.11), False)


def test_who_shares_the_processor_gets_more_time(world, clock):
    assert world.until_late(clock, 0.5) == (pytest.approx(16.0, abs=0.5), True)
    clock.restart(10.0)
    assert world.until_late(clock, 0.15) == (pytest.approx(10.0 * GRACE, abs=0.2), False)


def test_time_in_which_the_watcher_did_not_run_does_not_count(world, clock):
    for _ in range(50):
        world.now += 0.1
        assert clock.late() is None
    world.now += 3600.0
    assert clock.late() is None
    assert world.until_late(clock, 0.0) == (pytest.approx(4.9, abs=0.2), False)


def test_time_in_which_the_process_is_stopped_does_not_count_but_ends(world, clock):
    world.stopped = True
    assert world.until_late(clock, 0.0) == (pytest.approx(STOPPED_S, abs=0.11), False)


def test_a_limit_below_a_slice(world, clock):
    clock.restart(0.05)
    assert world.until_late(clock, 1.0) == (pytest.approx(0.2, abs=0.11), True)
    clock.restart(0.05)
    assert world.until_late(clock, 0.0) == (pytest.approx(0.2, abs=0.11), False)
