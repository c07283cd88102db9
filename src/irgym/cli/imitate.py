"""`irgym imitate`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from irgym.cli.hyperparameters import configured
from irgym.cli.options import (
    budget,
    check_count,
    check_file,
    check_limit,
    check_most,
    check_objective,
    check_seed,
    dataset_named,
    task_of,
)
from irgym.cli.output import console, require_torch, write_json
from irgym.core import capabilities
from irgym.core.environment import ENVIRONMENTS, Bench
from irgym.core.errors import IrgymError
from irgym.core.task import targets_of
from irgym.evaluate.targets import peak_of
from irgym.search import SEARCHES

if TYPE_CHECKING:
    from irgym.agents.imitation import Demonstration


@dataclass(frozen=True)
class Imitate:
    """Train a policy to repeat what a search finds; `train --set start=FILE` goes on from it.

    More rounds are expert iteration (Anthony et al., arXiv 1705.08439): the policy leads the search whose
    finds it learns next.
    """

    environment: Positional[str]
    """Name of the environment."""
    policy: Annotated[Path, tyro.conf.arg(name="out")]
    """File to write the policy to."""
    dataset: str | None = None
    """Name of a data set; by default the environment's own."""
    search: str = "evolutionary"
    """Search that finds the schedules of the first round; with `start=FILE` that policy leads it instead."""
    searched: int = 24
    """Number of training programs to search in each round."""
    seconds: float | None = None
    """Time for each search; 10 where neither this nor the number of evaluations is given."""
    evaluations: int | None = None
    """Number of distinct candidates of each search; with this alone a run that was ended can be repeated, and
    the cost cache answers at once what it measured."""
    rounds: int = 1
    """Rounds of expert iteration: from the second on, the guided search, led by the policy of the round
    before, searches other programs."""
    recorded: bool = False
    """Show in the first round, too, the best schedules that the cost cache has of all training programs; then
    `--searched` may be 0."""
    programs: int = 400
    """Number of training programs to which the schedules of the first round are transferred; 0 for none."""
    seed: int = 0
    """Seed of all random choices."""
    objective: str | None = None
    """What is minimised, such as `time`; by default the environment's own objective."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    json: Path | None = None
    """Write the result as JSON to this file."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the cloning as name=value, such as epochs=100 or start=FILE."""

    def run(self) -> None:
        """Search, transfer, clone, write."""
        limits = budget(self.evaluations, self.seconds)
        if self.searched or not self.recorded:
            check_limit(self.searched)
        check_count(self.rounds, "rounds", "to learn from")
        if self.programs < 0:
            raise IrgymError(f"schedules cannot be transferred to {self.programs} programs: give 0 or more")
        check_most(self.programs, "programs")
        check_seed(self.seed)
        check_file(self.policy)
        check_file(self.json)
        require_torch("imitation")
        from irgym.agents.expert_iteration import Searches, expert_iteration
        from irgym.agents.imitation import ImitationConfig

        environment = ENVIRONMENTS.load(self.environment)
        check_objective(environment, self.objective)
        dataset = dataset_named(environment, self.dataset)
        config = configured(ImitationConfig, self.set, self.seed, "imitation")
        config.check()
        searches = Searches(
            strategy=SEARCHES.load(self.search)(),
            budget=limits,
            programs=self.searched,
            transferred=self.programs if self.searched else 0,
            recorded=self.recorded,
            seed=self.seed,
        )
        shown: Sequence[Demonstration] = ()
        out = console()
        started = time.perf_counter()
        with environment.bench(self.farm, self.backend) as bench, out.status("searching") as status:
            tasks = [
                task_of(environment, uri, self.backend, self.target, self.objective) for uri in dataset.train
            ]
            rounds = expert_iteration(config, searches, tasks, bench.evaluator, status.update)
            for number, last in enumerate(islice(rounds, self.rounds), start=1):
                shown = last.shown
                last.policy.environment = environment.name
                last.policy.targets = targets_of(tasks)
                last.policy.save(self.policy)
                if last.share is not None:
                    out.print(
                        f"round {number}: the policy alone reaches {last.share:.3f} of what its search finds",
                    )
            share = _peak_share(bench, shown)
        distinct = len({demo.schedule for demo in shown})
        at_peak = "" if share is None else f", at {share:.0%} of the peak on average"
        out.print(
            f"{len(shown)} programs, {distinct} schedules{at_peak}; {time.perf_counter() - started:.0f} s",
        )
        out.print(f"written: {self.policy}")
        write_json(
            self.json,
            {
                "policy": str(self.policy),
                "programs": len(shown),
                "schedules": distinct,
                "peak_share": share,
            },
        )


def _peak_share(bench: Bench, shown: "Sequence[Demonstration]") -> float | None:
    """Return the mean share of the machine's peak; None where no peak bounds the costs."""
    # Measured only where it is of use.
    if any(capabilities.ideal_cost(demo.task, 1.0) is None for demo in shown):
        return None
    peak = peak_of(bench, shown[0].task)
    return (
        None
        if peak is None
        else fmean((capabilities.ideal_cost(demo.task, peak) or 0.0) / demo.cost for demo in shown)
    )
