"""Expert iteration: a policy imitates the results of searches, and guides the next searches.

Anthony et al., arXiv 1705.08439.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np

from irgym.agents.hyperparameters import Count, CountOrNone, Hyperparameters, Seed
from irgym.agents.imitation.cloning import ImitationConfig, actor_for, clone
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.imitation.noise import noisy
from irgym.base.errors import IrgymError, ScheduleError
from irgym.core import capabilities
from irgym.core.cost import CostHistory, Evaluator
from irgym.core.dataset import spread
from irgym.core.schedule import Candidate, Schedule, candidate_of, states_along
from irgym.core.task import Task
from irgym.cost_model.recorded import records_by_program
from irgym.networks.policy import TorchPolicy
from irgym.policies.policy import Policy
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.rollouts import outcome, rollout
from irgym.search.run import run_search
from irgym.search.strategies.guided import Guided
from irgym.search.strategy import Strategy

Report = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The cheapest known schedules of a program.

    Attributes:
        task: The program.
        costs: Cost of each schedule, ascending.
    """

    task: Task[Any]
    costs: Mapping[Schedule, float]

    def joined(self, other: "Found | None") -> "Found":
        """Return the cheapest of these and other schedules of the same program."""
        return self if other is None else found(self.task, {**other.costs, **self.costs})

    def likeliest(self, policy: TorchPolicy | None, alike: float) -> Demonstration:
        """Return the schedule to imitate: among those of about the least cost, the policy's likeliest.

        Many schedules are equally good. From changing demonstrations a policy learns a mean of them, which
        may be none of them; so each round shows what the previous policy prefers. Without a policy, the
        shortest schedule is taken.

        Args:
            policy: The policy.
            alike: Factor above the least cost up to which costs count as equally good, if they are measured.
        """
        exact = self.task.objective.exact
        limit = min(self.costs.values()) * (1.0 if exact else alike)
        good = [schedule for schedule, cost in self.costs.items() if cost <= limit]
        if policy is None:
            chosen = min(good, key=len)
        else:
            chosen = max(good, key=lambda schedule: _log_likelihood(policy, self.task, schedule))
        return Demonstration(self.task, chosen, self.costs[chosen])


def found(task: Task[Any], costs: Mapping[Schedule, float]) -> Found:
    """Return the cheapest `KEPT` of some schedules."""
    ranked = sorted(costs.items(), key=lambda pair: pair[1])
    return Found(task, dict(ranked[:KEPT]))


KEPT = 24
"""Number of schedules to keep for a program."""


def search_programs(
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    strategy: Strategy,
    budget: Budget,
    seed: int,
    policy: TorchPolicy | None = None,
    progress: Report | None = None,
) -> list[Found]:
    """Search each program; leave out those without any schedule that runs."""
    searched: list[Found] = []
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"searching {task.uri} ({place + 1} of {len(tasks)})")
        result = run_search(strategy, task, evaluator, SearchRequest(budget, seed + place, policy))
        if result.finalists:
            searched.append(_costs(task, result.finalists, evaluator))
    return searched


def _costs(task: Task[Any], candidates: Sequence[Candidate], evaluator: Evaluator) -> Found:
    measurements = evaluator.evaluate([task.job(candidate.state) for candidate in candidates])
    return found(
        task,
        {candidate.schedule: new.cost for candidate, new in zip(candidates, measurements, strict=True)},
    )


def recalled(tasks: Sequence[Task[Any]], evaluator: Evaluator, progress: Report | None = None) -> list[Found]:
    """Return each program's cheapest schedules in the cost cache, of the current version and toolchain.

    Raises:
        IrgymError: Nothing is recorded of these programs, or their records cannot be read back.
        StorageError: The cache cannot be read.
    """
    history = capabilities.ask(evaluator, CostHistory)
    of_target = {} if history is None else {task.target_text: task for task in tasks}
    records = {
        target: records_by_program(history, task, None)
        for target, task in of_target.items()
        if history is not None
    }
    known: list[Found] = []
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"recalling {task.uri} ({place + 1} of {len(tasks)})")
        toolchain = task.job(task.initial()).toolchain
        own = [
            record
            for record in records.get(task.target_text, {}).get(task.uri, ())
            if record.toolchain == toolchain and record.measurement.ok
        ]
        costs: dict[Schedule, float] = {}
        for record in sorted(own, key=lambda record: record.measurement.cost):
            actions = capabilities.recorded_actions(task, record.schedule)
            if actions is not None:
                costs.setdefault(Schedule(tuple(actions)), record.measurement.cost)
            if len(costs) == KEPT:
                break
        if costs:
            known.append(found(task, costs))
    if not known:
        raise IrgymError(
            "the cost cache has no schedules of these programs that can be read back: leave out --recorded"
        )
    return known


