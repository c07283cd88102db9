"""Timing of a single operator as it would run within a model. Runs in the child process.

A model of one copy of the operator and a model of several copies are timed in turn, and the time of a copy
follows from the difference: the overhead of a run cancels out, and small operators can be measured. Each copy
has separate weights, which are evicted from the caches before a run as far as the rest of a model would evict
them. All copies share the inputs, which stay in a near cache: in a model, another operator has just computed
them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.cost import Measurement, Outcome
from irgym.core.target import Target
from irgym.envs.graph.costs.signature import Operand, Residence, Signature
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Stored, Weight, Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of
from irgym.envs.graph.running.sessions import Bound, CompileError, Opened
from irgym.measure.eviction import TWICE, reading
from irgym.measure.target import host_target
from irgym.measure.timing import Timing, interleave

Array = NDArray[Any]

ROUNDS = 9
"""Rounds of timings; the least times count."""

LONGER_NS = 400_000
"""Desired difference between the runs of the two models, in nanoseconds."""

FEWEST, MOST = 2, 64
"""Bounds of the number of additional copies in the model of several."""

WEIGHTS_BYTES = 1 << 28
"""Limit of the bytes of weights in that model, unless `FEWEST` copies need more."""

NEAR = 4
"""Bytes read to evict the private caches of a core, as a multiple of the largest one."""

LOOKUPS = ("Gather", "GatherElements")
"""Operators whose second operand holds indices along an axis of the first."""

PLACES = ("GatherND", "ScatterElements", "ScatterND")
"""Operators whose second operand holds other indices, for which 0 is always valid."""

SEED = 20261122
"""Seed of the operands."""


def measure(signature: Signature, threads: int) -> Measurement:
    """Time an operator.

    Args:
        signature: The operator.
        threads: Threads that it runs on.

    Returns:
        One sample in nanoseconds, or the error if ONNX Runtime does not run the operator alone.
    """
    timing = Timing(sample_ns=1, clock="thread" if threads == 1 else "process")  # a sample is one run
    evict = evicting(signature.residence, host_target())
    try:
        single = _Copies(signature, 1, threads)
        alone = min(first for first, _ in interleave(single.run, single.run, 2, timing))
        weights = sum(
            operand.type.bytes for operand in signature.operands if operand and operand.role == "weight"
        )
        affordable = WEIGHTS_BYTES // max(1, weights)
        more = max(FEWEST, min(MOST, round(LONGER_NS / alone), affordable))
        several = _Copies(signature, 1 + more, threads)
        pairs = interleave(several.run, single.run, ROUNDS, timing, evict)
    except CompileError as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=f"{signature.operator} by itself: {error}")
    difference = min(first for first, _ in pairs) - min(second for _, second in pairs)
    return Measurement(Outcome.OK, (max(0.0, difference / more),))


def evicting(residence: Residence, target: Target) -> Callable[[], object]:
    """Return a function that evicts weights from the caches in which a run would not find them.

    Args:
        residence: Where an operator finds them.
        target: The machine.
    """
    *near, last = [0, *(cache.size for cache in target.caches)]
    if residence == "near" or not last:
        return lambda: None
    return reading(TWICE * last if residence == "memory" else NEAR * near[-1])


class _Copies:
    """A model of several copies of an operator.

    Args:
        signature: The operator.
        count: Number of copies.
        threads: Threads that they run on.

    Raises:
        CompileError: ONNX Runtime refuses the model, before or during a run.
    """

    def __init__(self, signature: Signature, count: int, threads: int) -> None:
        graph, weights, feeds = copies(signature, count)
        model = model_of(graph, weights, whole=False)
        del model.graph.output[:-1]  # ONNX Runtime runs operators with unused results too
        opened = Opened(model, arrays_apart(graph, weights), threads)
        self._bound: Bound = opened.bound(feeds)
        self.run(1)

    def run(self, times: int) -> None:
        """Run the model a number of times."""
        self._bound.run(times)


def copies(signature: Signature, count: int) -> tuple[Graph, Weights, dict[str, Array]]:
    """Return a graph of copies with separate weights, the weights, and the shared inputs."""
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
            f"irgym.y{place}.{number}" if used else "" for place, used in enumerate(signature.outputs)
        )
        nodes.append(Node(signature.operator, tuple(names), outputs, signature.attributes, tuple(captured)))
    graph = Graph.of(nodes, types, weights, list(feeds), [node.name for node in nodes], signature.opsets)
    return graph, Weights(arrays), feeds


def _name(operand: Operand, number: int) -> str:
    """Return the name of an operand of a copy; names that subgraphs use stay."""
    if operand.captured:
        return operand.captured
    name = f"irgym.x{operand.same}"
    return f"{name}.{number}" if operand.role == "weight" else name


def _weight(name: str, operand: Operand) -> Weight:
    if operand.content is not None:
        return Literal(operand.type, operand.content)
    return Stored(name, name, operand.type)


def _rows(signature: Signature, place: int) -> int | None:
    """Return the number of rows that an operand indexes; None if it holds no indices."""
    data = signature.operands[0]
    if place != 1 or data is None or signature.operator not in (*LOOKUPS, *PLACES):
        return None
    if signature.operator in PLACES:
        return 1
    return data.type.shape[int(str(dict(signature.attributes).get("axis", 0)))]


def filled(operand: Operand, rows: int | None) -> Array:
    """Return an array for an operand.

    Floating-point numbers are random in [0.5, 1.5). Other numbers are 1 and Booleans true, since in models
    they mostly are masks that hide little.

    Args:
        operand: The operand.
        rows: If it holds indices, the number of rows that they index.
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
