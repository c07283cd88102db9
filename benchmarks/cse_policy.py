"""A policy on functions of unseen packages: its share of the best choices' gain.

Gains are logarithms of scores relative to sharing all. The share is the sum of a method's gains over the sum
of the best choices' gains, for the functions small enough to score all choices.

    python benchmarks/cse_policy.py
    python benchmarks/cse_policy.py --target i686 --policy default
"""

import math
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import tyro

from irgym.agents.imitation.outcomes import all_outcomes
from irgym.base.errors import ProgramError
from irgym.core.catalogue import tasks_of
from irgym.core.cost import Evaluator
from irgym.core.dataset import spread
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import PIPELINES, CseTask
from irgym.judging.statistics import geometric_interval
from irgym.measure.machine import fingerprint
from irgym.policies.policy import Policy
from irgym.search.budget import Budget
from irgym.search.policies import load_policy
from irgym.search.request import SearchRequest
from irgym.search.rollouts import outcome, rollout
from irgym.search.run import run_search
from irgym.search.strategies.guided import Guided

BARS = {"policy": 0.60, "guided": 0.95}
"""Required shares of the best choices' gain: for a greedy episode, and for a guided search."""

EPISODE_MS = 5.0
"""Greatest duration of an episode, in milliseconds."""

GROUPS = ((3, 4), (5, 6), (7, 9), (10, 16), (17, 64))
"""Ranges of the number of candidates."""

RESAMPLES = 2000
"""Number of bootstrap resamples for the interval of a share."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    policy: str = "default"
    """A shipped policy, a run folder, or a file."""
    dataset: str = "packages"
    """Data set, of which the test split is used."""
    target: str = "x86-64"
    """Target of the code."""
    limit: int | None = None
    """Greatest number of functions, spread evenly over the split."""
    seconds: float = 1.0
    """Seconds of guided search per function; 0 for none."""
    choices: int = 512
    """Greatest number of choices of a function that counts for the shares."""
    seed: int = 0
    """Seed of the searches and of the interval."""


@dataclass(frozen=True)
class Function:
    """Results for a function.

    Attributes:
        uri: URI of the function.
        candidates: Number of candidates.
        scores: Score of each method's choice.
        best: Least score of all choices; None if there are too many.
        episode_ms: Milliseconds of the greedy episode, observations included.
    """

    uri: str
    candidates: int
    scores: Mapping[str, float]
    best: float | None
    episode_ms: float = field(compare=False)

    def gain(self, method: str) -> float:
        """Return a method's gain over sharing all."""
        return math.log(self.scores["all"] / self.scores[method])


def looked_at(task: CseTask, policy: Policy, evaluator: Evaluator, options: Options) -> Function:
    """Return the results for a function."""
    began = time.perf_counter()
    [path] = rollout(task, policy, 1, None)
    took = time.perf_counter() - began
    states = {
        "none": CseState(),
        **{name: replay(task, task.pipeline(name)) for name in PIPELINES},
        "policy": outcome(task, path).state,
    }
    costs = [
        measurement.cost for measurement in evaluator.evaluate([task.job(state) for state in states.values()])
    ]
    scores = dict(zip(states, costs, strict=True))
    if options.seconds:
        budget = Budget(seconds=options.seconds)
        scores["guided"] = run_search(
            Guided(), task, evaluator, SearchRequest(budget, options.seed, policy)
        ).cost
    [(_, known)] = all_outcomes([task], evaluator, 2 * options.choices)
    best = None if known is None else math.exp(known.least[0])
    return Function(task.uri, len(task.names), scores, best, 1e3 * took)


def left_out(uri: str, error: ProgramError) -> None:
    """Print why a function is skipped."""
    print(f"{uri}: left out: {error}")


def share(functions: Sequence[Function], method: str, seed: int) -> tuple[float, float, float]:
    """Return a method's share of the best choices' gain, and the ends of its interval (bootstrap, 95 %)."""
    own = np.array([function.gain(method) for function in functions])
    best = np.array([math.log(function.scores["all"] / (function.best or 1.0)) for function in functions])
    drawn = np.random.default_rng(seed).integers(len(functions), size=(RESAMPLES, len(functions)))
    low, high = np.quantile(own[drawn].sum(axis=1) / best[drawn].sum(axis=1), (0.025, 0.975))
    return float(own.sum() / best.sum()), float(low), float(high)


def tables(functions: Sequence[Function], methods: Sequence[str]) -> None:
    """Print geometric means of scores over sharing all, by number of candidates."""
    print(f"{'candidates':>12s}{'functions':>10s}" + "".join(f"{method:>28s}" for method in methods))
    for low, high in (*GROUPS, (0, 64)):
        some = [function for function in functions if low <= function.candidates <= high]
        if not some:
            continue
        cells: list[str] = []
        for method in methods:
            mean = geometric_interval([function.scores[method] / function.scores["all"] for function in some])
            signs = Counter(np.sign(round(function.gain(method), 9)) for function in some)
            cells.append(f"{mean.mean:10.4f} ({signs[1]:3d}/{signs[-1]:3d}/{signs[0]:3d})")
        name = f"{low}-{high}" if low else "all"
        print(f"{name:>12s}{len(some):10d}" + "".join(f"{cell:>28s}" for cell in cells))
    print("(better/worse/same than sharing all)")


def main(options: Options) -> None:
    """Print the tables, the shares, and the duration of an episode."""
    print(fingerprint().text())
    torch.set_num_threads(1)
    uris = spread(CSE.dataset(options.dataset).test, options.limit)
    functions: list[Function] = []
    policy: Policy | None = None
    with CSE.bench() as bench:
        tasks = tasks_of(uris, lambda uri: CSE.task(uri, target=options.target), left_out)
        for task in (task for task in tasks if task.names):
            policy = policy or load_policy(CSE, options.policy, task)
            functions.append(looked_at(task, policy, bench.evaluator, options))
    methods = [
        "none",
        *[name for name in PIPELINES if name != "all"],
        "policy",
        *(["guided"] if options.seconds else []),
    ]
    tables(functions, methods)
    known = [function for function in functions if function.best is not None]
    gain = geometric_interval([(function.best or 1.0) / function.scores["all"] for function in known])
    print(f"best over all: {gain.mean:.4f} [{gain.low:.4f}, {gain.high:.4f}] of {gain.n} functions")
    for method in methods:
        middle, low, high = share(known, method, options.seed)
        bar = BARS.get(method)
        said = f"; bar {bar:.0%}: {'met' if middle >= bar else 'NOT met'}" if bar else ""
        print(f"{method}: {middle:.1%} [{low:.1%}, {high:.1%}] of the best choices' gain{said}")
    times = [function.episode_ms for function in functions[1:]]  # the first one loads what all need
    mean, median = statistics.fmean(times), statistics.median(times)
    verdict = "met" if mean < EPISODE_MS else "NOT met"
    print(
        f"an episode, one thread: mean {mean:.1f} ms, median {median:.1f} ms; "
        f"bar {EPISODE_MS:.0f} ms: {verdict}"
    )
    lost = sorted(known, key=lambda function: math.log((function.best or 1.0) / function.scores["policy"]))
    for function in lost[:5]:
        print(
            f"  loses most: {function.uri}: all {function.scores['all']:.2f}, "
            f"policy {function.scores['policy']:.2f}, best {function.best:.2f}"
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
