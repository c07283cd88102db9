"""The rough estimate, and potentials by it."""

import numpy as np
import pytest
import small_graphs
from small_networks import CONVOLUTIONS, task_of

from irgym.core.reward import potential
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph.costs.estimate import Rates, estimated, rates_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.measure.target import host_target

RATES = Rates(flops=100.0, bytes=10.0, operator_ns=1000.0)


def of(operator: str, *shapes: tuple[int, ...], **attributes: int) -> float:
    names = [f"x{place}" for place in range(len(shapes))]
    nodes = [node(operator, names, ["y"], **attributes)]
    graph = small_graphs.graph_of(nodes, dict(zip(names, shapes, strict=True)), {}, ["y"])
    return estimated(graph, graph.nodes["y"], RATES)


def test_products_take_their_operations_and_sums_their_bytes():
    assert of("MatMul", (200, 300), (300, 400)) == pytest.approx(1000 + 2 * 200 * 300 * 400 / 50)
    assert of("Gemm", (300, 200), (300, 400), transA=1) == of("MatMul", (200, 300), (300, 400))
    assert of("Conv", (1, 30, 20, 20), (40, 30, 1, 1)) == pytest.approx(1000 + 2 * 400 * 40 * 30 / 35)
    assert of("Add", (1000, 1000), (1000, 1000)) == pytest.approx(1000 + 3 * 4e6 / 10)
    assert of("Identity", (1000, 1000)) == 1000


def test_a_slice_moves_what_it_returns():
    nodes = [node("Slice", ["x", "b", "e"], ["y"])]
    weights = {"b": np.array([0]), "e": np.array([10])}
    graph = small_graphs.graph_of(nodes, {"x": (10_000, 100)}, weights, ["y"])
    assert estimated(graph, graph.nodes["y"], RATES) == pytest.approx(1000 + 2 * 4000 / 10)


def test_more_threads_compute_faster():
    assert rates_of(host_target(), 2).flops == 2 * rates_of(host_target(), 1).flops


def test_potentials():
    task = task_of(CONVOLUTIONS)
    first = task.initial()
    assert task.analysis(first).tolist() == [1.0] and potential(task, first) == 0.0
    kinds = task.space.kinds
    fused = next(
        f"conv-relu@{name}" for kind, name in task.mask(first).candidates if kinds[kind].name == "conv-relu"
    )
    after = replay(task, Schedule((task.space.parse(fused),)))
    assert 0 < potential(task, after) < 1
    graph: Graph = after.graph
    assert len(graph.nodes) == len(first.graph.nodes) - 1
