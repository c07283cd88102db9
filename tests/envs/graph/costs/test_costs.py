"""Costs of graphs from those of their operators, with made-up times of operators."""

import zlib
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import small_graphs
from small_networks import CONVOLUTIONS, TRANSFORMER, task_of

from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph.costs.calibration import CLASSES, Calibration, class_of
from irgym.envs.graph.costs.costs import PLAIN, Costs, residences_of
from irgym.envs.graph.costs.signature import Residence, Residences, signature_of
from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.task import GraphTask
from irgym.measure.evaluators import summed
from irgym.measure.target import host_target

RNG = np.random.default_rng(0)


class Invented:
    """An evaluator whose times depend on signatures alone; it records the batches."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return summed(jobs, self._evaluate)

    def _evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        assert all(job.objective == "operator" for job in jobs)
        self.asked.append([job.schedule for job in jobs if job.known is None])
        return [job.known or Measurement(Outcome.OK, (_time(job.schedule),)) for job in jobs]


def _time(text: str) -> float:
    return 1e3 + zlib.crc32(text.encode()) % 1000


def costs(calibration: Calibration = PLAIN) -> Costs:
    return Costs("tools", 1, host_target(), Residences("cache", "near"), calibration)


def fresh(uri: str) -> GraphTask:
    """Return a task without measured operators."""
    task = copy(task_of(uri))
    task.costs = costs()
    return task


def walked(task: GraphTask, steps: int) -> list[Graph]:
    rng, state = np.random.default_rng(3), task.initial()
    graphs = [state.graph]
    for _ in range(steps):
        state = task.step(state, task.space.sample(task.space.onward(task.mask(state)), rng))
        graphs.append(state.graph)
    return graphs


def branches(names: str = "") -> Graph:
    """x @ a and x @ b, of equal sizes."""
    nodes = [
        node("MatMul", [f"x{names}", "a"], [f"y{names}"]),
        node("MatMul", [f"x{names}", "b"], [f"z{names}"]),
    ]
    weights = {name: RNG.standard_normal((40, 30)) for name in "ab"}
    return small_graphs.graph_of(nodes, {f"x{names}": (20, 40)}, weights, [f"y{names}", f"z{names}"])


def text(graph: Graph, name: str, own: Residence = "cache") -> str:
    found = signature_of(graph, graph.nodes[name], Residences(own, "near"))
    assert found is not None
    return found.text


def test_names_do_not_matter_and_all_else_does():
    plain = text(branches(), "y")
    assert plain == text(branches(), "z") == text(branches(".2"), "z.2")
    graph = branches()
    value = small_graphs.graph_of(
        [node("MatMul", ["x", "a"], ["y"])], {"x": (20, 40), "a": (40, 30)}, {}, ["y"]
    )
    larger = small_graphs.graph_of(
        [node("MatMul", ["x", "a"], ["y"])], {"x": (21, 40)}, {"a": np.ones((40, 30))}, ["y"]
    )
    others = [
        text(graph, "y", "memory"),
        text(value, "y"),
        text(larger, "y"),
        text(replace(graph, opsets=(("", 21),)), "y"),
        *(text(_sum([name, "x"]), "y") for name in ("x", "c")),
        *(text(_reshaped(*sizes), "y") for sizes in ((2, 10), (10, 2))),
        *(text(_transposed(*perm), "y") for perm in ((0, 1), (1, 0))),
    ]
    assert len({plain, *others}) == len(others) + 1


def _sum(names: list[str]) -> Graph:
    return small_graphs.graph_of([node("Add", names, ["y"])], dict.fromkeys(names, (20, 40)), {}, ["y"])


def _reshaped(*sizes: int) -> Graph:
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    return small_graphs.graph_of(nodes, {"x": (20,)}, {"s": np.array(sizes)}, ["y"])


def _transposed(*perm: int) -> Graph:
    return small_graphs.graph_of([node("Transpose", ["x"], ["y"], perm=perm)], {"x": (20, 20)}, {}, ["y"])


def test_a_weight_that_is_used_twice_is_near():
    graph = branches()
    own = costs()
    before = own.signature(graph, graph.nodes["y"])
    shared = graph.rewritten(Rewrite(("z",), (node("MatMul", ["x", "a"], ["z"]),)))
    assert shared.nodes["y"] is graph.nodes["y"]
    after = own.signature(shared, shared.nodes["y"])
    assert before and after and before != after
    assert before.residence == "cache" and after.residence == "near"


def test_operators_of_unknown_operands_count_as_nothing():
    graph = branches()
    unknown = replace(graph, types={name: kind for name, kind in graph.types.items() if name != "x"})
    assert costs().missing([unknown]) == [] and costs().of(unknown) == 0.0
    texts = replace(graph, types={**graph.types, "x": TensorType("str", (20, 40))})
    assert costs().missing([texts]) == []


@pytest.mark.parametrize("uri", [CONVOLUTIONS, TRANSFORMER])
def test_a_job_of_the_model_is_the_sum_of_its_operators(uri: str):
    task, evaluator = fresh(uri).under("model"), Invented()
    graphs = walked(task, 8)
    with pytest.raises(KeyError):
        task.costs.of(graphs[0])
    assert task.costs.measure(graphs, evaluator) == len(evaluator.asked[0]) > 5
    assert len(evaluator.asked) == 1 and len({*evaluator.asked[0]}) == len(evaluator.asked[0])
    assert task.costs.missing(graphs) == [] and task.costs.measure(graphs, evaluator) == 0
    jobs = [task.job(replace(task.initial(), graph=graph, digest=str(n))) for n, graph in enumerate(graphs)]
    for graph, measurement in zip(graphs, evaluator.evaluate(jobs), strict=True):
        by_hand = [task.costs.signature(graph, node) for node in graph.nodes.values()]
        assert measurement.cost == pytest.approx(
            sum(_time(signature.text) for signature in by_hand if signature)
        )
        assert measurement.cost == pytest.approx(task.costs.of(graph))


def test_a_rewrite_asks_for_its_new_operators_alone():
    task, evaluator = fresh(CONVOLUTIONS), Invented()
    task.costs.measure([task.graph], evaluator)
    after = replay(task, Schedule((task.space.parse(_first(task, "conv-relu")),))).graph
    task.costs.measure([after], evaluator)
    assert [text.partition("(")[0] for text in evaluator.asked[1]] == ["com.microsoft.FusedConv"]


def _first(task: GraphTask, rule: str) -> str:
    kinds = task.space.kinds
    return next(
        f"{rule}@{name}" for kind, name in task.mask(task.initial()).candidates if kinds[kind].name == rule
    )


def test_calibrated_costs():
    calibration = Calibration(run_ns=5e3, operator_ns=200.0, factors={"product": 2.0, "movement": 0.5})
    graph, own, evaluator = branches(), costs(calibration), Invented()
    own.measure([graph], evaluator)
    once = _time(text(graph, "y"))
    assert own.node(graph, graph.nodes["y"]) == pytest.approx(200.0 + 2 * once)
    assert own.of(graph) == pytest.approx(5e3 + 2 * (200.0 + 2 * once))
    job = replace(task_of(CONVOLUTIONS).job(task_of(CONVOLUTIONS).initial()), parts=own.parts(graph))
    assert evaluator.evaluate([job])[0].cost == pytest.approx(own.of(graph))
    assert class_of("MatMul") == "product" and class_of("Transpose") == "movement"
    assert class_of("mine.Operator") == "other" and "other" in CLASSES


def test_weights_are_in_the_cache_that_holds_them():
    target = host_target()
    *_, near, last = [cache.size for cache in target.caches]
    graph = branches()
    both = graph.rewritten(Rewrite(("z",), (node("MatMul", ["x", "a"], ["z"]),)))
    for size, where in ((near // 4, "near"), (last // 4, "cache"), (last, "memory")):
        kind = TensorType("float32", (40, size // 160))
        weights = {name: replace(weight, type=kind) for name, weight in graph.weights.items()}
        found = residences_of(replace(graph, weights=weights), target)
        assert found == (where, "near"), "each of two weights has one user"
        found = residences_of(replace(both, weights=weights), target)
        assert found.shared == found.own
