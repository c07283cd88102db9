"""Signatures of operators: everything that the time of an operator depends on."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import NamedTuple, TypeAlias

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node, Opaque
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Literal, Weight, Weights

Residence: TypeAlias = Choice["near", "cache", "memory"]
"""Where an operator finds a weight: in a private cache of its core, in the last-level cache, or in memory."""


class Residences(NamedTuple):
    """Where the operators of a model find its weights.

    Attributes:
        own: Weights of a single operator, which are read once per run.
        shared: Weights of several operators, as in an unrolled recurrence, which are read again within a run.
    """

    own: Residence
    shared: Residence


FARNESS: Sequence[Residence] = ("near", "cache", "memory")
"""Residences, the nearest first."""

FEW = 8
"""Largest floating-point weight, in elements, whose values count, such as an exponent."""

SMALL = 64
"""Largest integer or Boolean weight, in elements, whose values count, such as a shape."""


@dataclass(frozen=True)
class Operand:
    """An operand of an operator.

    Attributes:
        type: Its type.
        role: `value` for an input or result, in a near cache; `weight` for a weight that has to be fetched;
            `near` for a weight in a near cache.
        content: The elements of a small weight, in row-major order; None if irrelevant or unknown.
        same: Place of the first operand that is the same value.
        captured: The name by which subgraphs use it; empty for an input.
    """

    type: TensorType
    role: Choice["value", "weight", "near"]
    content: bytes | None
    same: int
    captured: str = ""

    @property
    def text(self) -> str:
        """The operand in the text of a signature."""
        mark = {"value": "", "weight": "*", "near": "&"}[self.role]
        content = "" if self.content is None else f"={_short(self.content)}"
        name = f"{self.captured}:" if self.captured else ""
        shape = ",".join(map(str, self.type.shape))
        return f"{name}{mark}{self.type.dtype}[{shape}]{content}@{self.same}"


@dataclass(frozen=True)
class Signature:
    """Everything that the time of an operator depends on, except the machine.

    Attributes:
        operator: As `Node.operator`.
        operands: Its inputs, None for those that are left out, followed by captured values.
        outputs: Which outputs it makes.
        attributes: As `Node.attributes`.
        opsets: Pairs of domain and version that it may depend on.
        residence: The farthest place that a weight is fetched from; `near` without weights.
        text: All of these as text, the key in the cost cache.
    """

    operator: str
    operands: tuple[Operand | None, ...]
    outputs: tuple[bool, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    opsets: tuple[tuple[str, int], ...]
    residence: Residence
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        operands = ", ".join("-" if operand is None else operand.text for operand in self.operands)
        outputs = "".join(str(int(made)) for made in self.outputs)
        attributes = " ".join(f"{name}={_written(value)}" for name, value in self.attributes)
        opsets = " ".join(f"{domain or 'onnx'}:{version}" for domain, version in self.opsets)
        parts = (f"{self.operator}({operands})", outputs, attributes, opsets, self.residence)
        object.__setattr__(self, "text", "; ".join(parts))


def _written(value: Attribute) -> str:
    if isinstance(value, Opaque):
        return f"{value.kind}:{_short(value.content)}"
    return repr(value)


def _short(content: bytes) -> str:
    """Return bytes in hexadecimal; if they are many, their digest."""
    return (content if len(content) <= FEW else hashlib.blake2b(content, digest_size=16).digest()).hex()


def signature_of(graph: Graph, node: Node, residences: Residences) -> Signature | None:
    """Return the signature of a node; None if an operand has an unknown type or holds strings.

    Args:
        graph: The graph.
        node: The node.
        residences: Where the operators of the model find its weights.
    """
    inner = any(isinstance(value, Opaque) for _, value in node.attributes)
    values = (*node.inputs, *node.captured)
    operands: list[Operand | None] = []
    farthest: Residence = "near"
    for place, value in enumerate(values):
        kind = graph.types.get(value)
        if value and (kind is None or kind.dtype == "str"):
            return None
        captured = value if place >= len(node.inputs) else ""
        if kind is None:
            operands.append(None)
            continue
        found = _residence(graph, value, residences)
        if found is not None and FARNESS.index(found) > FARNESS.index(farthest):
            farthest = found
        role = "value" if found is None else "near" if found == "near" else "weight"
        content = _content(graph.weights[value]) if value in graph.weights else None
        operands.append(Operand(kind, role, content, values.index(value), captured))
    domain = node.operator.rpartition(".")[0]
    return Signature(
        node.operator,
        tuple(operands),
        tuple(bool(value) for value in node.outputs),
        node.attributes,
        tuple(pair for pair in graph.opsets if inner or pair[0] in ("", domain)),
        farthest,
    )


def _residence(graph: Graph, value: str, residences: Residences) -> Residence | None:
    """Return where a weight is found; None for other values."""
    if value not in graph.weights:
        return None
    if _content(graph.weights[value]) is not None:
        return "near"  # too small to matter
    return residences.own if len(graph.users[value]) == 1 else residences.shared


def _content(weight: Weight) -> bytes | None:
    """Return the elements of a weight if the time, or the type of a result, may depend on them."""
    kind = weight.type
    if kind.size > (FEW if "float" in kind.dtype else SMALL) or not _at_hand(weight):
        return None
    return Weights({}).array(weight).tobytes()


def _at_hand(weight: Weight) -> bool:
    """Say whether the elements of a weight are known without the arrays in its file."""
    if isinstance(weight, Computed):
        return all(_at_hand(part) for part in weight.arguments if not isinstance(part, int | float | tuple))
    return isinstance(weight, Literal)
