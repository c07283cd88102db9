"""Results of ten seconds of `irgym tune` on some shapes, against the core's peak and against numpy.

python benchmarks/loops_vs_numpy.py --repeats 3
python benchmarks/loops_vs_numpy.py --repeats 3 --target x86-64-v3
"""

import json
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
    "64x64x64",
    "128x128x128",
    "256x256x256",
    "512x512x512",
    "112x208x256",
    "100x100x100",
    "250x250x250",
    "33x47x65",
    "17x300x70",
    "8x512x64",
    "384x384x384",
    "640x640x640",
    "1000x1000x1000",
    "1024x1024x1024",
    "64x1024x1024",
    "1024x96x768",
    "1023x517x259",
)
"""Shapes that fit registers and pages and shapes that do not, small and large, wide and tall."""

LARGE = 128
"""Least size of all three dimensions of shapes whose share of the peak counts."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    shapes: tuple[str, ...] = SHAPES
    """MxNxK of each matmul."""
    seconds: float = 10.0
    """Seconds of each search."""
    repeats: int = 1
    """Tunings of each shape, with other seeds; the median is reported."""
    target: str | None = None
    """Target of the code, also for numpy; by default this machine."""
    options: tuple[str, ...] = ()
    """Further options of irgym tune, such as --search=evolutionary."""


def tune(shape: str, seed: int, options: Options, folder: Path) -> dict[str, Any]:
    """Run the command in a separate process with an empty cost cache, and return its JSON."""
    out = folder / "result.json"
    command = [
        sys.executable,
        "-m",
        "irgym",
        "tune",
        f"loops://mm/{shape}",
        "--seconds",
        str(options.seconds),
    ]
    command += ["--seed", str(seed), "--json", str(out), *options.options]
    command += ["--target", options.target] if options.target else []
    environment = os.environ | {"IRGYM_CACHE_DIR": str(folder)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return json.loads(out.read_text())


def main(options: Options) -> None:
    """Print a line for each shape."""
    print("shape            share of peak   ratio to numpy   GFLOP/s   candidates   schedule of the last")
    ratios: list[float] = []
    shares: list[float] = []
    limits: list[float] = []
    for shape in options.shapes:
        with tempfile.TemporaryDirectory() as folder:
            found = [tune(shape, seed, options, Path(folder)) for seed in range(options.repeats)]
        peak, ratio, rate, count = (
            statistics.median(result[key] for result in found)
            for key in ("peak_share", "baseline_ratio", "gflops", "evaluations")
        )
        ratios.append(ratio)
        limits.append(ratio / peak)
        if min(map(int, shape.split("x"))) >= LARGE:
            shares.append(peak)
        print(
            f"{shape:16s} {peak:13.1%} {ratio:16.2f} {rate:9.1f} {count:12.0f}   {found[-1]['schedule']}",
            flush=True,
        )
    mean = statistics.geometric_mean(ratios)
    print(
        f"geometric mean of the ratios to numpy {mean:.2f}, least {min(ratios):.2f}; "
        f"at the peak it would be {statistics.geometric_mean(limits):.2f}"
    )
    if shares:
        print(f"least share of the peak where all sizes are at least {LARGE}: {min(shares):.1%}")
    print(f"{found[-1]['machine']}; baseline: {found[-1]['baseline']}")


if __name__ == "__main__":
    main(tyro.cli(Options))
