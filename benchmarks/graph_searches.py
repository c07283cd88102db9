"""TASO's search and equality saturation: where each of them stops.

    python benchmarks/graph_searches.py [--seconds 60] [--objective time] [--layers 4]

The first part gives TASO's backtracking search so many seconds on SqueezeNet, with all rules and with TASO's
alone, and times the result in turn with ONNX Runtime's own optimiser. The second saturates BERT, and some
products of one input, with multi-pattern rules in one, two and three iterations.
"""

import argparse

import numpy as np

from irgym.core import capabilities
from irgym.core.environment import Bench
from irgym.core.schedule import replay
from irgym.envs.graph.actions import RULES
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.eqsat.costs import estimated
from irgym.envs.graph.eqsat.optimising import optimised
from irgym.envs.graph.eqsat.saturation import Limits, saturate
from irgym.envs.graph.ir.graph import Graph, node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import literal
from irgym.envs.graph.rules.rule import Rule
from irgym.envs.graph.task import GraphTask
from irgym.search.budget import Budget
from irgym.search.session import run_search
from irgym.search.strategies.backtracking import Backtracking

PRODUCTS = 8
"""Products of one input, such as the projections of an attention, or the gates of two recurrent cells."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search")
    parser.add_argument("--objective", default="time", help="of the searches")
    parser.add_argument("--layers", type=int, default=4, help="of BERT")
    options = parser.parse_args()
    task = GRAPH.task("graph://squeezenet1_1", objective=options.objective)
    with GRAPH.bench() as bench:
        for name, one in (("all rules", task), ("TASO's rules", task.restricted("TASO"))):
            search(name, one, bench, options.seconds)
    bert = GRAPH.task(f"graph://bert?layers={options.layers}")
    tasos = bert.restricted("TASO").rules
    for name, graph, rules in (
        (bert.uri, bert.graph, RULES),
        (bert.uri, bert.graph, tasos),
        (f"{PRODUCTS} products of one input", products(), tasos),
    ):
        print(f"\n{name}: {len(graph.nodes)} operators, {len(rules)} rules")
        for multi in (1, 2, 3):
            saturation(graph, rules, bert.block, Limits(multi=multi))
    found = optimised(bert.graph, RULES, estimated, bert.block, Limits())
    print(f"\ncheapest by estimate: {len(found.graph.nodes)} operators, {found.seconds:.0f} s; {found.words}")


def search(name: str, task: GraphTask, bench: Bench, seconds: float) -> None:
    """Search, and time the result in turn with ONNX Runtime at level ALL."""
    result = run_search(Backtracking(), task, bench.evaluator, Budget(seconds=seconds), seed=0)
    state = replay(task, result.finalists[0])
    versus = bench.call(capabilities.baseline_call(task, "ort-all", state))
    gain = result.first_cost / result.cost
    print(
        f"taso, {name}: {result.evaluations} candidates in {result.seconds:.0f} s, "
        f"the last improvement after {result.trace[-1].seconds:.0f} s; {len(result.schedule)} rewrites, "
        f"{gain:.2f}x as written, {versus.ratio:.2f}x ONNX Runtime at ALL"
    )


def saturation(graph: Graph, rules: tuple[Rule, ...], block: int, limits: Limits) -> None:
    """Saturate, and print the operators and seconds after each iteration."""
    found = saturate(graph, rules, block, limits)
    steps = ", ".join(f"{one.nodes:,} ({one.seconds:.1f} s)" for one in found.iterations)
    print(f"  multi-pattern rules in {limits.multi}: {steps}; {found.stopped}")


def products() -> Graph:
    """Return products of one input with different weights."""
    rng = np.random.default_rng(0)
    x, names = TensorType("float32", (4, 8)), [f"y{place}" for place in range(PRODUCTS)]
    weights = {f"w{place}": literal(rng.standard_normal((8, 8)), "float32") for place in range(PRODUCTS)}
    nodes = [node("MatMul", ["x", f"w{place}"], [name]) for place, name in enumerate(names)]
    types = {"x": x, **dict.fromkeys(names, x), **{name: one.type for name, one in weights.items()}}
    return Graph.of(nodes, types, weights, ["x"], names, [("", 20)])


if __name__ == "__main__":
    main()
