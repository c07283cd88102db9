"""A policy that repeats what searches find, for training to start from: what `irgym imitate` calls."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from irgym.api.checks import budget, check_file, check_options, path_of
from irgym.api.hyperparameters import by_name, configured
from irgym.api.programs import environment_named
from irgym.api.requests import Imitating, Measuring, checked
from irgym.base.errors import IrgymError, ProgramError
from irgym.core.bench import Bench
from irgym.core.capabilities import ideal_cost
from irgym.core.catalogue import check_objective, tasks_of
from irgym.core.dataset import spread
from irgym.core.datasets import dataset_named, left_out_text
from irgym.core.environment import Environment
from irgym.core.task import Task, targets_of
from irgym.judging.targets import peak_of
from irgym.search.naming import search_named
from irgym.search.policies import load_policy, require_torch

if TYPE_CHECKING:
    from irgym.agents.imitation.cloning import ImitationConfig
    from irgym.agents.imitation.demonstrations import Demonstration
    from irgym.agents.imitation.expert_iteration import Searches
    from irgym.agents.imitation.outcomes import Outcomes
    from irgym.agents.imitation.values import ValuesConfig
    from irgym.networks.policy import TorchPolicy

C = TypeVar("C", bound="ImitationConfig | ValuesConfig")


@dataclass(frozen=True)
class Imitation:
    """Demonstrations that a policy learned from.

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
    seconds: float | None = None,
    seed: int = 0,
    imitating: Imitating = Imitating(),
    measuring: Measuring = Measuring(),
    note: Callable[[str], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Imitation:
    """Train a policy to repeat what a search finds; the hyper-parameter `start` of a training takes it.

    More rounds are expert iteration (Anthony et al., arXiv 1705.08439): the policy leads the next search, and
    then learns from its finds.

    Args:
        environment: Name of the environment.
        out: File to write the policy to, after each round.
        seconds: Time for each search; 10 where neither this nor the number of evaluations is given.
        seed: Seed of all random choices.
        imitating: Data set, searches and cloning.
        measuring: Objective, back end, targets and farm; several targets are learnt together.
        note: Called with a line that says where the policy learns, and from the second round on with one on
            its quality after each round.
        progress: Called with a line of text when something new begins.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense, or nothing was found to show.
        StorageError: The file cannot be written.
        BackendError: torch is not installed.
    """
    check_options(seed=seed)
    if imitating.values and imitating.teachers:
        raise IrgymError("values are learnt from all schedules, without teachers: leave out one of the two")
    limits = budget(checked(imitating, Imitating).evaluations, seconds)
    file = path_of(out, "a policy")
    check_file(file)
    require_torch("imitation")
    found = environment_named(environment)
    check_objective(found, checked(measuring, Measuring).objective)
    dataset = dataset_named(found, imitating.dataset, imitating.holdout)
    if note is not None and dataset.left_out:
        note(left_out_text(dataset))
    uris = dataset.split("train")
    settings = dict(by_name(imitating.hyperparameters, "values" if imitating.values else "imitation"))
    if imitating.device is not None:
        settings["device"] = imitating.device
    plan = _Plan(found, measuring, uris, file, seed, settings, note, progress)
    if imitating.values:
        return plan.learn_values(imitating.programs)
    from irgym.agents.imitation.expert_iteration import Searches

    searches = Searches(
        strategy=search_named(imitating.search).strategy,
        budget=limits,
        programs=imitating.searched,
        transferred=imitating.programs if imitating.searched else 0,
        recorded=imitating.recorded,
        seed=seed,
    )
    return plan.repeat(searches, imitating.rounds, imitating.teachers)


@dataclass(frozen=True)
class _Plan:
    """Programs to learn from, and where the policy goes; see `imitate`."""

    environment: Environment
    measuring: Measuring
    uris: Sequence[str]
    file: Path
    seed: int
    hyperparameters: Mapping[str, Any]
    note: Callable[[str], None] | None
    progress: Callable[[str], None] | None

    def repeat(self, searches: "Searches", rounds: int, teachers: Sequence[str]) -> Imitation:
        """Learn what searches find, and what policies of these names do.

        Raises:
            IrgymError: There is no policy of a name, or it does not suit the programs.
        """
        from irgym.agents.imitation.cloning import ImitationConfig
        from irgym.agents.imitation.expert_iteration import expert_iteration

        config = self._configured(ImitationConfig)
        shown: Sequence[Demonstration] = ()
        started = time.perf_counter()
        with self.measuring.bench(self.environment) as bench:
            tasks = [self._task(uri, target) for uri in self.uris for target in self.measuring.targets]
            policies = [load_policy(self.environment, name, tasks[0]) for name in teachers]
            finds = expert_iteration(config, searches, tasks, bench.evaluator, self.progress, policies)
            for number, last in enumerate(islice(finds, rounds), start=1):
                shown = last.shown
                self._save(last.policy, tasks)
                if number == 1:
                    self._note_device(config)
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

        config = self._configured(ValuesConfig)
        started = time.perf_counter()
        known: list[Outcomes] = []
        refused: list[ProgramError] = []
        pairs = [(uri, target) for uri in spread(self.uris, programs) for target in self.measuring.targets]
        with self.measuring.bench(self.environment) as bench:
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
        self._note_device(config)
        self._save(learn_values(config, known, self.progress), [outcomes.task for outcomes in known])
        states = sum(len(outcomes.states) for outcomes in known)
        return Imitation(self.file, len(known), states, None, time.perf_counter() - started)

    def _configured(self, kind: "type[C]") -> "C":
        """Return the checked hyper-parameters."""
        from irgym.agents.devices import device_named

        config: C = configured(kind, self.hyperparameters, self.seed, kind.name)
        config.check()
        device_named(config.device)  # refuses a device that is not here before searches take their time
        return config

    def _note_device(self, config: "ImitationConfig | ValuesConfig") -> None:
        from irgym.agents.devices import learning_text

        if self.note is not None:
            self.note(learning_text(config))

    def _task(self, uri: str, target: str | None) -> Task[Any]:
        return self.measuring.limited_for(self.environment, uri, target)

    def _save(self, policy: "TorchPolicy", tasks: Sequence[Task[Any]]) -> None:
        policy.environment = self.environment.name
        policy.targets = targets_of(tasks)
        policy.limits = self.measuring.limits
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
