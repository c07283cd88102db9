"""Isolated children that tests share: a process that ends well is kept for the next test that needs its like.

A fifth of the time of all tests would go into starting processes that import the same libraries. The
processes are those of the product, only older: a comparison of many programs uses one as long.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from irgym.core.cost import Call
from irgym.measure.isolation import child
from irgym.measure.isolation.child import Packed, pack
from irgym.measure.isolation.process import Process
from irgym.measure.isolation.protocol import RETURNED, Limits

IDLE = 6
"""Processes that are kept at most; the one that was used longest ago ends."""

RENEWED = ("IRGYM_CACHE_DIR", "PYTEST_CURRENT_TEST")
"""Environment variables that may differ from one use of a process to the next."""


class Shelf:
    """The processes that nobody uses."""

    def __init__(self) -> None:
        self._idle: list[Kept] = []
        self._lock = Lock()

    def take(self, limits: Limits, modules: Sequence[str] = ()) -> Process:
        """Return a process that was started for the same purpose, in the same surroundings, or a new one."""
        variables = {name: value for name, value in os.environ.items() if name not in RENEWED}
        kind = limits, tuple(modules), _owner(), tuple(sys.path), variables
        with self._lock:
            found = next((process for process in reversed(self._idle) if process.kind == kind), None)
            if found:
                self._idle.remove(found)
        if found and found.renew():
            return found
        return Kept(self.put, kind, limits, modules)

    def put(self, process: "Kept") -> None:
        """Keep a process."""
        with self._lock:
            self._idle.append(process)
            surplus = self._idle[:-IDLE]
            del self._idle[:-IDLE]
        for process in surplus:
            process.end()

    def close(self) -> None:
        """End all."""
        while self._idle:
            self._idle.pop().end()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let children take their processes from here."""
        before, child.Process = child.Process, self.take
        try:
            yield
        finally:
            child.Process = before


class Kept(Process):
    """A process that is put back instead of being ended, if it is well.

    Attributes:
        kind: What it was started for: it serves others of the same kind.
    """

    def __init__(
        self, put: "Callable[[Kept], None]", kind: object, limits: Limits, modules: Sequence[str]
    ) -> None:
        super().__init__(limits, modules)
        self.kind = kind
        self._put = put

    def dismiss(self) -> None:
        """Wait for `finish`."""

    def finish(self) -> None:
        """Put it back, or let it end."""
        if self.alive() and not self._struck and not self._outgoing and not self._incoming:
            self._put(self)
        else:
            self.end()

    def end(self) -> None:
        """Let it exit."""
        super().dismiss()
        super().finish()

    def renew(self) -> bool:
        """Give it the present surroundings; return whether it still works."""
        variables = {name: os.environ.get(name) for name in RENEWED}
        self.send(pack(Call(f"{__name__}:surround", (variables, Path.cwd()))))
        answer = self.receive()
        if isinstance(answer, Packed) and answer.kind == RETURNED:
            return True
        self.kill()
        return False


def surround(variables: dict[str, str | None], folder: Path) -> None:
    """Set environment variables and the current folder; runs in the process."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.chdir(folder)


def _owner() -> str:
    """Return the package that a process is started for: others use other libraries."""
    frame = sys._getframe(1)
    while frame:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("irgym.envs."):
            return ".".join(name.split(".")[:3])
        frame = frame.f_back
    return ""
