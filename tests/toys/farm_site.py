"""Farms of real processes on this machine."""

import gc
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from irgym.measure.farm.certificate import make_certificate
from irgym.measure.farm.endpoint import Endpoint

TESTS = Path(__file__).parents[1]

FOREIGN = """
import sys
from dataclasses import replace
from irgym.cli.main import main
from irgym.measure.farm import members
machine = members.fingerprint()
members.fingerprint = lambda: replace(machine, model="Abacus 3000")
"""
COMMAND = "main(sys.argv[1:])"
CARELESS = """
from irgym.measure.farm import worker
async def nobody(endpoint):
    return []
worker.members_at = nobody
"""
FOREIGN_MACHINE = ("-c", FOREIGN + COMMAND)
"""The command on another machine."""
INTRUDER = ("-c", FOREIGN + CARELESS + COMMAND)
"""The same without a look at who works for the farm already, as when two join at once."""


class Site:
    """The processes of a farm, ended with the test."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.certificate = folder / "farm.pem"
        make_certificate(self.certificate)
        self.endpoint = Endpoint("127.0.0.1", free_port(), self.certificate)
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, program: tuple[str, ...] = ("-m", "irgym")) -> subprocess.Popen[str]:
        """Start a command; its errors go to a file."""
        paths = [str(TESTS / "measure"), str(TESTS / "toys"), os.environ.get("PYTHONPATH", "")]
        with (self.folder / f"{len(self.processes)}.err").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                    "XDG_CONFIG_HOME": str(self.folder / "config"),
                },
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.processes.append(process)
        return process

    def errors(self, process: subprocess.Popen[str]) -> str:
        """Return what a process has written to its standard error."""
        return (self.folder / f"{self.processes.index(process)}.err").read_text()

    def serve(self) -> subprocess.Popen[str]:
        """Start the scheduler and wait until it listens."""
        place = str(self.endpoint).removeprefix("dask://")
        process = self.start("farm", "serve", place, *self.endpoint.flags.split())
        told(process, "waits for workers")
        return process

    def workers(self, *names: str) -> list[subprocess.Popen[str]]:
        """Start workers and wait until they have joined."""
        processes = [self.start("worker", self.endpoint.address, "--name", name) for name in names]
        for process in processes:
            told(process, "works for")
        return processes

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        # Sockets that distributed drops unclosed (a refused connection, a scheduler that dies) are collected
        # here: no later test is blamed for them.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "unclosed <s", ResourceWarning)
            gc.collect()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def told(process: subprocess.Popen[str], words: str) -> None:
    """Wait until a process prints a line with these words."""
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return
    raise AssertionError(f"the process ended without saying {words!r}")


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
