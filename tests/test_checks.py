"""A short run of `benchmarks/checks.py`: the checks themselves, tried with wrong and with right results."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "checks.py"


def test_no_wrong_result_of_loops_is_validated_and_no_right_one_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    sizes = ("--pairs", "240", "--schedules", "60")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--environments", "loops", *sizes], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 right schedules: 60 validated" in done.stdout and "ACCEPTED" not in done.stdout


def test_no_wrong_result_of_hlo_is_validated_and_no_right_one_refused():
    sizes = ("--pairs", "15", "--schedules", "3")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--environments", "hlo", *sizes], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 right schedules: 3 validated" in done.stdout and "ACCEPTED" not in done.stdout


def test_no_wrong_result_of_linalg_is_validated_and_no_right_one_refused(tmp_path, monkeypatch):
    pytest.importorskip("torch_mlir")
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    sizes = ("--pairs", "100", "--schedules", "9")
    done = subprocess.run(
        [sys.executable, SCRIPT, "--environments", "linalg", *sizes], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 right schedules: 9 validated" in done.stdout and "ACCEPTED" not in done.stdout