def taught(
    tasks: Sequence[Task[Any]],
    teachers: Sequence[Policy],
    evaluator: Evaluator,
    progress: Report | None = None,
) -> list[Found]:
    """Return the costs of what policies do on programs; programs on which nothing runs are left out.

    One policy that repeats the best of several is a distillation of them (Rusu et al., arXiv 1511.06295).
    """
    known: list[Found] = []
    for place, task in enumerate(tasks):
        if progress is not None:
            progress(f"asking {len(teachers)} policies on {task.uri} ({place + 1} of {len(tasks)})")
        paths = [path for teacher in teachers for path in rollout(task, teacher, 1, None)]
        ends = {node.schedule: node for node in (outcome(task, path) for path in paths)}
        shown = _costs(task, list(ends.values()), evaluator)
        if any(map(math.isfinite, shown.costs.values())):
            known.append(shown)
    return known


def greedy_share(policy: TorchPolicy, searched: Sequence[Found], evaluator: Evaluator) -> float:
    """Return the geometric mean of the least cost known over that of the policy's own schedule.

    A schedule that fails counts as the cost of the original program; programs whose original fails too are
    left out.

    Args:
        policy: Acts greedily.
        searched: At least one.
        evaluator: Measures.
    """
    shares: list[float] = []
    for program in searched:
        [path] = rollout(program.task, policy, 1, None)
        jobs = [program.task.job(node.state) for node in (outcome(program.task, path), path[0])]
        greedy, original = (measurement.cost for measurement in evaluator.evaluate(jobs))
        reached = greedy if math.isfinite(greedy) else original
        if math.isfinite(reached):
            shares.append(math.log(min(program.costs.values()) / reached))
    return math.exp(float(np.mean(shares))) if shares else 0.0


def _log_likelihood(policy: TorchPolicy, task: Task[Any], schedule: Schedule) -> float:
    """Return the log-probability of a schedule under a policy."""
    states = states_along(task, schedule)[:-1]
    if not states:
        return 0.0
    observations = [task.observe(state, policy.observation) for state in states]
    masks = [task.mask(state) for state in states]
    return float(policy.log_probability(observations, masks, schedule.actions).sum())


def transfer(
    searched: Sequence[Found],
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    keep: int = 3,
    near: int | None = None,
    places: Mapping[tuple[str, str], int] | None = None,
    progress: Report | None = None,
) -> list[Found]:
    """Try the `keep` cheapest schedules of searched programs on other programs; return their costs.

    A schedule of one program often suits others. Trying the schedules of similar programs costs far less than
    a search, and few distinct schedules are easier to learn than many. Programs on which no schedule runs are
    left out.

    Args:
        searched: Programs with schedules.
        tasks: Programs to try them on.
        evaluator: Evaluates costs.
        keep: Schedules of each searched program.
        near: Number of searched programs to take schedules from, the nearest in the data set; by default all.
        places: Place of each program in the data set, by `_name`: needed for `near`.
        progress: Called with a line of text about the current work.

    Raises:
        IrgymError: No schedule runs on any program.
    """
    transferred: list[Found] = []
    for number, task in enumerate(tasks):
        others = searched
        if near is not None and places is not None:
            here = places[_name(task)]
            others = sorted(searched, key=lambda source: abs(places[_name(source.task)] - here))[:near]
        schedules = list(
            dict.fromkeys(schedule for source in others for schedule in list(source.costs)[:keep])
        )
        if progress is not None:
            progress(f"transferring {len(schedules)} schedules to {task.uri} ({number + 1} of {len(tasks)})")
        moved = _costs(task, list(_fitting(task, schedules)), evaluator)
        if any(map(math.isfinite, moved.costs.values())):
            transferred.append(moved)
    if not transferred:
        raise IrgymError("no schedule runs on any of the programs: search for longer, or other programs")
    return transferred


def _fitting(task: Task[Any], schedules: Iterable[Schedule]) -> Iterator[Candidate]:
    """Yield the candidates of the schedules that apply and leave room below the horizon."""
    for schedule in schedules:
        if len(schedule) < task.horizon:
            with suppress(ScheduleError):
                yield candidate_of(task, schedule)


