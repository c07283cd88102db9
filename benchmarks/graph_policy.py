"""A policy on networks that it has not seen: one greedy episode, or searches of equal time.

An episode starts from the original model. Its result runs with ONNX Runtime's optimiser off, and is timed in
turn with ONNX Runtime at ALL. All searches get the same number of seconds, and their results are chosen as by
`tune`: ALL itself if nothing is faster.

    python benchmarks/graph_policy.py --repeats 3
    python benchmarks/graph_policy.py --seconds 10 --repeats 3
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tyro

import irgym
from irgym.comparing.results import Comparison
from irgym.core.dataset import spread
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs.families import KINDS
from irgym.judging.statistics import geometric_interval
from irgym.measure.machine import fingerprint

BARS = {"convolutional": 0.98, "transformer": 1.0}
"""Target of a greedy episode's speed relative to ALL, by kind of network: geometric means."""


@dataclass(frozen=True)
class Options:
    """Policy, networks and searches to compare."""

    policy: str = "default"
    """Policy that ships, or run folder."""
    dataset: str = "models"
    """The data set."""
    programs: tuple[str, ...] = ()
    """URIs; by default the data set's test split."""
    limit: int | None = None
    """Largest number of models, spread over the split."""
    seconds: float | None = None
    """Seconds of each search; by default only the policy's episode is run."""
    searches: tuple[str, ...] = ("random", "greedy", "beam", "mcts", "evolutionary", "annealing")
    """Searches to compare with the guided one."""
    threads: int = 1
    """Threads of an operator."""
    repeats: int = 3
    """Runs with different seeds; the median of a program counts."""


def ratios(runs: Sequence[Comparison], method: str) -> dict[str, float]:
    """Return the median of a method's speed relative to ALL, for each program on which it never failed."""
    found: dict[str, list[float]] = {}
    for row in (row for run in runs for row in run.rows if row.method == method):
        if row.baseline_ratio is None or not row.validated:
            print(f"{row.program}: {method} failed: {row.detail}")
        found.setdefault(row.program, []).append(row.baseline_ratio or 0.0)
    return {program: statistics.median(speeds) for program, speeds in found.items() if min(speeds) > 0}


def policy_table(found: Mapping[str, float]) -> None:
    """Print the geometric mean of each kind of network."""
    for kind, bar in BARS.items():
        speeds = [ratio for program, ratio in found.items() if KINDS[GRAPH.family(program)] == kind]
        if speeds:
            mean = geometric_interval(speeds)
            said = "met" if mean.mean >= bar else "NOT met"
            interval = f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
            print(f"{kind}: {interval} of {len(speeds)}; bar {bar}: {said}")


def search_table(of: Mapping[str, Mapping[str, float]], guided: str) -> None:
    """Print the speed of the guided search's results relative to each other search's."""
    for search in (method for method in of if method != guided):
        both = [of[guided][program] / of[search][program] for program in of[guided] if program in of[search]]
        mean = geometric_interval(both)
        print(
            f"guided over {search}: {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]: {mean.verdict.value}"
        )


def main(options: Options) -> None:
    """Print the speeds of the episode or of the searches: for each network, then the means."""
    print(fingerprint().text())
    programs = options.programs or tuple(spread(GRAPH.dataset(options.dataset).test, options.limit))
    episode, guided = f"raw:{options.policy}", f"guided:{options.policy}"
    methods = (episode,) if options.seconds is None else (guided, *options.searches)
    print(
        f"{'of the speed of ALL':45s} " + " ".join(f"{method.partition(':')[0]:>12s}" for method in methods)
    )
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
        actions = [row.schedule.count("@") for row in runs[-1].rows if row.method == episode]
        print(f"{program:45s} {row}" + "".join(f", {count} actions" for count in actions), flush=True)
    if options.seconds is None:
        policy_table(of[episode])
    else:
        search_table(of, guided)


if __name__ == "__main__":
    main(tyro.cli(Options))
