"""Costs of operators: each measured once, by an evaluator, and kept where that keeps its measurements."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from irgym.core.cost import Call, Evaluator, Job, Measurement, Outcome
from irgym.core.target import Target
from irgym.envs.graph.costs.calibration import Calibration
from irgym.envs.graph.costs.signature import Residence, Residences, Signature, signature_of
from irgym.envs.graph.ir.graph import Graph, Node
from irgym.measure.code_digest import digest_of
from irgym.measure.machine import threads_text

MEASURE = "irgym.envs.graph.costs.measuring:measure"

OBJECTIVE = "operator"
"""What the cost cache calls the time of an operator by itself."""

CODE = (
    "envs/graph/costs/measuring.py",
    "envs/graph/costs/signature.py",
    "envs/graph/ir/writing.py",
    "envs/graph/running/sessions.py",
)
"""What measures operators, beside what measures everything."""

PLAIN = Calibration()
"""The plain sum."""


class Costs:
    """What the operators of graphs cost that have much in common, such as the states of a task.

    The cost of a graph is the sum of those of its operators, and the calibration's constants. Operators that
    an operand of unknown shape or of texts keeps from running by themselves count as nothing: no rule touches
    them, so they are in all states.

    `measure` has the operators of some graphs measured in one batch; only then can their costs be told.
    `parts` needs nothing: it is for jobs, whose evaluator measures what it does not know.

    Args:
        toolchain: Versions of what runs operators.
        threads: Threads of an operator.
        target: The machine.
        residences: Where operators find the weights of the model; see `residences_of`.
        calibration: What becomes of the operators' own times.
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

    def signature(self, graph: Graph, one: Node) -> Signature | None:
        """Return what the time of a node depends on; None where it cannot run by itself."""
        alone = tuple(len(graph.users[value]) == 1 for value in one.operands if value in graph.weights)
        key = id(one), alone
        found = self._signatures.get(key)
        if found is None:
            # The node is kept, so that no other one gets its id.
            found = self._signatures[key] = (one, signature_of(graph, one, self._residences))
        return found[1]

    def parts(self, graph: Graph) -> tuple[tuple[float, Job], ...]:
        """Return what the cost of a graph is the sum of, as `Job.parts`."""
        signatures = (self.signature(graph, one) for one in graph.nodes.values())
        measured = [self._part(one) for one in signatures if one is not None]
        return (*self._constants(graph), *measured)

    def _constants(self, graph: Graph) -> tuple[tuple[float, Job], ...]:
        calibration = self.calibration
        terms = ((calibration.run_ns, 1.0), (calibration.operator_ns, float(len(graph.nodes))))
        return tuple((constant * count, self._one) for constant, count in terms if constant)

    def _part(self, signature: Signature) -> tuple[float, Job]:
        found = self._parts.get(signature)
        if found is None:
            factor = self.calibration.factor(signature.operator)
            found = self._parts[signature] = (factor, self.job(signature))
        return found

    @cached_property
    def _one(self) -> Job:
        """A nanosecond."""
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
        """Return the request for the time of an operator by itself."""
        return Job(
            Call(MEASURE, (signature, self._threads)),
            program=f"graph-operator://{signature.operator}",
            schedule=signature.text,
            toolchain=self._tools,
            objective=OBJECTIVE,
            target=self._target.text,
        )

    def missing(self, graphs: Iterable[Graph]) -> list[Signature]:
        """Return what operators of some graphs were not measured yet, each once."""
        wanted: dict[Signature, None] = {}
        for graph in graphs:
            for one in graph.nodes.values():
                signature = self.signature(graph, one)
                if signature is not None and signature not in self._measured:
                    wanted[signature] = None
        return list(wanted)

    def measure(self, graphs: Iterable[Graph], evaluator: Evaluator) -> int:
        """Have an evaluator measure, in one batch, what operators of some graphs were not measured yet.

        Operators that ONNX Runtime does not run have an infinite cost.

        Returns:
            How many these were, those included that the evaluator has recorded.
        """
        signatures = self.missing(graphs)
        measurements: Sequence[Measurement] = (
            evaluator.evaluate([self.job(one) for one in signatures]) if signatures else ()
        )
        for signature, measurement in zip(signatures, measurements, strict=True):
            self._measured[signature] = measurement.cost
        return len(signatures)

    def node(self, graph: Graph, one: Node) -> float:
        """Return the cost of one operator of a graph in nanoseconds.

        Raises:
            KeyError: It was not measured yet.
        """
        signature = self.signature(graph, one)
        if signature is None:
            return self.calibration.operator_ns
        own = self.calibration.factor(one.operator) * self._measured[signature]
        return self.calibration.operator_ns + own

    def of(self, graph: Graph) -> float:
        """Return the cost of a graph in nanoseconds.

        Raises:
            KeyError: One of its operators was not measured yet.
        """
        return self.calibration.run_ns + sum(self.node(graph, one) for one in graph.nodes.values())


def residences_of(graph: Graph, target: Target) -> Residences:
    """Return where the operators of a model find its weights.

    A weight is still in a cache that has room for twice as much as was read since it was read last; the other
    half is for what operators compute, and for others who share it. For a weight of one operator that is all
    weights; for one that several use, all such.
    """
    weights = {value for one in graph.nodes.values() for value in one.operands if value in graph.weights}
    size = {value: graph.weights[value].type.bytes for value in weights}
    shared = sum(bytes for value, bytes in size.items() if len(graph.users[value]) > 1)
    return Residences(_residence(sum(size.values()), target), _residence(shared, target))


def _residence(size: int, target: Target) -> Residence:
    *near, last = [0, *(cache.size for cache in target.caches)]
    if near and 2 * size <= near[-1]:
        return "near"
    return "cache" if 2 * size <= last else "memory"
