"""A raw policy against numpy, and against the best ten-second search of each program.

python benchmarks/loops_policy.py --limit 8
python benchmarks/loops_policy.py --dataset conv_networks --target x86-64-v3
"""

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

SEARCHES = "random,beam-bfs,mcts,evolutionary,annealing,guided:{policy}"


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    policy: str = "default"
    """Shipped policy, or run folder."""
    limit: int = 8
    """Number of programs of the test split, evenly spread."""
    dataset: str | None = None
    """Name of a data set; by default that of the environment."""
    target: str | None = None
    """Target of the code, also for numpy; by default this machine."""
    seconds: float = 10.0
    """Seconds of each search on each program."""
    searches: str = SEARCHES
    """Searches; the best of them on each program counts."""


def compare(options: Options) -> dict[str, Any]:
    """Run `irgym compare` and return its JSON."""
    methods = f"raw:{options.policy},{options.searches.format(policy=options.policy)}"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "comparison.json"
        command = [sys.executable, "-m", "irgym", "compare", "loops", "--methods", methods]
        command += ["--limit", str(options.limit), "--seconds", str(options.seconds), "--json", str(out)]
        command += ["--dataset", options.dataset] if options.dataset else []
        command += ["--target", options.target] if options.target else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text())


def main(options: Options) -> None:
    """Print a line for each program and the geometric means."""
    data = compare(options)
    programs: dict[str, dict[str, dict[str, Any]]] = {}
    for row in data["rows"]:
        programs.setdefault(row["program"], {})[row["method"].partition(":")[0]] = row
    ratios: list[float] = []
    print("program                    numpy ratio   share of peak   best search        of the best   seconds")
    for program, rows in programs.items():
        policy = rows.pop("raw")
        best = max(rows.values(), key=lambda row: row["peak_share"])
        ratios.append(policy["peak_share"] / best["peak_share"])
        print(
            f"{program:26s} {policy['baseline_ratio']:11.2f} {policy['peak_share']:14.1%}   "
            f"{best['method']:18s} {ratios[-1]:10.3f} {policy['seconds']:11.4f}"
        )
    rows = [row for row in data["rows"] if row["method"].startswith("raw:")]
    numpy = statistics.geometric_mean(row["baseline_ratio"] for row in rows)
    print(
        f"geometric means over {len(rows)} programs: {numpy:.3f} of numpy's speed, "
        f"{statistics.geometric_mean(ratios):.3f} of the best search's; "
        f"greatest time for a program {max(row['seconds'] for row in rows) * 1e3:.0f} ms"
    )
    print(data["machine"])


if __name__ == "__main__":
    main(tyro.cli(Options))
