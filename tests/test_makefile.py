"""`make demo`: one at a time."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make: none is installed")


def test_a_second_demo_is_told_of_the_first(tmp_path: Path):
    """In a separate folder, where the installation is a script that waits."""
    (tmp_path / ".ci").mkdir()
    for file in ("Makefile", ".ci/alone.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "constraints.txt").touch()
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nif [ "$1" = -m ]; then echo installing; exec sleep 60; fi\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    # --no-print-directory: make test runs this within another make.
    make = ["make", "--no-print-directory", "-C", str(tmp_path), f"PYTHON={python}"]
    with subprocess.Popen([*make, "-s", "demo"], stdout=subprocess.PIPE, start_new_session=True) as first:
        assert first.stdout is not None
        try:
            assert b"installing" in first.stdout.readline()
            owner = (tmp_path / ".demo.lock").read_text().strip()
            (tmp_path / "runs" / "demo").mkdir(parents=True)
            for target in ("demo", "again-demo"):
                second = subprocess.run([*make, target], capture_output=True, text=True, timeout=120)
                assert second.returncode == 2 and f"process {owner} does the same" in second.stderr
            assert (tmp_path / "runs" / "demo").is_dir(), "nothing of the first was removed"
        finally:
            os.killpg(first.pid, signal.SIGKILL)
    lock = [sys.executable, str(ROOT / ".ci/alone.py"), str(tmp_path / ".demo.lock"), "echo", "free"]
    assert subprocess.run(lock, capture_output=True, text=True, check=True).stdout == "free\n"
