"""`irgym imitate`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from irgym.cli.evaluate import spread
from irgym.cli.hyperparameters import configured
from irgym.cli.options import budget, check_file, check_limit, check_objective, check_seed, task_of
from irgym.cli.output import console, require_torch, write_json
from irgym.core.environment import ENVIRONMENTS, Bench
from irgym.core.errors import IrgymError
from irgym.search import SEARCHES
from irgym.search.guided import Guided

if TYPE_CHECKING:
    from irgym.agents.imitation import Demonstration, Found, ImitationConfig
    from irgym.core.task import Task
    from irgym.nets.policy import TorchPolicy
    from irgym.search.session import Budget, Strategy


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
    """Search that finds the schedules of the first round."""
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
    programs: int = 400
    """Number of training programs to which the schedules of the first round are transferred; 0 for none."""
    seed: int = 0
    """Seed of all random choices."""
    objective: str | None = None
    """What is minimised, such as `time`; by default the environment's own objective."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    json: Path | None = None
    """Write the result as JSON to this file."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the cloning as name=value, such as epochs=100."""

    def run(self) -> None:
        """Search, transfer, clone, write."""
        limits = budget(self.evaluations, self.seconds)
        check_limit(self.searched)
        check_limit(self.rounds)
        if self.programs < 0:
            raise IrgymError(f"schedules cannot be transferred to {self.programs} programs: give 0 or more")
        check_seed(self.seed)
        check_file(self.policy)
        require_torch("imitation")
        from irgym.agents.imitation import ImitationConfig

        environment = ENVIRONMENTS.load(self.environment)
        check_objective(environment, self.objective)
        dataset = environment.dataset(self.dataset or environment.default_dataset)
        config = configured(ImitationConfig, self.set, self.seed, "imitation")
        config.check()
        strategy = SEARCHES.load(self.search)()
        out = console()
        started = time.perf_counter()
        with environment.bench(self.farm, self.backend) as bench, out.status("searching") as status:
            tasks = [task_of(environment, uri, self.backend, self.objective) for uri in dataset.train]
            shown = self._iterate(config, tasks, bench, strategy, limits, status.update, environment.name)
            share = _peak_share(bench, shown)
        distinct = len({demo.schedule for demo in shown})
        at_peak = "" if share is None else f", at {share:.0%} of the peak on average"
        out.print(
            f"{len(shown)} programs, {distinct} schedules{at_peak}; {time.perf_counter() - started:.0f} s",
            highlight=False,
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

    def _iterate(
        self,
        config: "ImitationConfig",
        tasks: "Sequence[Task[Any]]",
        bench: Bench,
        strategy: "Strategy",
        limits: "Budget",
        progress: Callable[[str], None],
        environment: str,
    ) -> "list[Demonstration]":
        """Search, transfer, clone, as many rounds as wanted; write the policy after each of them."""
        from irgym.agents.imitation import clone, greedy_share, search_programs, transfer

        out = console()
        known: dict[str, Found] = {}
        policy: TorchPolicy | None = None
        shown: list[Demonstration] = []
        for number in range(self.rounds):
            chosen = rotated(tasks, number, self.searched)
            search = Guided() if number else strategy
            seed = self.seed + number * len(tasks)
            searched = search_programs(chosen, bench.evaluator, search, limits, seed, policy, progress)
            if number == 0 and self.programs:
                searched = transfer(
                    searched, spread(tasks, self.programs), bench.evaluator, progress=progress
                )
            if policy is not None:
                share = greedy_share(policy, searched, bench.evaluator)
                out.print(
                    f"round {number + 1}: the policy alone reaches {share:.3f} of what its search finds",
                    highlight=False,
                )
            known |= {one.task.uri: one.joined(known.get(one.task.uri)) for one in searched}
            shown = [one.likeliest(policy) for one in known.values()]
            progress(f"cloning {len(shown)} demonstrations")
            policy = clone(config, shown)
            policy.environment = environment
            policy.save(self.policy)
        return shown


def _peak_share(bench: Bench, shown: "Sequence[Demonstration]") -> float | None:
    """Return the mean share of the machine's peak; None where no peak bounds the costs."""
    # Measured only where it is of use.
    if any(demo.task.ideal_cost(1.0) is None for demo in shown):
        return None
    peak = bench.peak_gflops
    return fmean((demo.task.ideal_cost(peak) or 0.0) / demo.cost for demo in shown)


def rotated(tasks: "Sequence[Task[Any]]", number: int, count: int) -> "list[Task[Any]]":
    """Return the programs of a round: `count` of them, spread over all, others than in the round before."""
    step = max(1, len(tasks) // count)
    return spread([*tasks[number % step :], *tasks[: number % step]], count)
