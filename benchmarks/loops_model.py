"""The analytical model of loops against measurements: its choice beside other nests that it ranks.

It times the nest that the model chooses, those next to it, and its choices with other register tiles and
inputs packed. A first pass times all of them; the choice and the fastest are then timed again, in turn.

    python benchmarks/loops_model.py
    python benchmarks/loops_model.py --dataset contractions --limit 20 --target x86-64-v3
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from irgym.core.dataset import spread
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.modelling.analytical import PACKINGS, chosen, ranked, widths
from irgym.envs.loops.modelling.model import slots
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.runner import measure
from irgym.envs.loops.task import LoopsTask
from irgym.measure.machine import fingerprint
from irgym.measure.timing import Timing

TIMING = Timing(budget_ns=8_000_000)

NEAR = 2.0
"""Nests up to so many times as slow as the fastest count for the model's error."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    dataset: str = "contractions"
    """Data set, of which the test programs are taken."""
    limit: int = 20
    """Number of programs, evenly spread."""
    neighbours: int = 8
    """Nests next to the choice that are timed, the best by the model."""
    finalists: int = 3
    """The fastest nests, which are timed again."""
    repeats: int = 5
    """Times that they and the choice are timed again; the least counts."""
    target: str | None = None
    """Target of the code; by default this machine."""


def nanoseconds(task: LoopsTask, nest: Nest) -> float:
    """Return the median time of a nest; infinity if it fails."""
    found = measure(task.uri, nest, task.backend.name, task.target, TIMING)
    return statistics.median(found.samples) if found.ok else math.inf


def candidates(task: LoopsTask, neighbours: int) -> Sequence[Nest]:
    """Return the model's choice, then the other nests, without repetitions."""
    contraction, target = task.contraction, task.target
    fitting = [width for width, _ in widths(contraction, target)]
    arms = [chosen(contraction, target, width, packs) for width in fitting for packs in PACKINGS]
    return list(dict.fromkeys([*ranked(contraction, target)[: neighbours + 1], *arms]))


def line(task: LoopsTask, options: Options) -> tuple[float, float]:
    """Return the speed of the choice over the fastest, and the model's error on the nests near it."""
    nests = candidates(task, options.neighbours)
    times = {nest: nanoseconds(task, nest) for nest in nests}
    least = min(times.values())
    near = {nest: time for nest, time in times.items() if time < NEAR * least}
    errors = [math.log(time / slots(task.contraction, nest, task.target)) for nest, time in near.items()]
    finalists = list(dict.fromkeys([nests[0], *sorted(times, key=times.__getitem__)[: options.finalists]]))
    again = dict.fromkeys(finalists, math.inf)
    for _ in range(options.repeats):
        for nest in finalists:
            again[nest] = min(again[nest], nanoseconds(task, nest))
    return min(again.values()) / again[nests[0]], statistics.pstdev(errors)


def main(options: Options) -> None:
    """Print a line for each program, and the means."""
    print(f"{'program':44s} {'choice / fastest':>17s} {'error':>8s}")
    shares: list[float] = []
    errors: list[float] = []
    for uri in spread(LOOPS.dataset(options.dataset).test, options.limit):
        task = LOOPS.task(uri, target=options.target)
        share, error = line(task, options)
        shares.append(share)
        errors.append(error)
        print(f"{uri:44s} {share:17.3f} {error:8.3f}", flush=True)
    mean = statistics.geometric_mean(shares)
    print(f"geometric mean of {len(shares)}: {mean:.3f} of the speed of the fastest, least {min(shares):.3f}")
    print(f"the logarithms of times are off by {statistics.mean(errors):.3f}")
    print(f"{task.target.name} on {fingerprint().text()}")


if __name__ == "__main__":
    main(tyro.cli(Options))
