"""XLA's passes on 30 programs written with haiku, flax, equinox, optax, numpyro and diffrax.

Half of them are numerical programs. For each: the operations after XLA's default order (`core`), and the
paper's metric (first - ours) / (first - core's) of three methods: `core` followed by the merging of equal
computations, which XLA:CPU does not do; the shipped policy's greedy episode alone; and the guided search.
`--time` adds run times against `jax.jit`, both modules in turn on one thread of XLA:CPU, and as a measure of
the noise, of the original against itself.

    pip install dm-haiku flax equinox optax numpyro diffrax
    python benchmarks/hlo_published.py --seconds 10 --time --out docs/measured/hlo_published.md
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import exp, log
from pathlib import Path
from statistics import median

import tyro

import irgym
from irgym.base.errors import IrgymError
from irgym.core.baseline import Versus
from irgym.core.cost import Call
from irgym.core.schedule import Schedule, replay
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.from_jax import program_of_function

PACKAGES = {
    "haiku": "dm-haiku",
    "flax": "flax",
    "equinox": "equinox",
    "optax": "optax",
    "numpyro": "numpyro",
    "diffrax": "diffrax",
}
"""Names at PyPI, by package."""

POLICY, GUIDED = "raw:default", "guided:default"


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    seconds: float = 10.0
    """Seconds of each search."""
    packages: tuple[str, ...] = tuple(PACKAGES)
    """Packages of the programs."""
    policy: str = "default"
    """Name or file of the policy."""
    time: bool = False
    """Whether to measure run times."""
    unvalidated: bool = False
    """Whether to skip the checks of results."""
    out: Path | None = None
    """File of the table."""
    build: str | None = None
    """Internal, for child processes: the package whose programs to lower."""


@dataclass(frozen=True)
class Found:
    """Results on a program.

    Attributes:
        name: Package and program.
        uri: Its URI.
        first: Operations of the original.
        core: Operations after the default order.
        merged: Operations after the default order and the merging of equal computations.
        policy: Operations after the policy's episode; None if it failed.
        guided: Operations after the search; None if it failed.
        schedule: Schedule of the search.
    """

    name: str
    uri: str
    first: float
    core: float
    merged: float
    policy: float | None
    guided: float | None
    schedule: str

    def gain(self, cost: float | None) -> float | None:
        """Return the paper's metric; None if the default order gains nothing, or there is no cost."""
        if cost is None or self.core >= self.first:
            return None
        return (self.first - cost) / (self.first - self.core)


def build(package: str) -> None:
    """Print the name and the URI of each program of a package."""
    os.environ["EQX_ON_ERROR"] = "nan"  # otherwise diffrax's checks of values call back into Python
    from hlo_packages.networks import NETWORKS
    from hlo_packages.numerics import NUMERICS

    for builder in {**NETWORKS, **NUMERICS}[package]:
        function, arguments = builder()
        name = builder.__name__.removeprefix(f"{package}_")
        print(f"{package}/{name}\t{program_of_function(function, arguments)}", flush=True)


def programs(packages: Sequence[str]) -> dict[str, str]:
    """Return URIs by name; the programs of each package are lowered in a separate process."""
    found: dict[str, str] = {}
    for package in packages:
        command = [sys.executable, __file__, "--build", package]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found |= dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    return found


def found_of(name: str, uri: str, options: Options) -> Found:
    """Compare the methods on a program."""
    methods = ("base", "core", f"raw:{options.policy}", f"guided:{options.policy}")
    inputs = 0 if options.unvalidated else 1
    result = irgym.compare(
        "hlo",
        [uri],
        methods=methods,
        seconds=options.seconds,
        comparing=irgym.Comparing(validation_inputs=inputs),
    )
    rows = {row.method: row for row in result.rows}
    for row in result.rows:
        if row.cost is None:
            print(f"{name}: {row.method}: {row.detail}", flush=True)
    raw, guided = rows.get(methods[2]), rows.get(methods[3])
    first, core = rows["base"].cost, rows["core"].cost
    if first is None or core is None:
        raise IrgymError(f"{name}: XLA fails on the original")
    task = HLO.task(uri)
    # The finishing passes are `core` and the merging.
    merged = replay(task, task.finishing(task.initial())).node.total
    return Found(
        name,
        uri,
        first,
        core,
        merged,
        None if raw is None else raw.cost,
        None if guided is None else guided.cost,
        "" if guided is None else guided.schedule,
    )


