"""Rules in random graphs with open sizes: what they make is right at five sizes, or they do not apply.

Each seed grows ten graphs. All sites of each are rewritten and run in the reference, before and after, in
float64; and up to five rewrites in a row are run in ONNX Runtime, in float32. A finding names the rule, the
site and the sizes at which results differ.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime

from fuzz.fuzzer import Tally
from fuzz.graph.making.open_graphs import SIZES, OpenMaker, feeds_at
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rewriting.rule import Rule, Site
from irgym.envs.graph.rewriting.verification import run as results_of
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.blocks import block_of
from irgym.measure.target import target_of

GRAPHS = 10
"""Graphs of a seed."""

STEPS = 12
"""Operators of a graph, at most."""

REWRITES = 5
"""Rewrites in a row of each graph that is run in ONNX Runtime."""

BLOCK = block_of(target_of(None))
"""Channels of a block in the layout of ONNX Runtime's nchwc operators on this machine."""


def run(seed: int) -> Tally:
    """Check ten graphs."""
    tally = Tally()
    for number in range(seed * GRAPHS, (seed + 1) * GRAPHS):
        in_reference(number, tally)
        in_onnx_runtime(number, tally)
    return tally


def in_reference(number: int, tally: Tally) -> None:
    """Rewrite a random graph at all sites of all rules, and compare it in the reference at all sizes."""
    graph, weights = OpenMaker(np.random.default_rng(number)).grown(STEPS), Weights({})
    before = [
        (sizes, feeds, results_of(graph.at(sizes), feeds, weights, BLOCK))
        for sizes, feeds in ((sizes, feeds_at(sizes, place)) for place, sizes in enumerate(SIZES))
    ]
    for rule, site in _sites(graph, "float64"):
        after, finding = graph.rewritten(rule.rewrite(graph, site, BLOCK)), ""
        what = f"graph {number}, {rule.name}@{site.name}"
        for sizes, feeds, wanted in before:
            found = results_of(after.at(sizes), feeds, weights, BLOCK)
            finding = finding or _difference(found, wanted, 1e-9, f"{what}, {sizes}")
        tally.add("sites in the reference", finding)
        tally.reach("rules", [rule.name])


def in_onnx_runtime(number: int, tally: Tally) -> None:
    """Rewrite a random graph some times in a row, and compare it in ONNX Runtime at all sizes."""
    random = np.random.default_rng(number)
    graph = after = OpenMaker(random, "float32").grown(STEPS)
    taken: list[str] = []
    while len(taken) < REWRITES and (sites := list(_sites(after, "float32"))):
        rule, site = sites[int(random.integers(len(sites)))]
        after = after.rewritten(rule.rewrite(after, site, BLOCK))
        taken.append(f"{rule.name}@{site.name}")
    first, second, finding = _session(graph), _session(after), ""
    for place, sizes in enumerate(SIZES):
        feeds = feeds_at(sizes, place, "float32")
        feeds = {name: array for name, array in feeds.items() if name in graph.inputs}
        what = f"graph {number} in ONNX Runtime, {' '.join(taken)}, {sizes}"
        finding = finding or _difference(second.run(None, feeds), first.run(None, feeds), 1e-4, what)
    tally.add("graphs in ONNX Runtime", finding)
    tally.notes["rewrites in ONNX Runtime"] += len(taken)


def _sites(graph: Graph, precision: str) -> Iterator[tuple[Rule, Site]]:
    for rule in RULES:
        for node in graph.nodes.values():
            for site in rule.sites(graph, node, BLOCK, precision):
                yield rule, site


def _difference(found: Any, wanted: Any, tolerance: float, what: str) -> str:
    """Return a sentence about the first results that differ; empty if none do."""
    for place, (after, before) in enumerate(zip(found, wanted, strict=True)):
        if (after.dtype, after.shape) != (before.dtype, before.shape):
            kinds = f"{after.dtype}{after.shape} instead of {before.dtype}{before.shape}"
            return f"{what}: result {place} is {kinds}"
        scale = float(np.abs(before[np.isfinite(before)]).max(initial=1.0))
        if not np.allclose(after, before, 10 * tolerance, tolerance * scale, equal_nan=True):
            return f"{what}: result {place} differs by {np.abs(after - before).max():.2g}"
    return ""


def _session(graph: Graph) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    model = model_of(graph, Weights({}), whole=True).SerializeToString()
    return onnxruntime.InferenceSession(model, settings, ["CPUExecutionProvider"])
