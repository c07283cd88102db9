"""Checks the rewrite rules of tensor graphs: each on random instances, all together on whole models.

Each rule is verified in float64 on instances that it makes up itself. Then random sequences of rewrites are
applied to ONNX files: each result is run by ONNX Runtime beside the file as it is, and has to agree with it,
in its outputs and in the types of all values. The same rewrites, looked up again by their names, have to give
the same graph.

    python benchmarks/graph_rules.py --instances 200 --models bert.onnx vit.onnx --sequences 5000
"""

import importlib
import pkgutil
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tyro
from numpy.typing import NDArray
from onnx import ValueInfoProto

from irgym.envs.graph import rules
from irgym.envs.graph.ir.digest import Digests
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.reading import Model, read
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of
from irgym.envs.graph.rules.rule import Rule, Site
from irgym.envs.graph.rules.verification import error_of, run, verify

TOLERANCE = 1e-3
"""Greatest difference of float32 results, as a share of the greatest value, that rewrites may make."""

BLOCK = 16
"""Channels of a block in the layout of ONNX Runtime's nchwc operators."""


@dataclass(frozen=True)
class Options:
    """What to check."""

    instances: int = 200
    """Random instances of each rule."""
    models: tuple[Path, ...] = ()
    """ONNX files without open sizes, to rewrite at random."""
    sequences: int = 100
    """Random sequences of rewrites, over all files."""
    steps: int = 30
    """Most rewrites of a sequence."""
    seed: int = 0
    """Seed of instances, rewrites and inputs."""


def every_rule() -> list[Rule]:
    """Return the rules of all files."""
    modules = [
        importlib.import_module(f"{rules.__name__}.{one.name}")
        for one in pkgutil.iter_modules(rules.__path__)
    ]
    return [rule for module in modules for rule in getattr(module, "RULES", ())]


def verified(rule: Rule, options: Options) -> float:
    """Verify a rule and return its worst error in float64."""
    worst = 0.0
    for seed in range(options.seed, options.seed + options.instances):
        instance = verify(rule, np.random.default_rng(seed), BLOCK)
        graph = instance.graph
        before = run(graph, instance.feeds, instance.weights, BLOCK)
        for site in rule.sites(graph, graph.nodes[instance.anchor], BLOCK, "float64"):
            after = run(
                graph.rewritten(rule.rewrite(graph, site, BLOCK)), instance.feeds, instance.weights, BLOCK
            )
            worst = max(worst, *(error_of(a, b) for a, b in zip(before, after, strict=True)))
    return worst


def sites_of(rule: Rule, graph: Graph) -> list[Site]:
    """Return the places at which a rule applies."""
    nodes = graph.nodes.values()
    return [
        site
        for one in nodes
        if rule.anchors is None or one.operator in rule.anchors
        for site in rule.sites(graph, one, BLOCK)
    ]