def run_time(found: Found) -> tuple[Versus, Versus]:
    """Return the run time relative to the original, and of the original relative to itself."""
    task = HLO.task(found.uri)
    state = replay(task, Schedule.parse(found.schedule, task.space))
    first: bytes = HLO.pool().call("proto", task.modules.file, ())
    ours: bytes = HLO.pool().call("proto", task.modules.file, state.path)
    with HLO.bench() as bench:
        versus, same = (
            bench.call(Call("irgym.envs.hlo.compiling.execution:time_in_turn", (proto, first)), 600.0)
            for proto in (ours, first)
        )
    return versus, same


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def text(value: float | None) -> str:
    """Return a ratio as text for the table."""
    return "" if value is None else f"{value:.3f}"


def main() -> None:
    """Run the benchmark."""
    options = tyro.cli(Options, description=__doc__)
    if options.build is not None:
        build(options.build)
        return
    rows: list[Found] = []
    lines = ["| program | operations | `core` | merged | policy | guided |", "|---|---|---|---|---|---|"]
    times: dict[str, tuple[Versus, Versus]] = {}
    if options.time:
        lines = [f"{lines[0]} run time | noise |", f"{lines[1]}---|---|"]
    for name, uri in programs(options.packages).items():
        try:
            found = found_of(name, uri, options)
        except IrgymError as error:
            lines.append(f"| `{name}` | {error} |" + " |" * (lines[0].count("|") - 3))
            print(lines[-1], flush=True)
            continue
        rows.append(found)
        gains = " | ".join(text(found.gain(cost)) for cost in (found.merged, found.policy, found.guided))
        line = f"| `{name}` | {found.first:.0f} | {found.core:.0f} | {gains} |"
        if options.time:
            try:
                times[name] = run_time(found)
                line += f" {times[name][0].ratio:.2f} | {times[name][1].ratio:.2f} |"
            except IrgymError as error:
                print(f"{name}: {error}", flush=True)
                line += " | |"
        lines.append(line)
        print(line, flush=True)
    summary = summarised(rows, options, times)
    print(summary)
    if options.out is not None:
        options.out.write_text("\n".join([*lines, "", summary, ""]))


def summarised(rows: Sequence[Found], options: Options, times: dict[str, tuple[Versus, Versus]]) -> str:
    """Return a summary of the rows in words."""
    merged, policy, guided = (
        [gain for row, cost in zip(rows, costs, strict=True) if (gain := row.gain(cost)) is not None]
        for costs in zip(*((row.merged, row.policy, row.guided) for row in rows), strict=True)
    )
    above = sum(row.guided is None or row.guided > row.core for row in rows)
    versions = ", ".join(f"{name} {version(PACKAGES[name])}" for name in options.packages)
    said = [
        f"{len(rows)} programs ({versions}), searches of {options.seconds:g} s.",
        f"Gain over `core`'s, geometric mean and least: merged {mean(merged):.3f}, {min(merged):.3f};",
        f"policy {mean(policy):.3f}, {min(policy):.3f};",
        f"guided {mean(guided):.3f}, {min(guided):.3f}, above `core` on {above} programs.",
    ]
    if times:
        ratios = [versus.ratio for versus, _ in times.values()]
        noise = [same.ratio for _, same in times.values()]
        said.append(
            f"Run time of `jax.jit` over that of the result: geometric mean {mean(ratios):.3f}, median "
            f"{median(ratios):.3f}, from {min(ratios):.2f} to {max(ratios):.2f}; of `jax.jit` over itself: "
            f"{mean(noise):.3f}, from {min(noise):.2f} to {max(noise):.2f}."
        )
    said.append(f"Written by `python benchmarks/hlo_published.py`, {time.strftime('%Y-%m-%d')}.")
    return "\n".join(said)


if __name__ == "__main__":
    main()
