"""Unrolled LSTMs and GRUs, as PyTorch's exporter writes them, become one operator for each layer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rules_in_ort import typed_graph
from small_graphs import BLOCK, run_in_ort

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight, Weights, weight_of
from irgym.envs.graph.reference.operators import types_of
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.verification import RuleError, verify
from irgym.envs.graph.rules import cells, cutting, layers, stacking

RULES = {rule.name: rule for file in (cells, layers, stacking) for rule in file.RULES}
MERGED = [rule for rule in cutting.RULES if rule.name in ("merge-concats", "merge-splits")]
ORDER = [
    [*cells.RULES, *layers.RULES, *MERGED],
    [rule for rule in stacking.RULES if rule.name != "squeeze-of-split"],
    [rule for rule in stacking.RULES if rule.name == "squeeze-of-split"],
]
INPUTS, HIDDEN = 5, 4


class Unrolled:
    """Writes unrolled cells, operator by operator."""

    def __init__(self, steps: int = 4, batch: int = 2, dtype: Any = np.float32) -> None:
        self.rng = np.random.default_rng(0)
        self.dtype, self.batch = np.dtype(dtype), batch
        self.nodes: list[Any] = []
        self.types = {"x": TensorType(self.dtype.name, (batch, steps, INPUTS))}
        self.weights: dict[str, Weight] = {}
        self.arrays: dict[str, Any] = {}
        self.steps = [self.step(place) for place in range(steps)]

    def weight(self, array: Any) -> str:
        array = np.asarray(array)
        array = array.astype(self.dtype) if array.dtype.kind == "f" else array
        name = f"w{len(self.weights)}"
        same = [own for own, other in self.arrays.items() if np.array_equal(other, array)]
        if same and array.dtype.kind == "i":
            return same[0]
        self.arrays[name], self.weights[name] = array, weight_of(name, array)
        self.types[name] = self.weights[name].type
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}.{place}" for place in range(outputs)]
        known = [self.arrays.get(name) for name in inputs]
        kinds = types_of(operator, [self.types[name] for name in inputs], attributes, known, outputs)
        self.types.update(zip(names, kinds, strict=True))
        self.nodes.append(node(operator, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def step(self, place: int) -> str:
        axis = self.weight(np.array([1]))
        ends = [self.weight(np.array([bound])) for bound in (place, place + 1)]
        return self.add("Squeeze", self.add("Slice", "x", *ends, axis), axis)

    def cell(self, gates: int, inputs: int) -> "Cell":
        return Cell(self, gates, inputs)

    def layer(self, gates: int, given: Sequence[str]) -> list[str]:
        """Return the states after each step."""
        cell = self.cell(gates, self.types[given[0]].shape[1])
        states = [cell.start]
        for state in given:
            states.append(cell.lstm(state, states[-1]) if gates == 4 else cell.gru(state, states[-1]))
        return states[1:]

    def stack(self, states: Sequence[str]) -> str:
        axis = self.weight(np.array([1]))
        return self.add("Concat", *[self.add("Unsqueeze", state, axis) for state in states], axis=1)

    def graph(self, *outputs: str) -> Graph:
        return Graph.of(self.nodes, self.types, self.weights, ["x"], outputs, [("", 20)])


class Cell:
    """A cell with weights shared by all steps, including the memory of an LSTM."""

    def __init__(self, writer: Unrolled, gates: int, inputs: int) -> None:
        self.writer, self.gates, rng = writer, gates, writer.rng
        rows = gates * HIDDEN
        self.w, self.r = (writer.weight(rng.standard_normal((rows, size))) for size in (inputs, HIDDEN))
        self.b, self.e = (writer.weight(rng.standard_normal(rows)) for _ in range(2))
        self.start = self.memory = writer.weight(np.zeros((writer.batch, HIDDEN)))
        self.first = writer.weight(np.tile(writer.arrays[self.e], (writer.batch, 1)))

    def _product(self, x: str, w: str, b: str) -> str:
        return self.writer.add("Gemm", x, w, b, alpha=1.0, beta=1.0, transA=0, transB=1)

    def _of_state(self, state: str) -> str:
        """Return the product of the state; for a state of zeros, the exporter folds it into a constant."""
        return self.first if state == self.start else self._product(state, self.r, self.e)

    def lstm(self, x: str, state: str, order: Sequence[int] = (0, 1, 2, 3)) -> str:
        add = self.writer.add
        total = add("Add", self._of_state(state), self._product(x, self.w, self.b))
        parts = add("Split", total, outputs=4, axis=1, num_outputs=4)
        enter, keep, new, leave = (parts[place] for place in order)
        kept = add("Mul", add("Sigmoid", keep), self.memory)
        self.memory = add("Add", kept, add("Mul", add("Sigmoid", enter), add("Tanh", new)))
        return add("Mul", add("Sigmoid", leave), add("Tanh", self.memory))

    def gru(self, x: str, state: str) -> str:
        add = self.writer.add
        of_input = add("Split", self._product(x, self.w, self.b), outputs=3, axis=1, num_outputs=3)
        of_state = add("Split", self._of_state(state), outputs=3, axis=1, num_outputs=3)
        reset = add("Sigmoid", add("Add", of_state[0], of_input[0]))
        new = add("Tanh", add("Add", of_input[2], add("Mul", of_state[2], reset)))
        update = add("Sigmoid", add("Add", of_state[1], of_input[1]))
        return add("Add", add("Mul", add("Sub", state, new), update), new)


def closed(graph: Graph, rules: Sequence[Rule], rng: np.random.Generator) -> Graph:
    """Apply rules in random order while any applies, and check that no site is missed."""
    finder = Finder(rules, BLOCK)
    sites = finder.all(graph)
    while found := [item for many in sites.values() for item in many]:
        (place, _), (site,) = found[rng.integers(len(found))]
        rewrite = rules[place].rewrite(graph, site, BLOCK)
        after = graph.rewritten(rewrite)
        sites, graph = finder.after(sites, graph, [rewrite], after), after
        assert names_of(sites) == names_of(finder.all(graph))
    return graph


def names_of(sites: Any) -> set[tuple[int, str]]:
    return {key for many in sites.values() for key, _ in many}


def check(writer: Unrolled, outputs: Sequence[str], wanted: Sequence[str]) -> None:
    before = writer.graph(*outputs)
    shape = writer.types["x"].shape
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(writer.dtype)}
    weights = Weights(writer.arrays)
    expected = run_in_ort(before, weights, feeds)
    for seed in range(3):
        after = before
        for rules in ORDER:
            after = closed(after, rules, np.random.default_rng(seed))
        assert Counter(node.operator for node in after.nodes.values()) == Counter(wanted)
        for now, then in zip(run_in_ort(after, weights, feeds), expected, strict=True):
            assert now == pytest.approx(then, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("gates", [4, 3])
@pytest.mark.parametrize("batch", [1, 3])
def test_an_unrolled_network_becomes_an_operator_for_each_layer(gates: int, batch: int):
    writer = Unrolled(5, batch)
    states = writer.layer(gates, writer.layer(gates, writer.steps))
    kind = "LSTM" if gates == 4 else "GRU"
    moves = ["Reshape"] * 3 if batch == 1 else ["Transpose", "Transpose", "Reshape", "Reshape"]
    check(writer, [writer.stack(states)], [kind, kind, *moves])


@pytest.mark.parametrize("gates", [4, 3])
def test_the_last_state_alone_may_be_needed(gates: int):
    writer = Unrolled(4)
    last = writer.layer(gates, writer.steps)[-1]
    kind = "LSTM" if gates == 4 else "GRU"
    check(writer, [writer.add("Relu", last)], [kind, "Transpose", "Slice", "Squeeze", "Relu"])


def test_the_last_memory_may_be_needed():
    writer = Unrolled(3)
    cell, state = writer.cell(4, INPUTS), None
    for step in writer.steps:
        state = cell.lstm(step, state or cell.start)
    assert state
    check(writer, [state, cell.memory], ["LSTM", "Transpose", "Slice", "Squeeze", "Squeeze"])


def operators(graph: Graph) -> Counter[str]:
    after = closed(graph, [*cells.RULES, *layers.RULES], np.random.default_rng(0))
    return Counter(node.operator for node in after.nodes.values())


def test_layers_are_not_merged_where_a_memory_between_is_needed():
    writer = Unrolled(2)
    cell = writer.cell(4, INPUTS)
    first = cell.lstm(writer.steps[0], cell.start)
    memory = cell.memory
    second = cell.lstm(writer.steps[1], first)
    assert operators(writer.graph(second))["LSTM"] == 1
    assert operators(writer.graph(second, first))["LSTM"] == 1
    assert operators(writer.graph(second, memory))["LSTM"] == 2


@pytest.mark.parametrize("gates", [4, 3])
def test_layers_of_other_weights_are_not_merged(gates: int):
    writer = Unrolled(2)
    cell, other = writer.cell(gates, INPUTS), writer.cell(gates, INPUTS)
    kind, step = ("LSTM", "lstm") if gates == 4 else ("GRU", "gru")
    first = getattr(cell, step)(writer.steps[0], cell.start)
    other.memory = cell.memory
    second = getattr(other, step)(writer.steps[1], first)
    assert operators(writer.graph(second))[kind] == 2


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_first_step_with_another_bias_for_each_row_stays(kind: str):
    writer = Unrolled(1)
    cell = writer.cell(4 if kind == "lstm" else 3, INPUTS)
    cell.first = writer.weight(writer.rng.standard_normal(writer.types[cell.first].shape))
    graph = writer.graph(getattr(cell, kind)(writer.steps[0], cell.start))
    assert operators(graph)[kind.upper()] == 0


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 3, 2), (3, 1, 2, 0)])
def test_gates_in_another_order_stay(order: tuple[int, ...]):
    writer = Unrolled(1)
    cell = writer.cell(4, INPUTS)
    assert operators(writer.graph(cell.lstm(writer.steps[0], cell.start, order)))["LSTM"] == 0


def test_cells_in_double_precision_stay():
    # ONNX Runtime has neither LSTM nor GRU in it.
    writer = Unrolled(2, dtype=np.float64)
    graph = writer.graph(*writer.layer(4, writer.steps), *writer.layer(3, writer.steps))
    assert not {"LSTM", "GRU"} & set(operators(graph))


def changed(name: str, old: str, new: str) -> Rule:
    rule = RULES[name]
    assert old in rule.after + rule.where
    return replace(rule, after=rule.after.replace(old, new), where=rule.where.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lstm-cell", "(0, 3, 1, 2)", "(0, 1, 3, 2)"),
        ("lstm-cell", "memory = None if c.zero else", "memory = None if True else"),
        ("gru-cell", "(1, 0, 2)", "(0, 1, 2)"),
        ("gru-cell", "linear_before_reset=1", "linear_before_reset=0"),
        ("merge-lstm", "Concat(v, x", "Concat(x, v"),
        ("merge-lstm", "w, r, b", "w, u, b"),
        ("append-lstm", "None, s, t", "None, s, None"),
        ("append-gru-quiet", "Same(m,", "GRU("),
        ("stack-parts", "moved = of if ones_moved(of.shape, order) else", "moved = of if True else"),
    ],
)
def test_an_unsound_rule_is_caught(name: str, old: str, new: str):
    rule = changed(name, old, new)
    errors: list[str] = []
    for seed in range(50):
        try:
            verify(rule, np.random.default_rng(seed), BLOCK)
        except (RuleError, ValueError) as error:
            errors.append(str(error))
    assert any("is off by" in error or "type" in error for error in errors), errors


@pytest.mark.parametrize(
    "changes", [{"direction": "reverse"}, {"layout": 1}, {"activations": ("Tanh", "Relu")}]
)
def test_layers_of_other_kinds_are_not_merged(changes: dict[str, Any]):
    shapes = {
        "x": (1, 2, 5),
        "z": (1, 2, 5),
        "p": (1, 1, 2, 4),
        "h": (2, 4),
        "s": (1, 2, 4),
        "y": (1, 1, 2, 4),
    }
    weights = {"w": np.ones((1, 12, 5)), "r": np.ones((1, 12, 4)), "b": np.ones((1, 24))}
    arrays = {name: array.astype(np.float32) for name, array in weights.items()}
    arrays |= {"a": np.array([0]), "f": np.array([0, 1])}

    def sites(**given: Any) -> int:
        nodes = [
            node("GRU", ["x", "w", "r", "b"], ["p"], hidden_size=4, **given),
            node("Squeeze", ["p", "f"], ["h"]),
            node("Unsqueeze", ["h", "a"], ["s"]),
            node("GRU", ["z", "w", "r", "b", "", "s"], ["y"], hidden_size=4, **given),
        ]
        graph = typed_graph(nodes, shapes, arrays, ["y"])
        return sum(len(list(RULES["merge-gru-quiet"].sites(graph, anchor, BLOCK))) for anchor in graph.order)

    assert sites() == 1
    assert sites(**changes) == 0
