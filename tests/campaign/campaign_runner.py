"""Command lines with a time limit each, all in one process that is replaced when it hangs or dies."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from campaign_options import Row
from commands import Result, without_progress

Run = Callable[[Row, Path], Result]
"""Runs a row's command in a folder."""

TIME_LIMIT_S = 60.0
"""Time limit of a command on a busy machine; nearly all take milliseconds."""

HUNG = 124


class Runner:
    """Runs commands in a worker process.

    Args:
        variables: Environment variables of the worker, beside those of this process.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        self._variables = variables
        self._start()

    def _start(self) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        worker = Path(__file__).with_name("campaign_worker.py")
        self._process = subprocess.Popen(
            [sys.executable, str(worker), str(requests), str(answers)],
            pass_fds=(requests, answers),
            env=os.environ | self._variables,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(requests)
        os.close(answers)
        self._pending = b""

    def run(self, arguments: list[str], folder: Path) -> Result:
        """Run a command in a folder; one that does not end in time has exit code 124."""
        line = json.dumps({"arguments": arguments, "folder": str(folder)}) + "\n"
        os.write(self._requests, line.encode())
        answer = self._line(time.monotonic() + TIME_LIMIT_S)
        if answer is None:
            self.close()
            self._start()
            return Result(HUNG, "", f"it hung for {TIME_LIMIT_S} s, or ended its process")
        said = json.loads(answer)
        return Result(said["code"], said["out"], without_progress(said["err"]))

    def _line(self, deadline: float) -> bytes | None:
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                return None
            data = os.read(self._answers, 1 << 16)
            if not data:
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def close(self) -> None:
        """End the worker and all that it started."""
        os.close(self._requests)
        os.close(self._answers)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
