"""Costs of operators: an evaluator measures each once and caches it like its other measurements."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from irgym.core.cost import Call, Evaluator, Job, Measurement, Outcome
from irgym.core.target import Target
from irgym.envs.graph.costs.calibration import Calibration
from irgym.envs.graph.costs.signature import Residence, Residences, Signature, signature_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.measure.code_digest import digest_of
from irgym.measure.machine import threads_text

MEASURE = "irgym.envs.graph.costs.measuring:measure"

OBJECTIVE = "operator"
"""Name, in the cost cache, of the time of a single operator."""

CODE = (
    "envs/graph/costs/measuring.py",
    "envs/graph/costs/signature.py",
    "envs/graph/ir/writing.py",
    "envs/graph/running/sessions.py",
)
"""Sources that only the measurements of operators depend on."""

PLAIN = Calibration()
"""The plain sum."""


class Costs:
    """Costs of similar graphs, such as the states of a task, by a model of their operators.

    The cost of a graph is the sum of the costs of its operators and of the calibration's constants. An
    operator with strings or with an operand of unknown shape cannot run alone, and counts as free: no rule
    touches such operators, so they are in all states.

    Call `measure`, which measures the operators of some graphs in one batch, before `node` and `of`. `parts`
    needs no measurement: it is for jobs, whose evaluator measures missing operators.

    Args:
        toolchain: Versions of the packages that run operators.
        threads: Threads of an operator.
        target: The machine.
        residences: Where operators find the weights of the model; see `residences_of`.
        calibration: Overheads and factors of operators within a model.
    """

    def __init__(
        self,
        toolchain: str,
        threads: int,
        target: Target,
        residences: Residences,
        calibration: Calibration = PLAIN,
    ) -> None:
        self.calibration = calibration
        self._toolchain = toolchain
        self._threads = threads
        self._target = target
        self._residences = residences
        self._signatures: dict[tuple[int, tuple[bool, ...]], tuple[Node, Signature | None]] = {}
        self._parts: dict[Signature, tuple[float, Job]] = {}
        self._measured: dict[Signature, float] = {}

    def signature(self, graph: Graph, node: Node) -> Signature | None:
        """Return the signature of a node; None if it cannot run alone."""
        alone = tuple(len(graph.users[value]) == 1 for value in node.operands if value in graph.weights)
        key = id(node), alone
        found = self._signatures.get(key)
        if found is None:
            # The cache holds the node, so that no other node gets its id.
            found = self._signatures[key] = (node, signature_of(graph, node, self._residences))
        return found[1]

    def parts(self, graph: Graph) -> tuple[tuple[float, Job], ...]:
        """Return the terms of a graph's cost, as `Job.parts`."""
        signatures = (self.signature(graph, node) for node in graph.nodes.values())
        measured = [self._part(signature) for signature in signatures if signature is not None]
        return (*self._constants(graph), *measured)

    def _constants(self, graph: Graph) -> tuple[tuple[float, Job], ...]:
        calibration = self.calibration
        terms = ((calibration.run_ns, 1.0), (calibration.operator_ns, float(len(graph.nodes))))
        return tuple((constant * count, self._nanosecond) for constant, count in terms if constant)

    def _part(self, signature: Signature) -> tuple[float, Job]:
        found = self._parts.get(signature)
        if found is None:
            factor = self.calibration.factor(signature.operator)
            found = self._parts[signature] = (factor, self.job(signature))
        return found

    @cached_property
    def _nanosecond(self) -> Job:
        """A job with a known cost of one nanosecond, the unit of constants."""
        return Job(
            Call(MEASURE),
            "graph-operator://none",
            "",
            self._tools,
            OBJECTIVE,
            known=Measurement(Outcome.OK, (1.0,)),
            target=self._target.text,
        )

    @cached_property
    def _tools(self) -> str:
        return f"{self._toolchain}; {threads_text(self._threads)}; irgym's code {digest_of(*CODE)}"

    def job(self, signature: Signature) -> Job:
        """Return the job that times a single operator."""
        return Job(
            Call(MEASURE, (signature, self._threads)),
            program=f"graph-operator://{signature.operator}",
            schedule=signature.text,
            toolchain=self._tools,
            objective=OBJECTIVE,
            target=self._target.text,
        )

    def missing(self, graphs: Iterable[Graph]) -> list[Signature]:
        """Return the signatures of some graphs' operators that are not measured yet, each once."""
        wanted: dict[Signature, None] = {}
        for graph in graphs:
            for node in graph.nodes.values():
                signature = self.signature(graph, node)
                if signature is not None and signature not in self._measured:
                    wanted[signature] = None
        return list(wanted)

    def measure(self, graphs: Iterable[Graph], evaluator: Evaluator) -> int:
        """Measure, in one batch, the operators of some graphs that are not measured yet.

        Operators that ONNX Runtime does not run have an infinite cost.

        Returns:
            The number of these operators, including those that the evaluator had cached.
        """
        signatures = self.missing(graphs)
        measurements: Sequence[Measurement] = (
            evaluator.evaluate([self.job(signature) for signature in signatures]) if signatures else ()
        )
        for signature, measurement in zip(signatures, measurements, strict=True):
            self._measured[signature] = measurement.cost
        return len(signatures)

    def node(self, graph: Graph, node: Node) -> float:
        """Return the cost of an operator of a graph in nanoseconds.

        Raises:
            KeyError: It was not measured yet.
        """
        signature = self.signature(graph, node)
        if signature is None:
            return self.calibration.operator_ns
        scaled = self.calibration.factor(node.operator) * self._measured[signature]
        return self.calibration.operator_ns + scaled

    def of(self, graph: Graph) -> float:
        """Return the cost of a graph in nanoseconds.

        Raises:
            KeyError: One of its operators was not measured yet.
        """
        return self.calibration.run_ns + sum(self.node(graph, node) for node in graph.nodes.values())


def residences_of(graph: Graph, target: Target) -> Residences:
    """Return where the operators of a model find its weights.

    A weight is assumed to be still in a cache that is twice as large as the weights read since its last use;
    the other half holds results and the data of other processes. Between two uses of a weight, all weights
    are read if one operator uses it, and only weights of several operators if several do.
    """
    weights = {value for node in graph.nodes.values() for value in node.operands if value in graph.weights}
    size = {value: graph.weights[value].type.bytes for value in weights}
    shared = sum(bytes for value, bytes in size.items() if len(graph.users[value]) > 1)
    return Residences(_residence(sum(size.values()), target), _residence(shared, target))


def _residence(size: int, target: Target) -> Residence:
    *near, last = [0, *(cache.size for cache in target.caches)]
    if near and 2 * size <= near[-1]:
        return "near"
    return "cache" if 2 * size <= last else "memory"
