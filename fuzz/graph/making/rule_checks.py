"""Checks of a rule on an instance: results before and after, in ONNX Runtime and in numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from fuzz.graph.making.odd import Odd, plain
from fuzz.graph.making.perturbed import perturbed
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import Instance, error_of, instance_of, run
from irgym.envs.graph.task import block_of
from irgym.measure.target import target_of

Array = NDArray[Any]

CLOSE = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-6, "bfloat16": 1e-1}
"""Greatest accepted difference in ONNX Runtime, relative to the greatest value."""

CLOSE_IN_DOUBLES = 1e-5
"""Greatest accepted difference in numpy, in float64: numbers in rules and attributes have 24 bits."""


class Refused(Exception):
    """ONNX Runtime refuses a model, or fails when it runs."""


@dataclass(frozen=True)
class Fault:
    """A fault of a rule on an instance.

    Attributes:
        kind: Kind of the fault: `error`, `type`, `refused`, `numpy` or `result`.
        detail: Description.
        graph: The instance.
        after: The graph after the rule, if there is one.
    """

    kind: str
    detail: str
    graph: Graph
    after: Graph | None = None


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        valid: Whether ONNX Runtime runs the instance.
        sites: Number of sites where the rule applied.
        fault: The fault, if there is one.
    """

    valid: bool
    sites: int = 0
    fault: Fault | None = None


