"""A short list of sequences of LLVM's passes: found on training programs, and measured on test programs.

Searches on some training programs give candidates. Then the list grows by the sequence that adds most: to the
mean over many training programs of log(-Oz's instructions / the best so far). `--write` writes the list
into the package. Costs are exact; searches end by time, so that the candidates depend on the machine.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from irgym.core.dataset import spread
from irgym.core.schedule import Schedule
from irgym.envs.llvm.environment import LLVM
from irgym.envs.llvm.sequences import FILE, prefixes
from irgym.envs.llvm.task import LlvmTask
from irgym.measure.machine import fingerprint
from irgym.search.budget import Budget
from irgym.search.choosing import chosen_search
from irgym.search.request import SearchRequest
from irgym.search.run import run_search


@dataclass(frozen=True)
class Sequences:
    """Find the list, or measure it."""

    dataset: str = "packages-small"
    """Data set of the programs."""
    search: str = "guided"
    """Search that finds candidates."""
    seconds: float = 8.0
    """Time of each search."""
    searched: int = 200
    """Training programs that are searched."""
    judged: int = 300
    """Training programs on which candidates are tried."""
    length: int = 16
    """Length of the list."""
    write: bool = False
    """Write the list into the package."""

    def run(self) -> None:
        """Find the list and print what it comes to on the test programs."""
        data = LLVM.dataset(self.dataset)
        found = self._found(spread(data.train, self.searched))
        print(
            f"{len(found)} distinct sequences of {self.searched} programs; {fingerprint().text()}", flush=True
        )
        gains = gains_of([LLVM.task(uri) for uri in spread(data.train, self.judged)], found)
        chosen = cover(gains, self.length)
        space = LlvmTask.space
        for count, number in enumerate(chosen, 1):
            mean = gains[chosen[:count]].max(axis=0).mean()
            print(f"{count:2} {math.exp(mean):.4f} {found[number].text(space)}")
        if self.write:
            texts = [found[number].text(space) for number in chosen]
            FILE.write_text(json.dumps(texts, indent=1) + "\n")
        tests = [LLVM.task(uri) for uri in data.test]
        tested = gains_of(tests, [found[number] for number in chosen]).max(axis=0)
        ratios = np.exp(tested)
        print(
            f"{len(tests)} test programs, -Oz's instructions over those of the list, -Oz included: geometric "
            f"mean {geometric_mean(ratios):.4f}, least {ratios.min():.3f}, greatest {ratios.max():.3f}"
        )

    def _found(self, uris: Sequence[str]) -> list[Schedule]:
        """Return the best schedules of searches, each once."""
        found: dict[Schedule, None] = {}
        with LLVM.bench() as bench:
            for place, uri in enumerate(uris):
                task = LLVM.task(uri)
                search = chosen_search(LLVM, task, self.search, None)
                known = [task.pipeline("oz")]
                request = SearchRequest(Budget(None, self.seconds), place, search.policy, known=known)
                result = run_search(search.strategy, task, bench.evaluator, request)
                found[result.finalists[0].schedule] = None
                print(f"{uri} {result.first_cost:g} -> {result.cost:g}", flush=True)
        return list(found)


def gains_of(tasks: Sequence[Any], schedules: Sequence[Schedule]) -> NDArray[np.float64]:
    """Return log(-Oz's instructions / those of each sequence), at least 0, shape [sequences, tasks]."""
    gains = np.zeros((len(schedules), len(tasks)))
    started = time.monotonic()
    for place, task in enumerate(tasks):
        oz = task.modules.reference.total
        for number, state in enumerate(prefixes(task, schedules)):
            gains[number, place] = max(0.0, math.log(max(oz, 1) / max(state.node.total, 1)))
        if place % 20 == 19:
            print(f"{place + 1} programs in {time.monotonic() - started:.0f} s", flush=True)
    return gains


def cover(gains: NDArray[np.float64], length: int) -> list[int]:
    """Return the rows whose greatest gains have the largest mean, chosen one after the other."""
    chosen: list[int] = []
    best = np.zeros(gains.shape[1])
    for _ in range(min(length, len(gains))):
        means = np.maximum(gains, best).mean(axis=1)
        number = int(means.argmax())
        if means[number] <= best.mean():
            break
        chosen.append(number)
        best = np.maximum(best, gains[number])
    return chosen


if __name__ == "__main__":
    tyro.cli(Sequences).run()
