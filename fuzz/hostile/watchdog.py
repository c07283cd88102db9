"""A command under a watchdog, which records its exit, its duration, and the memory of its processes."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60.0
"""Time limit for opening a file, in seconds."""

BYTES = 4 << 30
"""Memory limit of all processes of a command together, as Linux's proportional set size."""

GRACE = 2.0
"""Multiple of `SECONDS` after which the watchdog kills a command, later on a busy machine."""

PERIOD_S = 0.1
"""Seconds between checks of the memory."""


@dataclass(frozen=True)
class Ending:
    """How a command ended.

    Attributes:
        code: Its exit code; negative for a signal.
        seconds: Its duration.
        peak: Peak memory of all its processes together, in bytes.
        said: Its output to standard error.
        killed: Whether the watchdog killed it.
        load: Greatest load of the machine meanwhile, per core; at least 1.
    """

    code: int
    seconds: float
    peak: int
    said: str
    killed: bool
    load: float

    @property
    def quiet_seconds(self) -> float:
        """Estimate of its duration on a quiet machine."""
        return self.seconds / self.load


def run(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Ending:
    """Run a command in a folder, and watch it and all its descendants."""
    output = folder / "stderr.txt"
    begun = time.monotonic()
    with output.open("wb") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd=folder,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        peak, killed, load = 0, False, 1.0
        while process.poll() is None:
            family = _family(process.pid)
            peak = max(peak, sum(map(_held, family)))
            load = max(load, os.getloadavg()[0] / (os.cpu_count() or 1))
            killed = time.monotonic() - begun > GRACE * SECONDS * load or peak > 2 * BYTES
            if killed:
                _kill(family)
            time.sleep(PERIOD_S)
    return Ending(
        process.wait(),
        time.monotonic() - begun,
        peak,
        output.read_text(errors="replace"),
        killed,
        load,
    )


def _family(root: int) -> list[int]:
    """Return a process and its descendants; irgym's children are in separate sessions."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _held(process: int) -> int:
    """Return the memory of a process in bytes, shared pages by share; 0 if it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
