"""Sequences of `fuzz/graph/rewrites.py`, which a seed must determine in every process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = "from fuzz.graph.rewrites import fuzzed; made = fuzzed(0); print(made.print, made.tally.told())"


def test_sequences_do_not_depend_on_the_process():
    said = [
        subprocess.run(
            [sys.executable, "-c", CODE],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashing},
        ).stdout
        for hashing in "01"
    ]
    assert said[0] == said[1] != ""
    assert " 3 right, " in said[0]
