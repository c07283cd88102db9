"""Costs of the operators of an e-graph: measured once for each signature, within a time limit."""

from collections.abc import Callable

import numpy as np
import pytest
from small_graphs import BLOCK, graph_of

from irgym.core.cost import Measurement, Outcome
from irgym.envs.graph.costs.signature import Residences, Signature
from irgym.envs.graph.eqsat import costs
from irgym.envs.graph.eqsat.costs import Measured
from irgym.envs.graph.eqsat.optimising import Optimised, optimised
from irgym.envs.graph.eqsat.saturation import Limits
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.rules.catalogue import RULES

RNG = np.random.default_rng(0)
TASO = tuple(rule for rule in RULES if "TASO" in rule.source)
LIMITS = Limits(nodes=2_000, iterations=4, seconds=30)
WIDE = (8, 16)
"""Shape of two merged weights."""

Measure = Callable[[Signature, int], Measurement]


def products() -> Graph:
    """Return two products of one input, and a Relu of each."""
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("MatMul", ["x", "v"], ["q"]),
        node("Relu", ["p"], ["r"]),
        node("Relu", ["q"], ["s"]),
    ]
    weights = {name: RNG.standard_normal((8, 8)) for name in "wv"}
    return graph_of(nodes, {"x": (3, 8)}, weights, ["r", "s"])


def kinds(found: Optimised) -> list[str]:
    return sorted(node.operator for node in found.graph.nodes.values())


def is_wide(signature: Signature) -> bool:
    return any(operand is not None and operand.type.shape == WIDE for operand in signature.operands)


class Clock:
    """Fake measurements, which record the signatures; each takes a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, time_of: Callable[[Signature], float | None]) -> None:
        self.asked: list[Signature] = []
        self._time_of = time_of
        monkeypatch.setattr(costs, "measure", self.measure)
        monkeypatch.setattr(costs.time, "perf_counter", lambda: float(len(self.asked)))

    def measure(self, signature: Signature, threads: int) -> Measurement:
        del threads
        self.asked.append(signature)
        time = self._time_of(signature)
        return Measurement(Outcome.COMPILE_ERROR) if time is None else Measurement(Outcome.OK, (time,))


@pytest.mark.parametrize(("wide", "merged"), [(1.5, True), (150.0, False)])
def test_measured_costs_decide(monkeypatch: pytest.MonkeyPatch, wide: float, merged: bool):
    clock = Clock(monkeypatch, lambda signature: wide if is_wide(signature) else 1.0)
    prices = Measured(products(), 1)
    found = optimised(products(), TASO, prices, BLOCK, LIMITS)
    assert len(clock.asked) == len(set(clock.asked)), "each is measured once"
    before = ["MatMul", "MatMul", "Relu", "Relu"]
    assert kinds(found) == (["MatMul", "Relu", "Split"] if merged else before)
    assert found.extraction.cost == (3.5 if merged else 4.0)
    assert prices.words == f"{len(clock.asked)} distinct operators measured in {len(clock.asked)} s"


def test_operators_that_are_not_measured_in_time_are_left_out(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch, lambda _: 1.0)
    prices = Measured(products(), 1, seconds=0.0)
    found = optimised(products(), TASO, prices, BLOCK, LIMITS)
    assert kinds(found) == ["MatMul", "MatMul", "Relu", "Relu"]
    assert sorted(signature.operator for signature in clock.asked) == ["MatMul", "Relu"], (
        "those of the model, at least"
    )
    assert prices.words.startswith("2 distinct operators measured in 2 s, ")
    assert prices.words.endswith(" more left out at the limit of 0 s")


def test_the_most_frequent_are_measured_first(monkeypatch: pytest.MonkeyPatch):
    graph = products()
    clock = Clock(monkeypatch, lambda _: 1.0)
    operators = [(graph, node) for node in graph.nodes.values()]
    assert Measured(graph, 1, seconds=1.0)([operators[0], *operators[2:]], 0) == [np.inf, 1.0, 1.0]
    assert [signature.operator for signature in clock.asked] == ["Relu"]


def test_operators_that_do_not_run_alone_are_left_out_unless_needed(monkeypatch: pytest.MonkeyPatch):
    Clock(monkeypatch, lambda signature: None if is_wide(signature) or signature.operator == "Relu" else 1.0)
    prices = Measured(products(), 1)
    found = optimised(products(), TASO, prices, BLOCK, LIMITS)
    assert kinds(found) == ["MatMul", "MatMul", "Relu", "Relu"]
    assert found.extraction.cost == 2.0
    assert "of which do not run alone" in prices.words


def test_weights_that_several_operators_use_lie_nearer(monkeypatch: pytest.MonkeyPatch):
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("MatMul", ["p", "w"], ["q"]),
        node("MatMul", ["q", "v"], ["y"]),
    ]
    weights = {name: RNG.standard_normal((8, 8)) for name in "wv"}
    graph = graph_of(nodes, {"x": (3, 8)}, weights, ["y"])
    monkeypatch.setattr(costs, "residences_of", lambda *_: Residences("memory", "cache"))
    clock = Clock(monkeypatch, lambda signature: {"memory": 5.0, "cache": 2.0}[signature.residence])
    found = optimised(graph, (), Measured(graph, 1), BLOCK, LIMITS)
    assert found.extraction.cost == 2.0 + 2.0 + 5.0 and len(clock.asked) == 2
