"""The clock of a call, which excludes time in which the call could not run.

Wall time would blame a candidate for a machine that was suspended or busy with other work. Time in which this
process or the watched one was stopped therefore does not count, and a call is late with certainty only if its
process group used the processor for most of its time.
"""

import os
import time
from contextlib import suppress

import psutil

SLICE_S = 0.1
"""Seconds between checks of a silent process. Its pipe can outlive it in a forked grandchild."""

BUSY = 0.8
"""Processor time, as a share of the limit, from which on a late call is late with certainty."""

IDLE = 0.1
"""Share of the time below which a late call is idle: it sleeps, or waits forever."""

GRACE = 4.0
"""Total time, as a multiple of the limit, that a call may take while others keep it from the processor."""

STOPPED_S = 60.0
"""Seconds that a process may be stopped, for example by SIGSTOP, before it is given up."""

_LEAST_S = 0.001


class Watch:
    """Watches one process, call by call.

    Args:
        pid: The process, the leader of its group.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.restart(0.0)

    def restart(self, limit_s: float) -> None:
        """Start the clock of a call with a time limit in seconds."""
        self._limit_s = limit_s
        self._looked = time.monotonic()
        self._counted_s = self._stopped_s = 0.0
        self._first: tuple[float, float] | None = None

    @property
    def wait_s(self) -> float:
        """Seconds after which to check again, unless the process answers before."""
        left_s = self._limit_s - self._counted_s
        return min(max(left_s, _LEAST_S), SLICE_S) if left_s > 0 else SLICE_S

    def late(self) -> bool | None:
        """Say whether the call is late: None while it is not, True if it certainly is.

        False means that something else may be to blame: it took too long, but hardly ran.
        """
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        if passed > 2 * SLICE_S:
            passed = SLICE_S  # this process did not run, so the other may not have run either
        if passed > SLICE_S / 2 and _stopped(self._pid):
            self._stopped_s += passed
            return None if self._stopped_s < STOPPED_S else False
        self._counted_s += passed
        if self._first is None and self._counted_s >= min(SLICE_S, self._limit_s):
            self._first = self._counted_s, _processor_s(self._pid)
        if self._first is None or self._counted_s < self._limit_s:
            return None
        return self._judged(*self._first)

    def _judged(self, first_s: float, processor_s: float) -> bool | None:
        """Judge a call beyond its time limit, by the processor time used since it was first checked."""
        due_s = max(self._limit_s - first_s, SLICE_S)
        watched_s = self._counted_s - first_s
        used_s = _processor_s(self._pid) - processor_s
        if used_s >= BUSY * due_s:
            return True
        idle = watched_s >= due_s and used_s < IDLE * watched_s
        return False if idle or self._counted_s >= GRACE * self._limit_s else None


def _stopped(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return False


def _processor_s(group: int) -> float:
    """Return the processor time of a process group, including children that its members have waited for."""
    used_s = 0.0
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            if os.getpgid(pid) == group:
                times = psutil.Process(pid).cpu_times()
                used_s += times.user + times.system
                used_s += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return used_s
