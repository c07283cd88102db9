"""Steps a second of llvm: a pass, its digest and counts, and the observation of policies.

Random episodes of 45 legal steps on irgym's kernels and on modules of packages. `single` leaves out whole
pipelines and groups, as in CompilerGym, whose actions are single passes. New states: nothing is remembered;
known: the same episodes again. A fork costs nothing, as states are values. The start is the time of a new
process until the first observation.

    python benchmarks/llvm_throughput.py --repeats 3
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tyro

from irgym.core.actions import Action
from irgym.core.dataset import spread
from irgym.core.lockstep import Turn, play
from irgym.envs.llvm.actions import GROUPS, PIPELINES, STOP
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.envs.llvm.compiling.pool import Pool
from irgym.envs.llvm.environment import LLVM
from irgym.envs.llvm.task import LlvmTask
from irgym.measure.machine import fingerprint

COMPILERGYM = 1091
"""Steps a second of CompilerGym's LLVM environment, by its paper (arXiv 2109.08267)."""

WHOLE = len(PIPELINES) + len(GROUPS)
"""Number of actions, the first ones, that are more than single passes."""

START = """
import irgym, gymnasium
env = gymnasium.make("irgym/Llvm-v0", programs=["llvm://kernels/sorting.c"])
env.reset(seed=0)
"""


@dataclass(frozen=True)
class Throughput:
    """Measure steps a second."""

    seconds: float = 10.0
    """Seconds of each run."""
    repeats: int = 3
    """Runs of each kind; the median is reported."""
    lockstep: int = 64
    """Episodes side by side."""
    modules: int = 20
    """Modules of packages."""

    def run(self) -> None:
        """Measure and print."""
        print(fingerprint().text(), flush=True)
        kernels = LLVM.dataset("kernels")
        packages = LLVM.dataset("packages-small")
        sets = {
            "kernels": [*kernels.train, *kernels.test],
            "packages": list(spread(packages.test, self.modules)),
        }
        for name, uris in sets.items():
            like = [LLVM.task(uri) for uri in uris]
            sizes = statistics.median(task.initial().node.total for task in like)
            for least, what in ((WHOLE, "single"), (0, "all")):
                for workers in (1, 2):
                    rates = [self._rates(like, least, workers, seed) for seed in range(self.repeats)]
                    new, known = (statistics.median(kind) for kind in zip(*rates, strict=True))
                    print(
                        f"{name} ({len(uris)} modules, {sizes:.0f} instructions, median), {what} actions, "
                        f"{workers} processes: {new:.0f} steps/s ({new / COMPILERGYM:.1f} of CompilerGym's), "
                        f"known {known:.0f}",
                        flush=True,
                    )
        took: list[float] = []
        for _ in range(self.repeats):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", START], check=True)
            took.append(time.perf_counter() - started)
        print(f"start: {statistics.median(took):.2f} s")

    def _rates(self, like: Sequence[LlvmTask], least: int, workers: int, seed: int) -> tuple[float, float]:
        """Return steps a second with new states, and of the same episodes once they are known."""
        pool = Pool(like[0].modules.pool.backend, workers)
        try:
            tasks = [
                LlvmTask(ProgramModules(task.uri, task.modules.path, task.modules.content, pool))
                for task in like
            ]
            for task in tasks:
                task.modules.reference  # noqa: B018  the observation needs it
            started = time.perf_counter()
            rounds, steps = 0, 0
            while time.perf_counter() - started < self.seconds:
                steps += self._episodes(tasks, least, np.random.default_rng([seed, rounds]))
                rounds += 1
            new = steps / (time.perf_counter() - started)
            started = time.perf_counter()
            again = sum(
                self._episodes(tasks, least, np.random.default_rng([seed, number]))
                for number in range(rounds)
            )
            return new, again / (time.perf_counter() - started)
        finally:
            pool.close()

    def _episodes(self, tasks: Sequence[LlvmTask], least: int, rng: np.random.Generator) -> int:
        """Play episodes in lockstep; return their number of steps."""

        def choose(turn: Turn) -> list[Action]:
            turn.observations("")
            legal = [np.flatnonzero(mask.kinds[least:STOP]) for mask in turn.masks]
            return [Action(least + int(kinds[rng.integers(len(kinds))])) for kinds in legal]

        chosen = [tasks[int(rng.integers(len(tasks)))] for _ in range(self.lockstep)]
        return sum(len(episode.actions) for episode in play(chosen, choose))


if __name__ == "__main__":
    tyro.cli(Throughput).run()