def computed(
    graph: Graph, weights: Weights, feeds: dict[str, NDArray[Any]], names: list[str]
) -> dict[str, NDArray[Any]]:
    """Return values of a graph by ONNX Runtime, which rewrites nothing itself.

    Args:
        graph: The graph.
        weights: Its weights.
        feeds: Its inputs.
        names: The values.
    """
    model = model_of(graph, weights, whole=False)
    del model.graph.output[:]
    model.graph.output.extend([ValueInfoProto(name=name) for name in names])
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    apart = arrays_apart(graph, weights)
    kept = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for _, array in apart]
    settings.add_external_initializers([name for name, _ in apart], kept)
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, ["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, feeds), strict=True))


def inputs_of(graph: Graph, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Return random inputs; whole numbers are 0 or 1, which any vocabulary and mask has."""
    feeds: dict[str, NDArray[Any]] = {}
    for name in graph.inputs:
        kind = graph.types[name]
        array = rng.standard_normal(kind.shape) if "float" in kind.dtype else rng.integers(0, 2, kind.shape)
        feeds[name] = array.astype(kind.dtype)
    return feeds


@dataclass(frozen=True)
class Sequence:
    """Rewrites, by the names of rule and place, and the graph after them."""

    steps: tuple[tuple[str, str], ...]
    graph: Graph


def rewritten(model: Model, known: dict[str, Rule], count: int, rng: np.random.Generator) -> Sequence:
    """Return a random sequence of rewrites."""
    graph, steps = model.graph, list[tuple[str, str]]()
    for _ in range(count):
        for name in rng.permutation(sorted(known)):
            sites = sites_of(known[name], graph)
            if twice := [one for one, times in Counter(site.name for site in sites).items() if times > 1]:
                raise AssertionError(f"{name} has two places that are called {twice[0]}")
            if sites:
                site = sites[int(rng.integers(len(sites)))]
                graph = graph.rewritten(known[name].rewrite(graph, site, BLOCK))
                steps.append((str(name), site.name))
                break
        else:
            break
    return Sequence(tuple(steps), graph)


def replayed(model: Model, known: dict[str, Rule], sequence: Sequence) -> Graph:
    """Apply the rewrites of a sequence again, each found by its name."""
    graph = model.graph
    for name, place in sequence.steps:
        [site] = [site for site in sites_of(known[name], graph) if site.name == place]
        graph = graph.rewritten(known[name].rewrite(graph, site, BLOCK))
    return graph


def check_types(graph: Graph, values: dict[str, NDArray[Any]]) -> None:
    """Check the types of values against what ONNX Runtime computed."""
    for name, array in values.items():
        kind = graph.types[name]
        if (str(array.dtype), array.shape) != (kind.dtype, kind.shape):
            raise AssertionError(f"{name} is {array.dtype}{array.shape}, and was said to be {kind}")


def check_sequence(
    model: Model,
    sequence: Sequence,
    known: dict[str, Rule],
    feeds: dict[str, NDArray[Any]],
    wanted: list[Any],
) -> float:
    """Check a sequence; returns the greatest difference of outputs, as a share of the greatest value."""
    graph = sequence.graph
    again = replayed(model, known, sequence)
    if Digests().of(again) != Digests().of(graph):
        raise AssertionError("the same rewrites give another graph")
    made = [value for one in graph.order for value in one.results if value in graph.types]
    names = list(dict.fromkeys([*graph.outputs, *made]))
    values = computed(graph, Weights(model.arrays), feeds, names)
    check_types(graph, values)
    return max(error_of(a, values[name]) for a, name in zip(wanted, graph.outputs, strict=True))


def check_all_sites(graph: Graph, known: dict[str, Rule]) -> int:
    """Rewrite every place of a graph once; returns how many there are."""
    count = 0
    for rule in known.values():
        for site in sites_of(rule, graph):
            after = graph.rewritten(rule.rewrite(graph, site, BLOCK))
            if not after.order:
                raise AssertionError(f"{rule.name} at {site.name} leaves nothing")
            count += 1
    return count


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    known = {rule.name: rule for rule in every_rule()}
    print(f"| {'rule':32} | instances | worst error | source |\n|---|---|---|---|")
    for rule in known.values():
        print(
            f"| {rule.name:32} | {options.instances} | {verified(rule, options):.1e} | {rule.source} |",
            flush=True,
        )
    used: Counter[str] = Counter()
    for place, path in enumerate(options.models):
        rng = np.random.default_rng((options.seed, place))
        model = read(path, {})
        feeds = inputs_of(model.graph, rng)
        outputs = list(model.graph.outputs)
        values = computed(model.graph, Weights(model.arrays), feeds, outputs)
        wanted = [values[name] for name in outputs]
        share = options.sequences // len(options.models)
        started, worst, places = time.perf_counter(), 0.0, check_all_sites(model.graph, known)
        for number in range(share):
            sequence = rewritten(model, known, int(rng.integers(1, options.steps + 1)), rng)
            try:
                error = check_sequence(model, sequence, known, feeds, wanted)
                places += check_all_sites(sequence.graph, known) if number % 20 == 0 else 0
                if not error <= TOLERANCE:
                    raise AssertionError(f"outputs are off by {error:.1e} of the greatest value")
            except Exception:
                print(
                    f"{path.name}, sequence {number}: {' '.join('@'.join(step) for step in sequence.steps)}"
                )
                raise
            worst = max(worst, error)
            used.update(name for name, _ in sequence.steps)
        taken = time.perf_counter() - started
        print(
            f"{path.name}: {share} sequences, worst error {worst:.1e} (allowed {TOLERANCE:.0e}), "
            f"{places} places rewritten, {taken:.0f} s",
            flush=True,
        )
    print(f"{sum(used.values())} rewrites by {len(used)} of {len(known)} rules")


if __name__ == "__main__":
    main()
