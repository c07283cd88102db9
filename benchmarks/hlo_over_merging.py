"""The gain of the order of XLA's passes beyond the merging of equal computations, on held-out graphs.

Merging is a pass of irgym's, and most of the gain over XLA's default order. Here it belongs to the baseline:
gains are (first - ours) / (first - merged), in operations, where merged is the default order with the merging
after it. Guided searches, a short and a long one, show what there is to gain.

    python benchmarks/hlo_over_merging.py --limit 16 --seconds 30 120
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

import irgym
from irgym.core.dataset import spread
from irgym.core.schedule import replay
from irgym.envs.hlo.environment import HLO
from irgym.measure.machine import fingerprint


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    dataset: str = "networks"
    """Data set, of which the test graphs are taken."""
    limit: int = 16
    """Number of graphs, evenly spread."""
    programs: tuple[str, ...] = ()
    """URIs of graphs instead of these."""
    seconds: tuple[float, ...] = (30.0, 120.0)
    """Seconds of the guided searches of each graph."""
    policy: str = "default"
    """Name or file of the policy."""


def gains(uri: str, options: Options) -> tuple[float, Sequence[float]]:
    """Return the operations after merging, and the gains of the policy and of each search over it."""
    task = HLO.task(uri)
    # The finishing passes are the default order and the merging.
    merged = replay(task, task.finishing(task.initial())).node.total
    costs: list[float] = []
    for seconds in (None, *options.seconds):
        method = "guided" if seconds else "raw"
        [found] = irgym.compare(
            "hlo",
            [uri],
            methods=(f"{method}:{options.policy}",),
            seconds=seconds,
            comparing=irgym.Comparing(validation_inputs=0),
        ).rows
        if found.cost is None:
            raise SystemExit(f"{uri}: {found.detail}")
        costs.append(found.cost)
    first = task.initial().node.total
    return merged, [(first - cost) / (first - merged) for cost in costs]


def main(options: Options) -> None:
    """Print a line for each graph, and the means."""
    print(f"{'graph':60s} {'merged':>8s} {'policy':>8s}" + "".join(f"{s:>7g} s" for s in options.seconds))
    rows: list[Sequence[float]] = []
    for uri in options.programs or spread(HLO.dataset(options.dataset).test, options.limit):
        merged, found = gains(uri, options)
        rows.append(found)
        print(f"{uri:60s} {merged:8.0f} " + " ".join(f"{gain:8.3f}" for gain in found), flush=True)
    means = [statistics.geometric_mean(column) for column in zip(*rows, strict=True)]
    least = [min(column) for column in zip(*rows, strict=True)]
    print(f"{'geometric mean':69s} " + " ".join(f"{mean:8.3f}" for mean in means))
    print(f"{'least':69s} " + " ".join(f"{gain:8.3f}" for gain in least))
    print(fingerprint().text())


if __name__ == "__main__":
    main(tyro.cli(Options))
