"""TASO's search and equality saturation: the limits of each.

    python benchmarks/graph_searches.py [--seconds 60] [--objective model] [--horizon 1000] [--layers 4]

The first part runs TASO's backtracking search on SqueezeNet for `--seconds`, with TASO's rules, with those
of the blocked layout too, and with all, and times each result in turn with ONNX Runtime's optimiser. Under
`model` the search sees the most candidates, since each distinct operator is measured once. A step is a single
rewrite, and `--horizon` limits schedules, which are unlimited in TASO.

The second part saturates BERT, and several products of one input, with multi-pattern rules in one, two and
three iterations, and prints the operators and seconds after each. The third part times the baseline `tensat`
on both models.
"""

import argparse

import numpy as np

from irgym.core import capabilities
from irgym.core.baseline import Versus
from irgym.core.bench import Bench
from irgym.core.schedule import replay
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.eqsat.saturation import Limits, saturate
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import literal
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.result import TracePoint
from irgym.search.run import run_search
from irgym.search.strategies.backtracking import Backtracking

PRODUCTS = (8, 24)
"""Products of one input: the gates of two recurrent cells; keys and values for a decoder of twelve layers."""

EQSAT_S = 900.0
"""Time limit of the baseline `tensat`."""

NEARLY = 1.01
"""Factor over the least cost within which a search counts as stalled."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search")
    parser.add_argument("--objective", default="model", help="of the searches")
    parser.add_argument("--horizon", type=int, default=1000, help="most rewrites of a schedule")
    parser.add_argument("--layers", type=int, default=4, help="of BERT")
    options = parser.parse_args()
    squeezenet = GRAPH.task("graph://squeezenet1_1", objective=options.objective)
    squeezenet.horizon = options.horizon
    bert = GRAPH.task(f"graph://bert?layers={options.layers}")
    with GRAPH.bench() as bench:
        for name, task in (
            ("TASO's rules", squeezenet.restricted("TASO")),
            ("TASO's and the blocked layout's", squeezenet.restricted("TASO", "NchwcTransformer")),
            ("all rules", squeezenet),
        ):
            search(name, task, bench, options.seconds)
    tasos = bert.restricted("TASO").rules
    for name, graph, rules in (
        (bert.uri, bert.graph, RULES),
        (bert.uri, bert.graph, tasos),
        *((f"{count} products of one input", products(count), tasos) for count in PRODUCTS),
    ):
        print(f"\n{name}: {len(graph.nodes)} operators, {len(rules)} rules")
        for multi in (1, 2, 3):
            saturation(graph, rules, bert.block, Limits(multi=multi))
    with GRAPH.bench() as bench:
        for task in (bert, squeezenet.under("time")):
            extracted("TASO's rules", task.restricted("TASO"), bench)
            extracted("all rules", task, bench)


def search(name: str, task: GraphTask, bench: Bench, seconds: float) -> None:
    """Search, and time the result in turn with ONNX Runtime's optimiser off and at ALL."""
    result = run_search(Backtracking(), task, bench.evaluator, SearchRequest(Budget(seconds=seconds), seed=0))
    timed = task.under("time")
    state = replay(timed, result.schedule)
    last = result.trace[-1]
    nearly = next(point for point in result.trace if point.cost <= NEARLY * result.cost)
    print(
        f"taso, {task.objective.name}, {name}: {result.evaluations:,} candidates in {result.seconds:.0f} s; "
        f"within 1 % of the end {after(nearly)}, last improvement {after(last)}; "
        f"{len(result.schedule)} rewrites; timed in turn, "
        f"{versus(timed, 'ort-off', state, bench).ratio:.2f}x the original, "
        f"{versus(timed, 'ort-all', state, bench).ratio:.2f}x ONNX Runtime at ALL",
        flush=True,
    )


def after(point: TracePoint) -> str:
    """Return the evaluations and seconds at a point of a search, as text."""
    return f"after {point.evaluations:,} and {point.seconds:.0f} s"


def versus(task: GraphTask, baseline: str, state: GraphState, bench: Bench) -> Versus:
    """Return timings of a baseline in turn with a state."""
    return bench.call(capabilities.baseline_call(task, baseline, state), EQSAT_S)


def saturation(graph: Graph, rules: tuple[Rule, ...], block: int, limits: Limits) -> None:
    """Saturate, and print the operators and seconds after each iteration."""
    found = saturate(graph, rules, block, limits)
    steps = ", ".join(f"{iteration.nodes:,} ({iteration.seconds:.1f} s)" for iteration in found.iterations)
    print(f"  multi-pattern rules in {limits.multi}: {steps}; {found.stopped}", flush=True)


def extracted(name: str, task: GraphTask, bench: Bench) -> None:
    """Time the baseline `tensat`, and ONNX Runtime at ALL, in turn with the original model."""
    tensat, best = (versus(task, baseline, task.initial(), bench) for baseline in ("tensat", "ort-all"))
    print(
        f"\ntensat, {task.uri}, {name}: {1 / tensat.ratio:.2f}x the original, "
        f"{best.ratio / tensat.ratio:.2f}x ONNX Runtime at ALL; {tensat.detail}",
        flush=True,
    )


def products(count: int) -> Graph:
    """Return a graph of products of one input with different weights."""
    rng = np.random.default_rng(0)
    x, names = TensorType("float32", (4, 8)), [f"y{place}" for place in range(count)]
    weights = {f"w{place}": literal(rng.standard_normal((8, 8)), "float32") for place in range(count)}
    nodes = [node("MatMul", ["x", f"w{place}"], [name]) for place, name in enumerate(names)]
    types = {"x": x, **dict.fromkeys(names, x), **{name: weight.type for name, weight in weights.items()}}
    return Graph.of(nodes, types, weights, ["x"], names, [("", 20)])


if __name__ == "__main__":
    main()
