"""A short run of `benchmarks/checks.py`: the checks themselves, tried with wrong and with right results."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "checks.py"


@pytest.mark.parametrize(
    ("environment", "needs", "pairs", "schedules"),
    [("loops", "numpy", 60, 15), ("hlo", "jax", 10, 2), ("linalg", "torch_mlir", 60, 6)],
)
def test_no_wrong_result_is_validated_and_no_right_one_refused(
    environment: str, needs: str, pairs: int, schedules: int
):
    pytest.importorskip(needs)
    sizes = ("--pairs", str(pairs), "--schedules", str(schedules))
    done = subprocess.run(
        [sys.executable, SCRIPT, "--environments", environment, *sizes], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{schedules} right schedules: {schedules} validated" in done.stdout
    assert "ACCEPTED" not in done.stdout
