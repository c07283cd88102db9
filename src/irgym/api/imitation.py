"""A policy that repeats what searches find, for training to start from: what `irgym imitate` calls."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from irgym.api.checks import (
    budget,
    check_count,
    check_file,
    check_options,
    check_whole,
    path_of,
    targets_named,
)
from irgym.api.hyperparameters import configured
from irgym.api.programs import environment_named
from irgym.base.errors import IrgymError, ProgramError
from irgym.core.capabilities import ideal_cost
from irgym.core.catalogue import check_objective, dataset_named, task_of, tasks_of
from irgym.core.environment import Bench, Environment, spread
from irgym.core.task import Task, targets_of
from irgym.judging.targets import peak_of
from irgym.search import SEARCHES
from irgym.search.policies import require_torch

if TYPE_CHECKING:
    from irgym.agents.imitation.demonstrations import Demonstration
    from irgym.agents.imitation.expert_iteration import Searches
    from irgym.agents.imitation.outcomes import Outcomes
    from irgym.networks.policy import TorchPolicy


@dataclass(frozen=True)
class Imitation:
    """What a policy was shown.

    Attributes:
        policy: The policy's file.
        programs: Number of programs.
        schedules: Number of distinct schedules; of values, number of states.
        peak_share: Mean share of the machine's peak that these reach; None where no peak bounds the costs.
        seconds: Wall-clock time.
    """

    policy: Path
    programs: int
    schedules: int
    peak_share: float | None
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "policy": str(self.policy),
            "programs": self.programs,
            "schedules": self.schedules,
            "peak_share": self.peak_share,
        }


def imitate(
    environment: str,
    out: str | Path,
    *,
    dataset: str | None = None,
    search: str = "evolutionary",
    searched: int = 24,
    seconds: float | None = None,
    evaluations: int | None = None,
    rounds: int = 1,
    recorded: bool = False,
    programs: int = 400,
    values: bool = False,
    seed: int = 0,
    objective: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    note: Callable[[str], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Imitation:
    """Train a policy to repeat what a search finds; the hyper-parameter `start` of a training takes it.

    More rounds are expert iteration (Anthony et al., arXiv 1705.08439): the policy leads the search whose
    finds it learns next.

    Args:
        environment: Name of the environment.
        out: File to write the policy to, after each round.
        dataset: Name of a data set; by default the environment's own.
        search: Search of the first round; with the hyper-parameter `start` that policy leads it instead.
        searched: Number of training programs to search in each round.
        seconds: Time for each search; 10 where neither this nor the number of evaluations is given.
        evaluations: Number of distinct candidates of each search.
        rounds: Rounds of expert iteration.
        recorded: Show in the first round, too, the best schedules that the cost cache has.
        programs: Number of training programs to which schedules are transferred; 0 for none. With `values`,
            those that are learnt from, spread over all.
        values: Measure all that can be made of each program, instead of searching, and learn what each
            action is worth; for programs of which few things can be made.
        seed: Seed of all random choices.
        objective: What is minimised, such as `time`; by default the environment's own objective.
        backend: Back end; by default the preferred one that runs here.
        target: What code is made for, such as x86-64-v3 (AVX2); by default this machine. Several, separated
            by commas, are learnt together.
        farm: Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default one process here.
        hyperparameters: Of the cloning, by name, such as `{"epochs": 100}`.
        note: Told in a line how good the policy is after each round, from the second on.
        progress: Told in a line what is being done.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense, or nothing was found to show.
        StorageError: The file cannot be written.
        BackendError: torch is not installed.
    """
    targets = targets_named(target)
    check_options(seed=seed, dataset=dataset, farm=farm, objective=objective, backend=backend)
    file = path_of(out, "a policy")
    check_file(file)
    require_torch("imitation")
    found = environment_named(environment)
    check_objective(found, objective)
    uris = dataset_named(found, dataset).train
    plan = _Plan(found, uris, file, seed, objective, backend, targets, farm, hyperparameters, note, progress)
    if values:
        check_whole(programs, "programs", 1, "give the number of programs to learn from, 1 or more")
        return plan.learn_values(programs)
    limits = budget(evaluations, seconds)
    if searched or not recorded:
        check_options(limit=searched)
    check_count(rounds, "rounds", "to learn from")
    few = f"schedules cannot be transferred to {programs} programs: give 0 or more"
    check_whole(programs, "programs", 0, few)
    check_options(search=search)
    from irgym.agents.imitation.expert_iteration import Searches

    searches = Searches(
        strategy=SEARCHES.load(search)(),
        budget=limits,
        programs=searched,
        transferred=programs if searched else 0,
        recorded=recorded,
        seed=seed,
    )
    return plan.repeat(searches, rounds)


@dataclass(frozen=True)
class _Plan:
    """What is learnt from, and with what; see `imitate`."""

    environment: Environment
    uris: Sequence[str]
    file: Path
    seed: int
    objective: str | None
    backend: str | None
    targets: Sequence[str | None]
    farm: str | None
    hyperparameters: Mapping[str, Any] | None
    note: Callable[[str], None] | None
    progress: Callable[[str], None] | None

    def repeat(self, searches: "Searches", rounds: int) -> Imitation:
        """Learn what searches find."""
        from irgym.agents.imitation.cloning import ImitationConfig
        from irgym.agents.imitation.expert_iteration import expert_iteration

        config = configured(ImitationConfig, self.hyperparameters, self.seed, "imitation")
        config.check()
        shown: Sequence[Demonstration] = ()
        started = time.perf_counter()
        with self.environment.bench(self.farm, self.backend) as bench:
            tasks = [self._task(uri, target) for uri in self.uris for target in self.targets]
            finds = expert_iteration(config, searches, tasks, bench.evaluator, self.progress)
            for number, last in enumerate(islice(finds, rounds), start=1):
                shown = last.shown
                self._save(last.policy, tasks)
                if last.share is not None and self.note is not None:
                    self.note(
                        f"round {number}: the policy alone reaches {last.share:.3f} of what its search finds"
                    )
            share = _peak_share(bench, shown)
        distinct = len({demo.schedule for demo in shown})
        return Imitation(self.file, len(shown), distinct, share, time.perf_counter() - started)

    def learn_values(self, programs: int) -> Imitation:
        """Learn what actions are worth."""
        from irgym.agents.imitation.outcomes import all_outcomes
        from irgym.agents.imitation.values import ValuesConfig, learn_values

        config = configured(ValuesConfig, self.hyperparameters, self.seed, "values")
        config.check()
        started = time.perf_counter()
        known: list[Outcomes] = []
        refused: list[ProgramError] = []
        pairs = [(uri, target) for uri in spread(self.uris, programs) for target in self.targets]
        with self.environment.bench(self.farm, self.backend) as bench:
            tasks = tasks_of(pairs, lambda pair: self._task(*pair), lambda _, error: refused.append(error))
            for place, (task, outcomes) in enumerate(all_outcomes(tasks, bench.evaluator, config.most)):
                if self.progress is not None:
                    self.progress(
                        f"measuring all that can be made of {task.uri} ({place + 1} of {len(pairs)})"
                    )
                if outcomes is not None:
                    known.append(outcomes)
        if refused and self.note is not None:
            self.note(f"left out: {len(refused)} of {len(pairs)} programs, such as: {refused[0]}")
        if not known:
            raise IrgymError(
                f"none of {len(pairs)} programs has at most {config.most} states that can be measured: "
                "leave out --values, or set most to a greater number"
            )
        self._save(learn_values(config, known, self.progress), [one.task for one in known])
        states = sum(len(one.states) for one in known)
        return Imitation(self.file, len(known), states, None, time.perf_counter() - started)

    def _task(self, uri: str, target: str | None) -> Task[Any]:
        return task_of(self.environment, uri, self.backend, target, self.objective)

    def _save(self, policy: "TorchPolicy", tasks: Sequence[Task[Any]]) -> None:
        policy.environment = self.environment.name
        policy.targets = targets_of(tasks)
        policy.save(self.file)


def _peak_share(bench: Bench, shown: "Sequence[Demonstration]") -> float | None:
    """Return the mean share of the machine's peak; None where no peak bounds the costs."""
    # Measured only where it is of use.
    if any(ideal_cost(demo.task, 1.0) is None for demo in shown):
        return None
    of_target = {demo.task.target_text: demo.task for demo in shown}
    peaks = {target: peak_of(bench, task) or 0.0 for target, task in of_target.items()}
    ideals = [ideal_cost(demo.task, peaks[demo.task.target_text]) or 0.0 for demo in shown]
    return fmean(ideal / demo.cost for ideal, demo in zip(ideals, shown, strict=True))
