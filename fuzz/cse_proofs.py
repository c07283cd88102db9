"""The share of shared results that are proved equal, over the functions of the data sets.

    python fuzz/cse_proofs.py --count 600

For each function, all candidates are shared, and then a random choice. Results that are neither proved nor
refuted are executed only. The exit status is 1 if anything is refuted.
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import tyro

from irgym.base.errors import ProgramError
from irgym.core.catalogue import tasks_of
from irgym.core.cost import Call
from irgym.core.dataset import spread
from irgym.envs.cse.checking.proving.proofs import Proofs
from irgym.envs.cse.environment import CSE, LIMITS
from irgym.envs.cse.task import CseTask
from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Returned

CHUNK = 64
"""Number of functions opened together."""


@dataclass(frozen=True)
class Options:
    """Options of the test."""

    count: int = 600
    """Greatest number of functions, spread evenly."""
    seconds: float = 3600.0
    """Seconds after which no more functions are opened."""
    seed: int = 0
    """Seed of the choices."""
    datasets: tuple[str, ...] = ("kernels", "packages")
    """Data sets, of which both splits are used."""
    target: str = "x86-64"
    """Target of the code."""
    workers: int = 1
    """Number of processes."""


def choices(task: CseTask, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return all candidates, and some of them."""
    places = range(len(task.names))
    share = rng.random()
    return [tuple(places), tuple(place for place in places if rng.random() < share)]


def main(options: Options) -> None:
    """Print the number of proved pairs, and the refuted ones."""
    rng = np.random.default_rng(options.seed)
    datasets = [CSE.dataset(name) for name in options.datasets]
    uris = spread([uri for dataset in datasets for uri in (*dataset.train, *dataset.test)], options.count)
    started = time.perf_counter()
    totals: Counter[str] = Counter()
    problems: list[str] = []

    def left_out(uri: str, error: ProgramError) -> None:
        totals["left out"] += 1
        print(f"{uri} left out: {error}")

    with LocalFarm(options.workers, LIMITS) as farm:
        for begin in range(0, len(uris), CHUNK):
            if time.perf_counter() - started > options.seconds:
                break
            chunk = uris[begin : begin + CHUNK]
            opened = tasks_of(chunk, lambda uri: CSE.task(uri, target=options.target), left_out)
            tasks = [task for task in opened if task.names]
            asked = [(task, shared) for task in tasks for shared in choices(task, rng)]
            calls = [
                Call(
                    "irgym.envs.cse.checking.proving.proofs:proofs_of",
                    (str(task.module), task.analysed.function.name, shared),
                )
                for task, shared in asked
            ]
            totals["functions"] += len(tasks)
            for (task, shared), reply in zip(asked, farm.run(calls), strict=True):
                if not isinstance(reply, Returned):
                    problems.append(f"{task.uri}: {shared}: {reply}")
                    continue
                proofs: Proofs = reply.value
                totals.update({"pairs": proofs.pairs, "by comparison": proofs.same, "by z3": proofs.solved})
                totals.update({"executed only": proofs.open, "refuted": len(proofs.refuted)})
                problems += [f"{task.uri}: {shared}: {pair} refuted" for pair in proofs.refuted]
    print("\n".join(problems))
    proved = totals["by comparison"] + totals["by z3"]
    print(", ".join(f"{what} {count}" for what, count in totals.items()))
    share = proved / totals["pairs"] if totals["pairs"] else 0.0
    print(f"{share:.2%} of the pairs are proved; {time.perf_counter() - started:.0f} s")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
