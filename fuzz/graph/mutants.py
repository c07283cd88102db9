"""Mutants of whole networks: the wrong ones that the checks of whole models accept.

Each mutant is a very small network of the data sets with a change to an operator: another operator,
attribute, order of operands or constant, or the operator removed. The checks judge every mutant with two
seeds. An accepted mutant is compared with the network on further inputs of many sizes: if it differs
there by far, it was wrongly accepted; otherwise it counts as equal. No inputs can be expected to show all
mutants, so a small share may be accepted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.fuzzer import Tally
from fuzz.graph.making.apart import Apart, Died
from irgym.base.errors import ProgramError
from irgym.envs.graph.checking.checks import Checks, checks_on
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.weights import Literal, Weights
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import CompileError, Program

Array = NDArray[Any]

TEXT = "layers=1&hidden=32&heads=2&sequence=8&vocabulary=64"

NETWORKS = (
    f"bert?{TEXT}",
    f"gpt2?{TEXT}",
    f"t5_encoder?{TEXT}",
    f"deberta?{TEXT}",
    f"llama?{TEXT}",
    f"clip_text?{TEXT}",
    f"dalle?{TEXT}&grid=2",
    "whisper_encoder?layers=1&hidden=32&heads=2&sequence=8",
    "vit_b_16?size=32&layers=1&hidden=32&heads=2",
    "emformer?layers=1&hidden=16&heads=2&segments=2&segment=4&right=1&left=4",
    "unet?size=32&levels=1&width=4",
    "preresnet?size=32&blocks=1&width=8",
    "drawn_cnn?size=64&seed=101",
    "drawn_rnn?hidden=16&sequence=3&seed=101",
    "lstm?layers=1&hidden=32&sequence=3",
    "gru?layers=1&hidden=32&sequence=3",
    "nasrnn?cells=2&hidden=32",
)
"""The networks."""

OPERATORS: Mapping[str, tuple[str, ...]] = {
    "Add": ("Sub",),
    "AveragePool": ("MaxPool",),
    "Ceil": ("Floor",),
    "Cos": ("Sin",),
    "Erf": ("Tanh",),
    "Equal": ("GreaterOrEqual", "LessOrEqual"),
    "Floor": ("Ceil", "Round"),
    "Gelu": ("Relu", "Softplus"),
    "GlobalAveragePool": ("GlobalMaxPool",),
    "GreaterOrEqual": ("Greater",),
    "Greater": ("GreaterOrEqual",),
    "LayerNormalization": (),
    "LessOrEqual": ("Less",),
    "Less": ("LessOrEqual",),
    "Max": ("Sum",),
    "MaxPool": ("AveragePool",),
    "Min": ("Max",),
    "Mul": ("Add",),
    "ReduceMax": ("ReduceMean",),
    "ReduceMean": ("ReduceMax", "ReduceL1"),
    "ReduceSum": ("ReduceMean", "ReduceL1"),
    "Relu": ("Abs", "HardSwish", "LeakyRelu"),
    "Sigmoid": ("HardSigmoid", "Tanh"),
    "Sin": ("Tanh",),
    "Softmax": ("LogSoftmax", "Hardmax"),
    "Softplus": ("Relu",),
    "Sqrt": ("Abs",),
    "Sub": ("Add",),
    "Tanh": ("Softsign", "Sigmoid"),
}
"""Operators that replace others in mutants."""

SAME_TYPE = frozenset(
    {"Add", "Mul", "Sub", "Div", "Relu", "Gelu", "Erf", "Clip", "Max", "Min", "Where", "Softmax", "Tanh"}
    | {
        "Sigmoid",
        "Sqrt",
        "LayerNormalization",
        "BatchNormalization",
        "Pow",
        "Abs",
        "Neg",
        "LeakyRelu",
        "Cast",
    }
)
"""Operators that may be removed if an operand has the type of the result."""

FAR = 100.0
"""Error on further inputs, relative to the accepted one, above which a mutant counts as wrong."""


EACH = 12
"""Mutants of a seed, all of one network."""

BARS = {"accepted": 0.05}
"""Greatest share of the mutants that may be wrongly accepted."""


def mutants(graph: Graph, weights: Weights) -> Iterator[tuple[str, Graph]]:
    """Yield graphs with a change to an operator, and a description of it."""
    for node in graph.order:
        for other in OPERATORS.get(node.operator, ()):
            inputs = (
                node.inputs[:1] if other in ("Abs", "ReduceL1") and len(node.inputs) == 1 else node.inputs
            )
            yield (
                f"{other} for {node.operator}",
                _with(graph, node, replace(node, operator=other, inputs=inputs)),
            )
        for name, value in node.attributes:
            for said, changed in _changed(name, value):
                attributes = tuple((key, changed if key == name else old) for key, old in node.attributes)
                yield f"{node.operator} {said}", _with(graph, node, replace(node, attributes=attributes))
        if node.operator in ("Sub", "Div", "MatMul", "Pow", "Where", "Concat", "Less", "Greater"):
            turned = (
                (*node.inputs[:-2], node.inputs[-1], node.inputs[-2]) if len(node.inputs) > 1 else node.inputs
            )
            yield f"{node.operator} with operands exchanged", _with(graph, node, replace(node, inputs=turned))
        yield from _left_out(graph, node)
        yield from _without_bias(graph, node)
        yield from _other_constants(graph, node, weights)
        yield from _written_out(graph, node)


def _with(graph: Graph, old: Node, *new: Node, weights: Mapping[str, Literal] | None = None) -> Graph:
    nodes = [node for kept in graph.order for node in (new if kept.name == old.name else (kept,))]
    changed = {**graph.weights, **(weights or {})}
    types = {**graph.types, **{name: weight.type for name, weight in (weights or {}).items()}}
    return Graph.of(nodes, types, changed, graph.inputs, graph.outputs, graph.opsets)


def _changed(name: str, value: Attribute) -> Iterator[tuple[str, Attribute]]:
    if isinstance(value, float):
        for factor in (0.0, 0.1, 1.01, 10.0):
            yield f"{name} {value:g} times {factor:g}", value * factor
    elif isinstance(value, int):
        for changed in (value - 1, value + 1, 1 - value):
            yield f"{name} {value} as {changed}", changed
    elif isinstance(value, tuple) and len(value) > 1:
        yield f"{name} reversed", value[::-1]
        if len(set(value)) > 1:
            yield f"{name} rotated", (*value[1:], value[0])
            last = (*value[:-2], value[-1], value[-2])
            yield f"{name} with its last two exchanged", last


def _left_out(graph: Graph, node: Node) -> Iterator[tuple[str, Graph]]:
    """Yield the graph without a node, with an operand of it in place of its result."""
    for place, name in enumerate(node.inputs):
        kind = graph.types.get(name)
        if node.operator in SAME_TYPE and kind is not None and kind == graph.types.get(node.name):
            passing = Node("Identity", (name,), (node.name,))
            yield f"operand {place} of {node.operator} for its result", _with(graph, node, passing)


def _without_bias(graph: Graph, node: Node) -> Iterator[tuple[str, Graph]]:
    if node.operator in ("Conv", "Gemm", "LayerNormalization") and len(node.inputs) == 3:
        yield f"{node.operator} without its bias", _with(graph, node, replace(node, inputs=node.inputs[:2]))


def _other_constants(graph: Graph, node: Node, weights: Weights) -> Iterator[tuple[str, Graph]]:
    """Yield the graph with another constant as an operand of a node."""
    for place, name in enumerate(node.inputs):
        if name not in graph.weights or not graph.weights[name].type.size:
            continue
        array = weights.array(graph.weights[name])
        for said, other in _changed_array(array):
            weight = Literal(graph.weights[name].type, np.ascontiguousarray(other).tobytes())
            inputs = (*node.inputs[:place], "mutant", *node.inputs[place + 1 :])
            made = _with(graph, node, replace(node, inputs=inputs), weights={"mutant": weight})
            yield f"operand {place} of {node.operator} {said}", made


def _changed_array(array: Array) -> Iterator[tuple[str, Array]]:
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            yield "times 1.01", array * array.dtype.type(1.01)
            yield "times 1.0001", array * array.dtype.type(1.0001)
        if array.size > 1:
            found = array.copy()
            found.reshape(-1)[array.size // 2] = 0
            yield "with one number 0", found
            yield "reversed", array[::-1]
        if np.abs(array).max() > 1e8:
            yield "of 1e4 at most", np.clip(array, -1e4, 1e4).astype(array.dtype)
    elif array.dtype.kind == "i":
        for step in (-1, 1):
            found = array.copy()
            found.reshape(-1)[0] += step
            yield f"with its first number {step:+d}", found
    elif array.dtype.kind == "b":
        found = array.copy()
        found.reshape(-1)[-1] ^= True
        yield "with its last truth turned", found


def _written_out(graph: Graph, node: Node) -> Iterator[tuple[str, Graph]]:
    """Yield softmax and similar operators with exponentials that overflow, and Where as a sum."""
    y, kind = node.name, graph.types.get(node.name)
    if kind is None or not node.inputs:
        return
    x = node.inputs[0]
    if node.operator == "Softmax":
        axis = node.attribute("axis", -1)
        axes = Literal(replace(kind, dtype="int64", shape=(1,)), np.array([axis], np.int64).tobytes())
        parts = (
            Node("Exp", (x,), ("mutant_e",)),
            Node("ReduceSum", ("mutant_e", "mutant_axes"), ("mutant_s",)),
            Node("Div", ("mutant_e", "mutant_s"), (y,)),
        )
        yield (
            "Softmax without subtracting the maximum",
            _with(graph, node, *parts, weights={"mutant_axes": axes}),
        )
    if node.operator == "Sigmoid":
        unit = Literal(replace(kind, shape=()), np.ones((), kind.dtype).tobytes())
        parts = (
            Node("Exp", (x,), ("mutant_e",)),
            Node("Add", ("mutant_e", "mutant_1"), ("mutant_s",)),
            Node("Div", ("mutant_e", "mutant_s"), (y,)),
        )
        yield "Sigmoid that overflows", _with(graph, node, *parts, weights={"mutant_1": unit})


class Further:
    """Results of a network on further inputs of many sizes.

    Args:
        path: The network.
        seed: Seed of the inputs.
    """

    def __init__(self, path: str, seed: int) -> None:
        proto, graph, weights, _ = model_at(path)
        original = Program(graph, weights, 1)
        inputs, ranges = inputs_of(proto), ranges_of(proto)
        self.feeds: list[dict[str, Array]] = []
        for place, scale in enumerate(np.logspace(-7, 2.5, 39)):
            values = draw(inputs, ranges, 1000 + seed + place)
            self.feeds.append({key: _scaled(array, scale) for key, array in values.items()})
        self.results = [original.run(feeds) for feeds in self.feeds]

    def difference(self, program: Program) -> float:
        """Return the greatest error of the results of a mutant, relative to the size of each row."""
        worst = 0.0
        for feeds, wanted in zip(self.feeds, self.results, strict=True):
            for expected, other in zip(wanted, program.run(feeds), strict=True):
                if expected.dtype.kind != "f":
                    worst = max(worst, float(np.mean(expected != other)))
                    continue
                if not np.array_equal(np.isfinite(expected), np.isfinite(other)):
                    return float("inf")
                kept = np.isfinite(expected)
                size = float(np.abs(expected[kept]).max(initial=1e-30))
                off = np.abs(expected[kept].astype(np.float64) - other[kept])
                worst = max(worst, float(off.max(initial=0.0)) / size)
        return worst


def _scaled(array: Array, scale: float) -> Array:
    return np.asarray(array * scale).astype(array.dtype) if array.dtype.kind == "f" else array


def verdict(mutant: Graph, weights: Weights, checks: Sequence[Checks], further: Further) -> tuple[str, float]:
    """Return the verdict of the checks on a mutant, and its greatest error on further inputs."""
    try:
        program = Program(mutant, weights, 1)
        if not all(check.judge(program.run).checked for check in checks):
            return "caught", 0.0
        off = further.difference(program)
    except (CompileError, ValueError):
        return "broken", 0.0
    return ("equal" if off < FAR * float(np.finfo(np.float32).eps) else "accepted"), off


def run(seed: int) -> Tally:
    """Judge mutants of a network."""
    tally = Tally(bars=BARS)
    uri, turn = NETWORKS[seed % len(NETWORKS)], seed // len(NETWORKS)
    try:
        task = GRAPH.task(f"graph://{uri}")
    except ProgramError:
        tally.notes["networks refused"] += 1
        return tally
    weights = model_at(task.path).weights
    checks = [checks_on(task.path, 2, turn + way) for way in range(2)]
    further = Further(task.path, turn)
    every = list(mutants(task.graph, weights))
    drawn = np.random.default_rng(seed).permutation(len(every))[:EACH].tolist()

    def judged(note: Callable[[str], None], place: int) -> tuple[str, float]:
        del note
        return verdict(every[place][1], weights, checks, further)

    with closing(Apart(judged)) as apart:
        for place in drawn:
            try:
                outcome, off = apart(place)
            except Died:
                outcome, off = "broken", 0.0
            tally.add(outcome)
            if outcome == "accepted":
                tally.remarks.append(f"{uri}: {every[place][0]} is accepted though off by {off:.1e}")
    return tally
