"""Products against numpy and the core's peak: `irgym tune`, the policy alone, and the model alone.

python benchmarks/loops_vs_numpy.py --repeats 3
python benchmarks/loops_vs_numpy.py --repeats 3 --target x86-64-v3
python benchmarks/loops_vs_numpy.py --repeats 3 --threads 2
python benchmarks/loops_vs_numpy.py --seconds 0
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

SHAPES = (
    *("16x16x16", "32x32x32", "64x64x64", "100x100x100", "128x128x128", "250x250x250", "256x256x256"),
    *("384x384x384", "512x512x512", "640x640x640", "1000x1000x1000", "1024x1024x1024", "2048x2048x2048"),
    *("33x47x65", "17x300x70", "8x512x64", "112x208x256", "1024x96x768", "96x3072x768", "1023x517x259"),
    *("64x1024x1024", "4096x64x64", "2x4096x4096", "1x4096x4096"),
)
"""Shapes that fit registers and pages and shapes that do not, small and large, wide, tall and odd."""

LARGE = 128
"""Least size of all three dimensions of shapes whose share of the peak counts."""


METHODS = {"analytical": "model", "raw:default": "policy"}
"""Methods without a search, and their columns."""

NAMES = ("tune", *METHODS.values())
"""Columns of ratios."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    shapes: tuple[str, ...] = SHAPES
    """MxNxK of each matmul."""
    seconds: float = 10.0
    """Seconds of each `irgym tune`; 0 for the policy and the model alone."""
    repeats: int = 1
    """Measurements of each shape, with other seeds; the median is reported."""
    target: str | None = None
    """Target of the code, also for numpy; by default this machine."""
    threads: int = 1
    """Threads of both; on several, shares of the peak are not measured."""
    options: tuple[str, ...] = ()
    """Further options of irgym tune, such as --search=evolutionary."""


def run(command: list[str], options: Options, folder: Path) -> dict[str, Any]:
    """Run a command of irgym in a separate process with an empty cost cache, and return its JSON."""
    folder.mkdir()
    out = folder / "result.json"
    command = [sys.executable, "-m", "irgym", *command, "--json", str(out)]
    command += ["--target", options.target] if options.target else []
    command += ["--threads", str(options.threads)] if options.threads > 1 else []
    environment = os.environ | {"IRGYM_CACHE_DIR": str(folder)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(out.read_text())


def tune(shape: str, seed: int, options: Options, folder: Path) -> dict[str, Any]:
    """Return the result of `irgym tune`."""
    command = ["tune", f"loops://mm/{shape}", "--seconds", str(options.seconds), "--seed", str(seed)]
    return run([*command, *options.options], options, folder)


def alone(shape: str, seed: int, options: Options, folder: Path) -> dict[str, Any]:
    """Return the comparison of the model and the policy without a search."""
    methods = ",".join(METHODS)
    command = ["compare", "loops", "--programs", f"loops://mm/{shape}", "--methods", methods]
    return run([*command, "--seed", str(seed)], options, folder)


def median(found: list[dict[str, Any]], key: str) -> float:
    """Return the median of those results that have a figure; NaN if none has."""
    known = [result[key] for result in found if result[key] is not None]
    return statistics.median(known) if known else math.nan


def line(shape: str, options: Options, folder: Path) -> tuple[dict[str, float], str]:
    """Return ratios to numpy and shares of the peak of a shape, and the machine."""
    seeds = range(options.repeats)
    compared = [alone(shape, seed, options, folder / f"alone{seed}") for seed in seeds]
    figures: dict[str, float] = {}
    for method, name in METHODS.items():
        found = [row for data in compared for row in data["rows"] if row["method"] == method]
        figures[name] = median(found, "baseline_ratio")
        figures[f"{name} share"] = median(found, "peak_share")
    tuned = [tune(shape, seed, options, folder / f"tuned{seed}") for seed in seeds] if options.seconds else []
    figures["tune"] = median(tuned, "baseline_ratio")
    figures["tune share"] = median(tuned, "peak_share")
    figures["GFLOP/s"] = median(tuned, "gflops")
    figures["candidates"] = median(tuned, "evaluations")
    return figures, f"{compared[-1]['machine']}; baseline: {compared[-1]['baseline']}"


def main(options: Options) -> None:
    """Print a line for each shape, and the means."""
    columns = (*NAMES, *(f"{name} share" for name in NAMES), "GFLOP/s", "candidates")
    print("ratio to numpy, and share of the peak")
    print(f"{'shape':16s}" + "".join(f"{name:>17s}" for name in columns))
    table: dict[str, dict[str, float]] = {}
    for shape in options.shapes:
        with tempfile.TemporaryDirectory() as folder:
            table[shape], machine = line(shape, options, Path(folder))
        print(f"{shape:16s}" + "".join(f"{table[shape][name]:17.3f}" for name in columns), flush=True)
    for name in NAMES:
        rows = [row for row in table.values() if not math.isnan(row[name])]
        if not rows:
            continue
        ratios = [row[name] for row in rows]
        limits = [row[name] / row[f"{name} share"] for row in rows if not math.isnan(row[f"{name} share"])]
        at_peak = statistics.geometric_mean(limits) if limits else math.nan
        print(
            f"{name}: geometric mean of {len(rows)} ratios to numpy {statistics.geometric_mean(ratios):.3f}, "
            f"least {min(ratios):.3f}; at the peak the mean would be {at_peak:.3f}"
        )
        shares = [
            row[f"{name} share"]
            for shape, row in table.items()
            if min(map(int, shape.split("x"))) >= LARGE and not math.isnan(row[f"{name} share"])
        ]
        if shares:
            print(f"{name}: least share of the peak where all sizes are at least {LARGE}: {min(shares):.1%}")
    print(machine)


if __name__ == "__main__":
    main(tyro.cli(Options))