def in_runtime(graph: Graph, feeds: Sequence[dict[str, Array]], weights: Weights) -> list[list[Array]]:
    """Return the results of a graph on each of some inputs.

    Raises:
        Refused: ONNX Runtime refuses it.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        model = model_of(graph, weights, whole=True).SerializeToString()
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        return [
            [
                np.asarray(result)
                for result in session.run(list(graph.outputs), {name: given[name] for name in graph.inputs})
            ]
            for given in feeds
        ]
    except Exception as error:
        # ONNX Runtime raises RuntimeError, and exceptions without a common base. ValueError: an attribute
        # cannot hold a number.
        from_runtime = type(error).__module__.startswith("onnxruntime")
        if not from_runtime and not isinstance(error, RuntimeError | ValueError):
            raise
        raise Refused(str(error).partition("\n")[0]) from error


def built(rule: Rule, odd: Odd, block: int) -> Instance | None:
    """Return the graph of a sample; None if its operands do not fit each other."""
    try:
        with np.errstate(all="ignore"):
            instance = instance_of(rule, odd.sample, block, odd.precision, odd.opset)
            for change in odd.after:
                instance = change(instance)
    except (OperatorError, ValueError, IndexError, KeyError, TypeError, ArithmeticError, AttributeError):
        return None  # the ways in which type rules refuse operands
    return instance if instance.anchor in instance.graph.nodes else None


def checked(note: Callable[[str], None], rule: Rule, odd: Odd, block: int) -> Checked:
    """Apply a rule to an instance at each of its sites, and compare the results.

    Args:
        note: Called when the instance has run: if the process dies later, the rule is at fault.
        rule: The rule.
        odd: The sample.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
    """
    instance = built(rule, odd, block)
    if instance is None:
        return Checked(False)
    graph = instance.graph
    feeds = _feeds(instance)
    try:
        before = in_runtime(graph, feeds, instance.weights)
    except Refused:
        return Checked(False)
    said = [(graph.types[name].dtype, graph.types[name].shape) for name in graph.outputs]
    if [(str(result.dtype), result.shape) for result in before[0]] != said:
        return Checked(False)  # no readable model, whose types are those of its results
    note("after")
    try:
        sites = list(rule.sites(graph, graph.nodes[instance.anchor], block))
    except Exception as error:  # noqa: BLE001 - any exception of a condition is a fault
        return Checked(True, 0, Fault("error", f"condition: {type(error).__name__}: {error}", graph))
    for site in sites:
        try:
            after = graph.rewritten(rule.rewrite(graph, site, block))
        except Exception as error:  # noqa: BLE001 - and so is any exception of a rule at its site
            return Checked(True, len(sites), Fault("error", f"{type(error).__name__}: {error}", graph))
        fault = _compared(instance, after, before, feeds, odd, block)
        if fault is not None:
            return Checked(True, len(sites), fault)
    return Checked(True, len(sites))


def _feeds(instance: Instance) -> list[dict[str, Array]]:
    """Return the inputs of an instance, and the same with zeros for floating-point numbers."""
    own = dict(instance.feeds)
    return [
        own,
        {name: np.zeros_like(array) if array.dtype.kind == "f" else array for name, array in own.items()},
    ]


def _compared(
    instance: Instance,
    after: Graph,
    before: Sequence[Sequence[Array]],
    feeds: Sequence[dict[str, Array]],
    odd: Odd,
    block: int,
) -> Fault | None:
    graph = instance.graph
    if after.outputs != graph.outputs:
        return Fault("type", f"outputs {graph.outputs} became {after.outputs}", graph, after)
    try:
        got = in_runtime(after, feeds, instance.weights)
    except Refused as error:
        return Fault("refused", str(error), graph, after)
    for wanted, now in zip(before, got, strict=True):
        for name, expected, other in zip(graph.outputs, wanted, now, strict=True):
            if (expected.dtype, expected.shape) != (other.dtype, other.shape):
                return Fault(
                    "type",
                    f"{name} was {expected.dtype}{list(expected.shape)}, is {other.dtype}{list(other.shape)}",
                    graph,
                    after,
                )
            said = _difference(name, expected, other, odd.precision)
            if said:
                return Fault("result", said, graph, after)
    return None if odd.extreme else _in_doubles(instance, after, odd, block)


def _difference(name: str, expected: Array, other: Array, precision: str) -> str:
    """Return how results differ; empty if they agree."""
    if expected.dtype.kind != "f":
        same = np.array_equal(expected, other)
        return "" if same else f"{name} is another: {expected.ravel()[:4]} became {other.ravel()[:4]}"
    wide, now = expected.astype(np.float64), other.astype(np.float64)
    if not np.array_equal(np.isnan(wide), np.isnan(now)) or not np.array_equal(
        np.isinf(wide) * np.sign(wide), np.isinf(now) * np.sign(now), equal_nan=True
    ):
        return f"{name} is not finite elsewhere: {wide.ravel()[:4]} became {now.ravel()[:4]}"
    there = np.isfinite(wide)
    greatest = max(float(np.abs(wide[there]).max(initial=0)), 1e-30)
    error = float(np.abs(wide[there] - now[there]).max(initial=0)) / greatest
    allowed = CLOSE.get(str(expected.dtype), 1e-3)
    return "" if error <= allowed else f"{name} is off by {error:.1e} of its greatest value {greatest:.3g}"


def _in_doubles(instance: Instance, after: Graph, odd: Odd, block: int) -> Fault | None:
    """Compare in double precision, in numpy."""
    weights = _Doubled(instance.weights)
    feeds = {name: _doubled(array) for name, array in instance.feeds.items()}
    with np.errstate(all="ignore"):
        try:
            before = run(instance.graph, feeds, weights, block)
        except (OperatorError, ValueError, IndexError):
            return None  # the reference does not support an operator of the instance
        try:
            now = run(after, feeds, weights, block)
        except Exception as error:  # noqa: BLE001 - the reference must support the replacement too
            return Fault("numpy", f"{type(error).__name__}: {error}", instance.graph, after)
    for name, expected, other in zip(instance.graph.outputs, before, now, strict=True):
        error = error_of(np.asarray(expected), np.asarray(other))
        if not error <= (CLOSE_IN_DOUBLES if odd.precision != "float16" else CLOSE["float16"]):
            return Fault("result", f"{name} is off by {error:.1e} in double precision", instance.graph, after)
    return None


def _doubled(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


class _Doubled(Weights):
    """Weights in double precision."""

    def __init__(self, weights: Weights) -> None:
        super().__init__({})
        self._of = weights

    def array(self, weight: Any) -> Array:
        return _doubled(self._of.array(weight))


def runs(instance: Instance) -> bool:
    """Say whether ONNX Runtime runs an instance."""
    try:
        in_runtime(instance.graph, [dict(instance.feeds)], instance.weights)
    except Refused:
        return False
    return True


def instance_in(rule: Rule, rng: np.random.Generator) -> Instance | None:
    """Return a random instance of a rule in float32, sometimes made odd; None if operands do not fit."""
    odd = plain(rule, rng)
    for _ in range(int(rng.integers(3))):
        odd = perturbed(odd, rng)
    return built(rule, odd, block_of(target_of(None)))
