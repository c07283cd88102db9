"""Whether `irgym tune` ends in the time that it is given, its start and its checks included.

For the smallest program of each environment: the fixed cost, what a budget of a second takes beyond it. For a
large one of the test programs: whether the command ends within 1.2 times its seconds and 10 s, or warned that
it would not. Each command runs in a new process; caches are as they are after a first run of each, and
so is Python's bytecode. How long imports alone take says how fast the machine is.

    python benchmarks/budgets.py
    python benchmarks/budgets.py --environments linalg --seconds 1 5 30
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

SMALL = {
    "loops": "loops://mm/64x64x64",
    "linalg": "linalg://matmul/64x64x64",
    "hlo": "hlo://mlp?layers=1",
    "graph": "graph://squeezenet1_1?size=128",
    "cse": "cse://kernels/bytes.c#decode_base64",
}
LARGE = {
    "loops": "loops://mm/1024x1024x1024",
    "linalg": "linalg://vgg11?size=224",
    "hlo": "hlo://gpt2?layers=4",
    "graph": "graph://inception_v3",
    "cse": "cse://kernels/signals.c#fourier",
}

IMPORTED = ("numpy", "jax", "torch")
"""Modules whose import is timed."""

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Where that is set, Python compiles irgym's sources again in each process."""


@dataclass(frozen=True)
class Run:
    """One command.

    Attributes:
        wall_s: Its wall-clock time.
        warned: Whether it said that it would take longer than its budget.
        result: Its JSON.
    """

    wall_s: float
    warned: bool
    result: dict[str, Any]


def run(uri: str, seconds: float) -> Run:
    """Tune a program for a time."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        words = [sys.executable, "-m", "irgym", "tune", uri, "--seconds", f"{seconds:g}", "--json", str(out)]
        started = time.perf_counter()
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=ENVIRONMENT)
        wall_s = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
        return Run(wall_s, "s are too short: the search stops" in done.stderr, json.loads(out.read_text()))


def seconds_of(words: list[str], repeats: int) -> float:
    """Return the median time of a Python command, without its first run."""
    times: list[float] = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=True, env=ENVIRONMENT)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def main(
    environments: tuple[str, ...] = tuple(SMALL),
    seconds: tuple[float, ...] = (1.0, 5.0, 30.0),
    repeats: int = 3,
) -> None:
    """Measure.

    Args:
        environments: Names of environments.
        seconds: Budgets on the large programs.
        repeats: Runs of which the median counts, on the small programs.
    """
    for module in IMPORTED:
        print(f"import {module}: {seconds_of(['-c', f'import {module}'], repeats):.2f} s")
    print(f"irgym --help: {seconds_of(['-m', 'irgym', '--help'], 2 * repeats - 1):.2f} s")
    for name in environments:
        run(SMALL[name], 1.0)
        runs = [run(SMALL[name], 1.0) for _ in range(repeats)]
        fixed = [timed.wall_s - 1.0 for timed in runs]
        print(f"{SMALL[name]}: {statistics.median(fixed):.1f} s beyond a budget of 1 s ({repeats} runs)")
    for name in environments:
        run(LARGE[name], 1.0)
        for budget in seconds:
            timed = run(LARGE[name], budget)
            limit_s = 1.2 * budget + 10.0
            kept = "kept" if timed.wall_s <= limit_s else "warned" if timed.warned else "BROKEN"
            found = f"{timed.result['speedup']:.2f}x, {timed.result['evaluations']} candidates"
            print(
                f"{LARGE[name]}, {budget:g} s: ended after {timed.wall_s:.1f} s of {limit_s:.0f}: {kept}; "
                f"{found}, validated: {timed.result['validated']}"
            )


if __name__ == "__main__":
    tyro.cli(main)
