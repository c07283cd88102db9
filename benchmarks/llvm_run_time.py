"""Run times of whole programs after a search of LLVM's passes, against LLVM's -O3.

Each program is searched for some seconds under the objective `time`; the search begins with -O3. Of the best
finalists, the one that gains most in turn with -O3 is taken, and timed in turn with -O3 again: that ratio is
reported, beside that of -O3 with itself, the noise. Output and exit status are compared with the original's.

    python benchmarks/llvm_run_time.py --seconds 120
    python benchmarks/llvm_run_time.py --seconds 10 --limit 2 --search greedy
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

import tyro

from irgym.base.errors import IrgymError
from irgym.core.baseline import Versus
from irgym.core.bench import Bench
from irgym.core.dataset import spread
from irgym.core.datasets import dataset_named
from irgym.core.schedule import Candidate, candidate_of
from irgym.envs.llvm.environment import LLVM
from irgym.judging.statistics import geometric_interval, median_interval
from irgym.measure.machine import fingerprint, load
from irgym.search.budget import Budget
from irgym.search.choosing import chosen_search
from irgym.search.request import SearchRequest
from irgym.search.run import run_search

TIMEOUT_S = 600.0


@dataclass(frozen=True)
class RunTimes:
    """Search programs for time, and time the results in turn with -O3."""

    seconds: float = 120.0
    """Time of each search."""
    search: str = "guided"
    """Search: guided by the default policy, greedy, evolutionary, ..."""
    limit: int | None = None
    """Number of programs, spread over the data set; all by default."""
    dataset: str = "programs"
    """Data set of the programs, such as a folder of yours."""
    finalists: int = 3
    """Finalists that are timed in turn with -O3."""
    rounds: int = 15
    """Rounds of a comparison."""
    seed: int = 0
    """Seed of the searches."""

    def run(self) -> None:
        """Print a row for each program, and the means."""
        print(f"{fingerprint().text()}; {load(1.0).text()}; {self.search}, {self.seconds:g} s a program")
        print(
            "| program | original | -O3 | ours | -O3 / ours | interval | -O3 / -O3 | candidates | schedule |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        rows: list[tuple[Versus, Versus]] = []
        with LLVM.bench() as bench:
            for uri in spread(dataset_named(LLVM, self.dataset).all, self.limit):
                try:
                    rows.append(self._row(bench, uri))
                except IrgymError as error:
                    print(f"| {uri} | failed: {error} | | | | | | | |", flush=True)
        for name, found in (
            ("-O3 / ours", [row[0] for row in rows]),
            ("-O3 / -O3", [row[1] for row in rows]),
        ):
            ratios = [versus.ratio for versus in found]
            if len(ratios) > 1:
                interval = geometric_interval(ratios)
                print(
                    f"\n{name} on {len(ratios)} programs: geometric mean {geometric_mean(ratios):.4f} "
                    f"[{interval.low:.4f}, {interval.high:.4f}], {min(ratios):.3f} to {max(ratios):.3f}"
                )
        print(f"\n{load(1.0).text()}; {time.strftime('%Y-%m-%d')}")

    def _row(self, bench: Bench, uri: str) -> tuple[Versus, Versus]:
        """Return the timings in turn with -O3 of the best program found, and of -O3 itself."""
        task = LLVM.task(uri, objective="time")
        o3 = candidate_of(task, task.pipeline("o3"))
        chosen = chosen_search(LLVM, task, self.search, None)
        request = SearchRequest(
            Budget(None, self.seconds), seed=self.seed, policy=chosen.policy, known=[o3.schedule]
        )
        found = run_search(chosen.strategy, task, bench.evaluator, request)
        best = self._best(bench, task, o3, found.finalists[: self.finalists])
        validation = bench.call(task.validation(best.state, 2, self.seed), TIMEOUT_S)
        if not validation.ok:
            raise IrgymError(f"{best.schedule.text(task.space)} is wrong: {validation.detail}")
        versus, noise = (self._versus(bench, task, candidate) for candidate in (best, o3))
        low, high = median_interval(versus.ratios)
        print(
            f"| {uri.rpartition('/')[2]} "
            f"| {found.first_cost / 1e6:.0f} ms | {versus.baseline_ns / 1e6:.0f} ms "
            f"| {versus.ours_ns / 1e6:.0f} ms | {versus.ratio:.3f} | {low:.3f} to {high:.3f} "
            f"| {noise.ratio:.3f} | {found.evaluations} | `{best.schedule.text(task.space)}` |",
            flush=True,
        )
        return versus, noise

    def _best(self, bench: Bench, task: Any, o3: Candidate, found: Sequence[Candidate]) -> Candidate:
        """Return the candidate that gains most on -O3 in turn, or -O3; those that fail are left out."""
        gains = {o3: 1.0}
        for candidate in found:
            if task.key(candidate.state) == task.key(o3.state):
                continue
            try:
                gains[candidate] = self._versus(bench, task, candidate).ratio
            except IrgymError as error:
                print(f"{candidate.schedule.text(task.space)} is left out: {error}", flush=True)
        return max(gains, key=gains.__getitem__)

    def _versus(self, bench: Bench, task: Any, candidate: Candidate) -> Versus:
        return bench.call(task.baseline_call("o3", candidate.state, self.rounds), TIMEOUT_S)


if __name__ == "__main__":
    tyro.cli(RunTimes).run()
