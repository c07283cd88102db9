"""A short run of `fuzz/schedules.py`: random schedules on ordinary and special numbers."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "fuzz" / "schedules.py"


def test_random_schedules_of_loops_are_right_on_special_numbers_too():
    options = ("--environments", "loops", "--count", "30", "--seed", "7")
    done = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 schedules, 0 wrong" in done.stdout
