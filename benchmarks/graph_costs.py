"""Checks the cost model of tensor graphs: times of single operators against times of whole models.

Each network is timed in its original form, after random rewrites, and after all rewrites that ONNX
Runtime's optimiser knows too. Three cost models are compared with these times: the plain sum, one with a
factor for each class of operators fitted to all networks, and the same fitted to all other networks. Errors
are of times, and of speedups over the original network, which guide searches. The next column is the rough
estimate that rewards take their potentials from. The last two are learned, as in the search `screened`, from
the measured times of all other networks: from features of the graph alone, and with the measured times of
its operators as further features.

    python benchmarks/graph_costs.py --programs "graph://squeezenet1_1?size=64" "graph://bert?layers=2"
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tyro
from numpy.typing import NDArray
from scipy.optimize import nnls

from irgym.core.actions import Action
from irgym.core.bench import Bench
from irgym.cost_model.model import CostModel, Samples
from irgym.envs.graph.costs.calibration import CLASSES, Calibration, class_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask

SMALL = (
    "resnet18?size=64",
    "squeezenet1_1?size=96",
    "mobilenet_v3?size=96",
    "efficientnet_b0?size=96",
    "unet?size=64",
    "gpt2?layers=2",
    "t5_encoder?layers=2",
    "deberta?layers=2",
    "bert?layers=2",
    "vit_b_16?layers=2",
    "dalle?layers=2",
    "lstm?layers=1",
    "gru?layers=1",
    "nasrnn?hidden=256",
)
"""Networks of the data set `models`, small."""

CLOSED = 400
"""Limit of the rewrites until no rule of ONNX Runtime's applies."""

PULL = 0.05
"""Weight of the prior that factors are 1, which classes that hardly occur keep."""


@dataclass(frozen=True)
class Options:
    """Networks and rewrites to check."""

    programs: tuple[str, ...] = tuple(f"graph://{program}" for program in SMALL)
    """Networks."""
    random: int = 4
    """Random sequences of rewrites for each network."""
    steps: int = 25
    """Rewrites of each."""
    threads: int = 1
    """Threads of an operator."""
    seed: int = 0
    """Seed of the rewrites."""


@dataclass(frozen=True)
class Point:
    """A network after some rewrites.

    Attributes:
        program: The network.
        way: How it was rewritten.
        ns: Its measured time.
        row: Times of its operators, by class; the number of operators; 1.
        estimate: The rough estimate from shapes alone, relative to that of the original network.
        features: Features for a learned model.
    """

    program: str
    way: str
    ns: float
    row: NDArray[np.float64]
    estimate: float
    features: NDArray[np.float64]

    @property
    def plain(self) -> float:
        """The plain sum."""
        return float(self.row[:-2].sum())


def taken(task: GraphTask, state: GraphState, rule: str, name: str) -> GraphState:
    return task.step(state, task.space.parse(f"{rule}@{name}"))


def rewritten(task: GraphTask, steps: int, rng: np.random.Generator) -> GraphState:
    """Return a network after random rewrites, each rule that applies equally likely."""
    state = task.initial()
    for _ in range(steps):
        mask = task.space.onward(task.mask(state))
        if not mask.candidates:
            break
        action: Action = task.space.sample(mask, rng)
        state = task.step(state, action)
    return state


def closed(task: GraphTask) -> GraphState:
    """Return a network after all rewrites that ONNX Runtime's optimiser knows too."""
    known = {place + 1 for place, rule in enumerate(RULES) if rule.source.startswith("ONNX Runtime's")}
    state, seen = task.initial(), set[str]()
    for _ in range(CLOSED):
        pairs = [pair for pair in task.mask(state).candidates if pair[0] in known]
        if not pairs or state.digest in seen:
            break
        seen.add(state.digest)
        kind, name = pairs[0]
        state = taken(task, state, task.space.kinds[kind].name, name)
    return state


def row_of(task: GraphTask, graph: Graph) -> NDArray[np.float64]:
    """Return the regressors of a graph's cost, shape [classes + 2]."""
    row = np.zeros(len(CLASSES) + 2)
    for node in graph.nodes.values():
        row[CLASSES.index(class_of(node.operator))] += task.costs.node(graph, node)
    row[-2:] = len(graph.nodes), 1.0
    return row


def points_of(program: str, options: Options, bench: Bench) -> list[Point]:
    """Measure a network in its original and rewritten forms."""
    task = GRAPH.task(program, f"ort:{options.threads}")
    ways = {"original": task.initial(), "closed": closed(task)}
    for number in range(options.random):
        rng = np.random.default_rng((options.seed, number))
        ways[f"random {number}"] = rewritten(task, options.steps, rng)
    task.costs.measure([state.graph for state in ways.values()], bench.evaluator)
    times = bench.evaluator.evaluate([task.job(state) for state in ways.values()])
    found: list[Point] = []
    for (way, state), time in zip(ways.items(), times, strict=True):
        if time.ok:
            row, estimate = row_of(task, state.graph), float(task.analysis(state).mean())
            found.append(Point(task.uri, way, time.cost, row, estimate, task.cost_features(state)))
        else:
            print(f"{task.uri} {way}: {time.outcome.value} {time.detail}")
    return found


