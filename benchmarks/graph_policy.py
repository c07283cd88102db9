"""A policy on networks that it has not seen: one greedy episode, and searches of equal time.

An episode starts from the model as written. What it ends in runs with ONNX Runtime's own optimiser off, and
is timed in turn with ONNX Runtime at ALL. Searches get as many seconds, and `tune`'s choice among what they
found: ALL itself where nothing is faster.

    python benchmarks/graph_policy.py --repeats 3
    python benchmarks/graph_policy.py --seconds 10 --repeats 3
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

import irgym
from irgym.core.environment import spread
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs.families import KINDS
from irgym.evaluation.results import Comparison
from irgym.evaluation.statistics import geometric_interval
from irgym.measure.machine import fingerprint

BARS = {"convolutional": 0.98, "transformer": 1.0}
"""What a greedy episode is to reach of ALL's speed, by kind of network: geometric means."""


@dataclass(frozen=True)
class Options:
    """What to compare."""

    policy: str = "default"
    """Policy that ships, or run folder."""
    dataset: str = "models"
    """The data set."""
    programs: tuple[str, ...] = ()
    """URIs; by default the data set's test split."""
    limit: int | None = None
    """Models at most, spread over the split."""
    seconds: float | None = None
    """Seconds of each search; without them, only the policy's episode is looked at."""
    searches: tuple[str, ...] = ("random", "greedy", "beam", "mcts", "evolutionary", "annealing")
    """Searches to set beside the guided one."""
    threads: int = 1
    """Threads of an operator."""
    repeats: int = 3
    """Runs, each with its own seed; the median of a program counts."""


def ratios(runs: Sequence[Comparison], method: str) -> dict[str, float]:
    """Return the median of a method's speed over ALL's for each program on which it never failed."""
    found: dict[str, list[float]] = {}
    for row in (row for run in runs for row in run.rows if row.method == method):
        if row.baseline_ratio is None or not row.validated:
            print(f"{row.program}: {method} failed: {row.detail}")
        found.setdefault(row.program, []).append(row.baseline_ratio or 0.0)
    return {program: statistics.median(each) for program, each in found.items() if min(each) > 0}


def policy_table(runs: Sequence[Comparison], method: str) -> None:
    """Print what each episode comes to, and the geometric mean of each kind of network."""
    found = ratios(runs, method)
    last = {row.program: row for row in runs[-1].rows}
    for program, ratio in found.items():
        actions = last[program].schedule.count("@")
        print(f"{program:45s} {ratio:6.3f} of ALL's speed, {actions} actions")
    for kind, bar in BARS.items():
        own = [ratio for program, ratio in found.items() if KINDS[GRAPH.family(program)] == kind]
        if own:
            mean = geometric_interval(own)
            said = "met" if mean.mean >= bar else "NOT met"
            print(
                f"{kind}: {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}] of {len(own)}; bar {bar}: {said}"
            )


def search_table(runs: Sequence[Comparison], guided: str, searches: Sequence[str]) -> None:
    """Print each search's speeds over ALL's, and how much faster the guided one's results are."""
    of = {method: ratios(runs, method) for method in (guided, *searches)}
    print(f"{'program':45s} " + " ".join(f"{method.partition(':')[0]:>12s}" for method in of))
    for program in of[guided]:
        print(f"{program:45s} " + " ".join(f"{each.get(program, 0.0):12.3f}" for each in of.values()))
    for search in searches:
        both = [of[guided][one] / of[search][one] for one in of[guided] if one in of[search]]
        mean = geometric_interval(both)
        print(
            f"guided over {search}: {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]: {mean.verdict.value}"
        )


def main(options: Options) -> None:
    """Print the episode's speeds, or those of searches."""
    print(fingerprint().text())
    programs = options.programs or tuple(spread(GRAPH.dataset(options.dataset).test, options.limit))
    episode, guided = f"policy:{options.policy}", f"guided:{options.policy}"
    methods = (episode,) if options.seconds is None else (guided, *options.searches)
    runs = [
        irgym.compare(
            "graph",
            programs,
            methods=methods,
            seconds=options.seconds,
            seed=seed,
            backend=f"ort:{options.threads}",
        )
        for seed in range(options.repeats)
    ]
    if options.seconds is None:
        policy_table(runs, episode)
    else:
        search_table(runs, guided, options.searches)


if __name__ == "__main__":
    main(tyro.cli(Options))
