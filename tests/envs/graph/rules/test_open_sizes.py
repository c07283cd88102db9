"""Rules in graphs with open sizes: what they make is right at all sizes, or they do not apply."""

from collections import Counter
from typing import Any

import numpy as np
import onnxruntime
import pytest
from open_graphs import SIZES, OpenMaker, feeds_at
from small_graphs import BLOCK, sites_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rewriting.verification import run
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.blocks import block_of
from irgym.measure.target import target_of


def check(seed: int) -> Counter[str]:
    """Check all sites of a random graph at several sizes, and return the number of sites of each rule."""
    graph, weights = OpenMaker(np.random.default_rng(seed)).grown(12), Weights({})
    before = []
    for place, sizes in enumerate(SIZES):
        feeds = feeds_at(sizes, place)
        before.append((sizes, feeds, run(graph.at(sizes), feeds, weights, BLOCK)))
        for value, kind in graph.at(sizes).types.items():
            assert all(size >= 0 for size in kind.shape), value
    counts: Counter[str] = Counter()
    for rule in RULES:
        for site in sites_of(rule, graph, "float64"):
            after = graph.rewritten(rule.rewrite(graph, site, BLOCK))
            counts[rule.name] += 1
            for sizes, feeds, expected in before:
                found = run(after.at(sizes), feeds, weights, BLOCK)
                for wanted, got in zip(expected, found, strict=True):
                    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (rule.name, sizes)
                    np.testing.assert_allclose(got, wanted, 1e-9, 1e-9, err_msg=f"{rule.name}@{site.name}")
    return counts


def walk(seed: int) -> int:
    """Compare a graph before and after some rewrites in ONNX Runtime, and return the number of rewrites."""
    random, block = np.random.default_rng(seed), block_of(target_of(None))
    graph, count = OpenMaker(random, "float32").grown(12), 0
    session, after = session_of(graph), graph
    for _ in range(5):
        sites = [(rule, site) for rule in RULES for site in sites_of(rule, after, "float32", block)]
        if not sites:
            break
        rule, site = sites[int(random.integers(len(sites)))]
        after, count = after.rewritten(rule.rewrite(after, site, block)), count + 1
    other = session_of(after)
    for place, sizes in enumerate(SIZES):
        feeds = {
            name: array for name, array in feeds_at(sizes, place, "float32").items() if name in graph.inputs
        }
        for wanted, got in zip(session.run(None, feeds), other.run(None, feeds), strict=True):
            assert wanted.shape == got.shape
            scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))
            np.testing.assert_allclose(got, wanted, 1e-3, 1e-4 * scale, err_msg=str((seed, sizes)))
    return count


def session_of(graph: Graph) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    model = model_of(graph, Weights({}), whole=True).SerializeToString()
    return onnxruntime.InferenceSession(model, settings, ["CPUExecutionProvider"])


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_rewritten_models_run_at_all_sizes(start: int):
    assert sum(walk(seed) for seed in range(start, start + 50)) > 100


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_rules_keep_what_random_graphs_compute_at_all_sizes(start: int):
    counts = sum((check(seed) for seed in range(start, start + 50)), Counter[str]())
    assert len(counts) > 20 and counts.total() > 150
