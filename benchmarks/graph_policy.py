"""A policy on networks that it has not seen: one greedy episode, and searches of equal time.

An episode starts from the model as written. What it ends in runs with ONNX Runtime's own optimiser off, and
is timed in turn with ONNX Runtime at ALL. Searches get as many seconds, and `tune`'s choice among what they
found: ALL itself where nothing is faster.

    python benchmarks/graph_policy.py --repeats 3
    python benchmarks/graph_policy.py --seconds 10 --repeats 3
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tyro

import irgym
from irgym.comparing.results import Comparison
from irgym.core.environment import spread
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs.families import KINDS
from irgym.judging.statistics import geometric_interval
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


def policy_table(found: Mapping[str, float]) -> None:
    """Print the geometric mean of each kind of network."""
    for kind, bar in BARS.items():
        own = [ratio for program, ratio in found.items() if KINDS[GRAPH.family(program)] == kind]
        if own:
            mean = geometric_interval(own)
            said = "met" if mean.mean >= bar else "NOT met"
            print(
                f"{kind}: {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}] of {len(own)}; bar {bar}: {said}"
            )


def search_table(of: Mapping[str, Mapping[str, float]], guided: str) -> None:
    """Print how much faster the guided search's results are than each other one's."""
    for search in (method for method in of if method != guided):
        both = [of[guided][one] / of[search][one] for one in of[guided] if one in of[search]]
        mean = geometric_interval(both)
        print(
            f"guided over {search}: {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]: {mean.verdict.value}"
        )


def main(options: Options) -> None:
    """Print the episode's speeds, or those of searches: each network when it is done, then the means."""
    print(fingerprint().text())
    programs = options.programs or tuple(spread(GRAPH.dataset(options.dataset).test, options.limit))
    episode, guided = f"raw:{options.policy}", f"guided:{options.policy}"
    methods = (episode,) if options.seconds is None else (guided, *options.searches)
    print(f"{'of the speed of ALL':45s} " + " ".join(f"{one.partition(':')[0]:>12s}" for one in methods))
    of: dict[str, dict[str, float]] = {method: {} for method in methods}
    for program in programs:
        runs = [
            irgym.compare(
                "graph",
                (program,),
                methods=methods,
                seconds=options.seconds,
                seed=seed,
                measuring=irgym.Measuring(backend=f"ort:{options.threads}"),
            )
            for seed in range(options.repeats)
        ]
        for method in methods:
            of[method].update(ratios(runs, method))
        row = " ".join(f"{found.get(program, 0.0):12.3f}" for found in of.values())
        actions = [one.schedule.count("@") for one in runs[-1].rows if one.method == episode]
        print(f"{program:45s} {row}" + "".join(f", {count} actions" for count in actions), flush=True)
    if options.seconds is None:
        policy_table(of[episode])
    else:
        search_table(of, guided)


if __name__ == "__main__":
    main(tyro.cli(Options))