def fitted(points: Sequence[Point]) -> NDArray[np.float64]:
    """Return the best nonnegative factors of classes, overhead of an operator and overhead of a run.

    The fit minimises relative errors, with a weak prior that factors are 1.
    """
    rows = np.stack([point.row / point.ns for point in points])
    pull = np.zeros((len(CLASSES), rows.shape[1]))
    np.fill_diagonal(pull, PULL * np.sqrt(len(points)))
    wanted = np.concatenate([np.ones(len(points)), pull.diagonal()])
    # Overheads are microseconds: scale them to the magnitude of the factors.
    scale = np.ones(rows.shape[1])
    scale[-2:] = 1e3
    solution, _ = nnls(np.concatenate([rows, pull]) * scale, wanted)
    return solution * scale


def calibration_of(solution: NDArray[np.float64]) -> Calibration:
    factors = {name: round(float(factor), 4) for name, factor in zip(CLASSES, solution, strict=False)}
    return Calibration(round(float(solution[-1]), 1), round(float(solution[-2]), 1), factors)


def samples_of(networks: Sequence[Sequence[Point]], measured: bool) -> Samples:
    """Return what a model learns from networks, with the times of their operators or without."""
    rows: list[NDArray[np.float64]] = []
    targets: list[float] = []
    for original, *others in networks:
        for point in (original, *others):
            changes = (point.row - original.row)[:-2] / original.plain
            rows.append(
                np.concatenate([point.features, changes, [changes.sum()]] if measured else [point.features])
            )
            targets.append(np.log(point.ns / original.ns))
    return Samples(np.stack(rows).astype(np.float32), np.array(targets))


def learned(points: Sequence[Point], others: Sequence[Sequence[Point]], measured: bool) -> list[float]:
    """Return times relative to the original's, predicted from what other networks took."""
    model = CostModel(samples_of(others, measured))
    return list(np.exp(model.predict(samples_of([points], measured).cost_features)))


def errors(points: Sequence[Point], said: Sequence[float]) -> tuple[float, float, float]:
    """Return the median error of times, its sign, and the median error of speedups over the first point."""
    ratios = np.array([time / point.ns for time, point in zip(said, points, strict=True)])
    speedups = ratios[1:] / ratios[0]
    return (
        float(np.median(np.abs(ratios - 1))),
        float(np.median(ratios) - 1),
        float(np.median(np.abs(speedups - 1))) if len(speedups) else 0.0,
    )


def rank(points: Sequence[Point], said: Sequence[float]) -> float:
    """Return the share of correctly ordered pairs among a network's points that are at least 5 % apart."""
    right = total = 0
    for place, point in enumerate(points):
        for other in range(place):
            if max(point.ns, points[other].ns) > 1.05 * min(point.ns, points[other].ns):
                total += 1
                right += (point.ns < points[other].ns) == (said[place] < said[other])
    return right / total if total else float("nan")


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    backend = f"ort:{options.threads}"
    with GRAPH.bench(None, backend) as bench:
        networks = [points_of(program, options, bench) for program in options.programs]
    networks = [points for points in networks if len(points) > 1]
    everything = [point for points in networks for point in points]
    whole = fitted(everything)
    print("\nMedian error of times (its sign) and of speedups; pairs at least 5 % apart in the right order.")
    print("| network | points | plain sum | fitted to all | to the others | estimate | learned | and sums |")
    print("|---|---|---|---|---|---|---|---|")
    table: dict[str, list[tuple[float, float, float, float]]] = {"plain": [], "all": [], "others": []}
    ratios: dict[str, list[tuple[float, float]]] = {"estimate": [], "learned": [], "and sums": []}
    for points in networks:
        apart = [network for network in networks if network is not points]
        others = [point for network in apart for point in network]
        models = {
            "plain": [point.plain for point in points],
            "all": [float(point.row @ whole) for point in points],
            "others": [float(point.row @ fitted(others or points)) for point in points],
        }
        cells: list[str] = []
        for name, said in models.items():
            error, sign, speedup = errors(points, said)
            right = rank(points, said)
            table[name].append((error, sign, speedup, right))
            cells.append(f"{error:.0%} ({sign:+.0%}), {speedup:.0%}, {right:.0%}")
        guesses = {
            "estimate": [point.estimate for point in points],
            "learned": learned(points, apart, measured=False),
            "and sums": learned(points, apart, measured=True),
        }
        for name, guess in guesses.items():
            ratios[name].append((errors(points, guess)[2], rank(points, guess)))
            cells.append("{:.0%}, {:.0%}".format(*ratios[name][-1]))
        program = points[0].program.removeprefix("graph://")
        print(f"| {program} | {len(points)} | {' | '.join(cells)} |", flush=True)
    means = [np.nanmean(np.array(rows), axis=0) for rows in table.values()]
    cells = [f"{mean[0]:.0%}, {mean[2]:.0%}, {mean[3]:.0%}" for mean in means]
    cells += ["{:.0%}, {:.0%}".format(*np.nanmean(np.array(rows), axis=0)) for rows in ratios.values()]
    print(f"| mean | {len(everything)} | {' | '.join(cells)} |")
    print(f"\nfitted to all: {calibration_of(whole)}")


if __name__ == "__main__":
    main()
