"""A short run of `fuzz/graph_fuzz.py`: random rewrites of very small models, checked step by step."""

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "fuzz" / "graph_fuzz.py"


def run(*options: str, hashing: str = "0") -> str:
    variables = {**os.environ, "PYTHONHASHSEED": hashing, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, SCRIPT, "--tiny", *options], capture_output=True, text=True, env=variables
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_random_sequences_keep_what_models_compute():
    said = run("--sequences", "8", "--steps", "12").splitlines()
    [total] = [line for line in said if line.startswith("8 programs: ")]
    for what in ("sequences", "in double precision", "in ONNX Runtime"):
        assert f"8 {what}" in total
    assert said[-1].startswith("0 failures")


def test_sequences_do_not_depend_on_the_process():
    options = ("--families", "gpt2", "--sequences", "2", "--first", "7")
    prints = [re.findall(r"fingerprint (\w+)", run(*options, hashing=seed)) for seed in "01"]
    assert prints[0] == prints[1] != []