@dataclass(frozen=True)
class Searches(Hyperparameters):
    """Options of the searches of each round.

    Attributes:
        strategy: The search of the first round without a policy; all other rounds use a guided search.
        budget: Budget of each search.
        programs: Programs to search in a round, evenly spread; each round takes different ones. 0 for
            recorded and taught schedules alone.
        transferred: Number of programs to which the first round's schedules are transferred; 0 for none.
        near: Searched programs that each of those takes schedules from: the nearest in the data set.
        recorded: Whether the first round also shows schedules from the cost cache, of all programs.
        seed: Seed of the searches.
    """

    name: ClassVar[str] = "expert iteration"

    strategy: Strategy
    budget: Budget
    programs: CountOrNone
    transferred: CountOrNone = 0
    near: Count = 24
    recorded: bool = False
    seed: Seed = 0


@dataclass(frozen=True)
class Round:
    """Result of a round.

    Attributes:
        policy: The policy cloned from the results of all rounds so far.
        shown: The demonstrations.
        share: See `greedy_share`, of the policy that guided this round's searches; None without such a
            policy, or without results.
    """

    policy: TorchPolicy
    shown: Sequence[Demonstration]
    share: float | None


def expert_iteration(
    config: ImitationConfig,
    searches: Searches,
    tasks: Sequence[Task[Any]],
    evaluator: Evaluator,
    progress: Report | None = None,
    teachers: Sequence[Policy] = (),
) -> Iterator[Round]:
    """Yield rounds of searching and cloning, without end.

    If `config.start` names a policy, it guides the searches of the first round. That round also shows the
    best of what the teachers do on all programs.

    Raises:
        IrgymError: No search found a schedule that runs, or the configuration is invalid.
    """
    known: dict[tuple[str, str], Found] = {}
    first = TorchPolicy(
        actor_for(config, tasks[0])
    )  # raises before any search if the configuration is invalid
    policy = first if config.start else None
    for number in count():
        chosen = rotated(tasks, number, searches.programs)
        strategy = searches.strategy if policy is None else Guided()
        seed = searches.seed + number * len(tasks)
        if number == 0 and searches.recorded:
            # Before searching, since it raises if there are none.
            known |= {_name(program.task): program for program in recalled(tasks, evaluator, progress)}
        lessons = taught(tasks, teachers, evaluator, progress) if number == 0 and teachers else []
        searched = search_programs(chosen, evaluator, strategy, searches.budget, seed, policy, progress)
        if not (searched or lessons or known):
            raise IrgymError("no search found a schedule that runs: search for longer, or other programs")
        share = greedy_share(policy, searched, evaluator) if policy is not None and searched else None
        shared: list[Found] = []
        if number == 0 and searches.transferred:
            shared = transfer(
                searched,
                spread(tasks, searches.transferred),
                evaluator,
                near=searches.near,
                places={_name(task): place for place, task in enumerate(tasks)},
                progress=progress,
            )
        for program in (*lessons, *searched, *shared):
            known[_name(program.task)] = program.joined(known.get(_name(program.task)))
        if progress is not None:
            progress(f"cloning {len(known)} demonstrations")
        policy, shown = choose_and_clone(config, list(known.values()), policy)
        yield Round(policy, shown, share)


def _name(task: Task[Any]) -> tuple[str, str]:
    """Return the key of a program: the same program may be compiled for several targets."""
    return task.uri, task.target_text


def choose_and_clone(
    config: ImitationConfig, known: Sequence[Found], policy: TorchPolicy | None
) -> tuple[TorchPolicy, list[Demonstration]]:
    """Choose demonstrations and clone them; return both. See `ImitationConfig.selections`.

    Args:
        config: Configuration of the cloning.
        known: The known schedules of each program.
        policy: The policy of the previous round.
    """
    shown = [program.likeliest(policy, config.alike) for program in known]
    for _ in range(1, config.selections):
        # A clone prefers the schedules that it was cloned from: each half is judged by a clone of the other.
        halves = [shown[place::2] for place in range(min(2, len(shown)))]
        judges = [clone(config, half) for half in reversed(halves)]
        shown = [
            program.likeliest(judges[place % len(judges)], config.alike)
            for place, program in enumerate(known)
        ]
    rng = np.random.default_rng(config.seed)
    copies = [noisy(demonstration, rng) for demonstration in shown for _ in range(config.noisy)]
    return clone(config, [*shown, *(copy for copy in copies if copy is not None)]), shown


def rotated(tasks: Sequence[Task[Any]], number: int, programs: int) -> list[Task[Any]]:
    """Return the programs of a round: evenly spread, and shifted each round."""
    programs = min(programs, len(tasks))
    shift = number * GOLDEN % 1.0
    return [tasks[int((place + shift) * len(tasks) / programs)] for place in range(programs)]


GOLDEN = (5**0.5 - 1) / 2
"""Golden ratio: any number of its multiples, modulo 1, fills the unit interval evenly."""
