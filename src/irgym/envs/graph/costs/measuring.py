"""What runs in the child: one operator by itself, timed as it would run within a model.

A model of one operator and a model of several are timed in turn, and the difference is divided: what a run
costs in itself drops out, and small operators can be measured. Each has weights of its own, which are evicted
from the caches before a run as far as other operators of a model would do it; the inputs are the same ones,
and near, since in a model another operator has just computed them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.cost import Measurement, Outcome
from irgym.core.target import Target
from irgym.envs.graph.costs.signature import Operand, Residence, Signature
from irgym.envs.graph.ir.graph import Graph, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Stored, Weight, Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of
from irgym.envs.graph.running.sessions import Bound, CompileError, Opened
from irgym.measure.target import host_target
from irgym.measure.timing import Timing, interleave

Array = NDArray[Any]

ROUNDS = 9
"""Rounds of timings, of which the least times count."""

LONGER_NS = 400_000
"""How much longer the run of the model of several operators is to take, where they are many enough."""

FEWEST, MOST = 2, 64
"""How many operators that model has more."""

WEIGHTS_BYTES = 1 << 28
"""Most bytes of its weights, unless the fewest operators have more."""

NEAR = 4
"""How many times the size of the last cache of one core is read to evict what it holds."""

FAR = 2
"""The same of the last cache of all."""

LOOKUPS = ("Gather", "GatherElements")
"""Operators whose second operand holds places in the first along an axis."""

PLACES = ("GatherND", "ScatterElements", "ScatterND")
"""Those whose second operand holds other places, of which 0 always is one."""

SEED = 20261122
"""Seed of the numbers that operators compute with."""


def measure(signature: Signature, threads: int) -> Measurement:
    """Time an operator.

    Args:
        signature: The operator.
        threads: Threads that it runs on.

    Returns:
        One sample, nanoseconds; or what ONNX Runtime says where it refuses the operator by itself.
    """
    timing = Timing(sample_ns=1, clock="thread" if threads == 1 else "process")  # a sample is one run
    evict = evicting(signature.residence, host_target())
    try:
        one = _Copies(signature, 1, threads)
        alone = min(first for first, _ in interleave(one.run, one.run, 2, timing))
        weights = sum(one.type.bytes for one in signature.operands if one and one.role == "weight")
        affordable = WEIGHTS_BYTES // max(1, weights)
        more = max(FEWEST, min(MOST, round(LONGER_NS / alone), affordable))
        several = _Copies(signature, 1 + more, threads)
        pairs = interleave(several.run, one.run, ROUNDS, timing, evict)
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=f"{signature.operator} by itself: {error}")
    difference = min(first for first, _ in pairs) - min(second for _, second in pairs)
    return Measurement(Outcome.OK, (max(0.0, difference / more),))


def evicting(residence: Residence, target: Target) -> Callable[[], object]:
    """Return what evicts weights from those caches in which a run does not find them.

    Args:
        residence: Where an operator finds them.
        target: The machine.
    """
    *near, last = [0, *(cache.size for cache in target.caches)]
    if residence == "near" or not last:
        return lambda: None
    read = np.ones((FAR * last if residence == "memory" else NEAR * near[-1]) // 8)
    return read[::8].sum


class _Copies:
    """A model of some equal operators.

    Args:
        signature: The operator.
        count: How many.
        threads: Threads that they run on.

    Raises:
        CompileError: ONNX Runtime refuses it, before or during a run.
    """

    def __init__(self, signature: Signature, count: int, threads: int) -> None:
        graph, weights, feeds = copies(signature, count)
        model = model_of(graph, weights, whole=False)
        del model.graph.output[:-1]  # ONNX Runtime runs operators that nobody uses
        opened = Opened(model, arrays_apart(graph, weights), threads)
        self._bound: Bound = opened.bound(feeds)
        self.run(1)

    def run(self, times: int) -> None:
        """Run it so many times."""
        self._bound.run(times)


def copies(signature: Signature, count: int) -> tuple[Graph, Weights, dict[str, Array]]:
    """Return a graph of equal operators with weights of their own, the weights, and the inputs of all."""
    types: dict[str, TensorType] = {}
    weights: dict[str, Weight] = {}
    arrays: dict[str, Array] = {}
    feeds: dict[str, Array] = {}
    nodes: list[Node] = []
    for number in range(count):
        names: list[str] = []
        captured: list[str] = []
        for place, operand in enumerate(signature.operands):
            name = "" if operand is None else _name(operand, number)
            (captured if operand and operand.captured else names).append(name)
            if operand is None or name in types:
                continue
            types[name] = operand.type
            array = filled(operand, _rows(signature, place))
            if operand.role == "value":
                feeds[name] = array
            else:
                weights[name] = _weight(name, operand)
                arrays[name] = array
        outputs = tuple(
            f"irgym.y{place}.{number}" if one else "" for place, one in enumerate(signature.outputs)
        )
        nodes.append(Node(signature.operator, tuple(names), outputs, signature.attributes, tuple(captured)))
    graph = Graph.of(nodes, types, weights, list(feeds), [one.name for one in nodes], signature.opsets)
    return graph, Weights(arrays), feeds


def _name(operand: Operand, number: int) -> str:
    """Return the name of an operand of a copy; names that graphs within the operator use stay."""
    if operand.captured:
        return operand.captured
    name = f"irgym.x{operand.same}"
    return f"{name}.{number}" if operand.role == "weight" else name


def _weight(name: str, operand: Operand) -> Weight:
    if operand.content is not None:
        return Literal(operand.type, operand.content)
    return Stored(name, name, operand.type)


def _rows(signature: Signature, place: int) -> int | None:
    """Return among how many rows an operand chooses; None where it chooses none."""
    data = signature.operands[0]
    if place != 1 or data is None or signature.operator not in (*LOOKUPS, *PLACES):
        return None
    if signature.operator in PLACES:
        return 1
    return data.type.shape[int(str(dict(signature.attributes).get("axis", 0)))]


def filled(operand: Operand, rows: int | None) -> Array:
    """Return an array for an operand.

    Floating-point numbers are random ones from 0.5 to 1.5. Other numbers are 1 and truth values true: in
    models they mostly are masks that hide little.

    Args:
        operand: The operand.
        rows: Where its whole numbers choose rows, how many there are.
    """
    kind = operand.type
    if operand.content is not None:
        return np.frombuffer(operand.content, kind.dtype).reshape(kind.shape)
    random = np.random.default_rng(SEED)
    if "float" in kind.dtype:
        return np.asarray(random.random(kind.shape, np.float32) + np.float32(0.5), kind.dtype, order="C")
    if rows is not None:
        return np.asarray(random.integers(0, rows, kind.shape), kind.dtype)
    return np.ones(kind.shape, kind.dtype)
