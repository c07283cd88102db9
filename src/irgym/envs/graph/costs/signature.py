"""What the time of an operator depends on: attributes, types of operands, and which of them are weights."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import NamedTuple, TypeAlias

from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Opaque
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Literal, Weight, Weights

Residence: TypeAlias = Choice["near", "cache", "memory"]
"""Where an operator finds a weight: in a cache of its core's own, in the last one of all cores, or beyond."""


class Residences(NamedTuple):
    """Where the operators of a model find its weights.

    Attributes:
        own: Those that one operator uses: run by run they are read once.
        shared: Those that several use, as an unrolled recurrence does: within a run they come round again.
    """

    own: Residence
    shared: Residence


FARNESS: Sequence[Residence] = ("near", "cache", "memory")
"""The nearest first."""

FEW = 8
"""Elements of the largest weight of floating-point numbers whose values count, such as an exponent."""

SMALL = 64
"""The same of whole numbers and truth values, such as a shape."""


@dataclass(frozen=True)
class Operand:
    """What an operator reads.

    Attributes:
        type: Its type.
        role: A value that is computed or given, and lies in a near cache; a weight that has to be fetched; or
            a weight that lies near too.
        content: The elements of a small weight, row by row; None where they do not matter, or are not known.
        same: Place of the first operand that is the same value.
        captured: The name by which graphs within the operator use it; empty for an input.
    """

    type: TensorType
    role: Choice["value", "weight", "near"]
    content: bytes | None
    same: int
    captured: str = ""

    @property
    def text(self) -> str:
        """What stands for it in the text of a signature."""
        mark = {"value": "", "weight": "*", "near": "&"}[self.role]
        content = "" if self.content is None else f"={_short(self.content)}"
        name = f"{self.captured}:" if self.captured else ""
        shape = ",".join(map(str, self.type.shape))
        return f"{name}{mark}{self.type.dtype}[{shape}]{content}@{self.same}"


@dataclass(frozen=True)
class Signature:
    """All that the time of an operator depends on beside the machine.

    Attributes:
        operator: As `Node.operator`.
        operands: Its inputs, None for those that are left out, and then what graphs within it use.
        outputs: Which outputs it makes.
        attributes: As `Node.attributes`.
        opsets: Pairs of domain and version that it may depend on.
        residence: Where its weights are fetched from: from the farthest; `near` where there are none.
    """

    operator: str
    operands: tuple[Operand | None, ...]
    outputs: tuple[bool, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    opsets: tuple[tuple[str, int], ...]
    residence: Residence
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        operands = ", ".join("-" if one is None else one.text for one in self.operands)
        outputs = "".join(str(int(one)) for one in self.outputs)
        attributes = " ".join(f"{name}={_written(value)}" for name, value in self.attributes)
        opsets = " ".join(f"{domain or 'onnx'}:{version}" for domain, version in self.opsets)
        parts = (f"{self.operator}({operands})", outputs, attributes, opsets, self.residence)
        object.__setattr__(self, "text", "; ".join(parts))


def _written(value: Attribute) -> str:
    if isinstance(value, Opaque):
        return f"{value.kind}:{_short(value.content)}"
    return repr(value)


def _short(content: bytes) -> str:
    """Return bytes in hexadecimal digits; a digest of many."""
    return (content if len(content) <= FEW else hashlib.blake2b(content, digest_size=16).digest()).hex()


def signature_of(graph: Graph, one: Node, residences: Residences) -> Signature | None:
    """Return what the time of a node depends on.

    Args:
        graph: The graph.
        one: One of its nodes.
        residences: Where the operators of the model find its weights.

    Returns:
        None where an operand has no known type, or is a text.
    """
    inner = any(isinstance(value, Opaque) for _, value in one.attributes)
    values = (*one.inputs, *one.captured)
    operands: list[Operand | None] = []
    farthest: Residence = "near"
    for place, value in enumerate(values):
        kind = graph.types.get(value)
        if value and (kind is None or kind.dtype == "str"):
            return None
        captured = value if place >= len(one.inputs) else ""
        if kind is None:
            operands.append(None)
            continue
        found = _residence(graph, value, residences)
        if found is not None and FARNESS.index(found) > FARNESS.index(farthest):
            farthest = found
        role = "value" if found is None else "near" if found == "near" else "weight"
        content = _content(graph.weights[value]) if value in graph.weights else None
        operands.append(Operand(kind, role, content, values.index(value), captured))
    domain = one.operator.rpartition(".")[0]
    return Signature(
        one.operator,
        tuple(operands),
        tuple(bool(value) for value in one.outputs),
        one.attributes,
        tuple(pair for pair in graph.opsets if inner or pair[0] in ("", domain)),
        farthest,
    )


def _residence(graph: Graph, value: str, residences: Residences) -> Residence | None:
    """Return where a weight is found; None for a value that is none."""
    if value not in graph.weights:
        return None
    if _content(graph.weights[value]) is not None:
        return "near"  # so small that it hardly matters
    return residences.own if len(graph.users[value]) == 1 else residences.shared


def _content(weight: Weight) -> bytes | None:
    """Return the elements of a weight on which time, or the type of a result, may depend."""
    kind = weight.type
    if kind.size > (FEW if "float" in kind.dtype else SMALL) or not _at_hand(weight):
        return None
    return Weights({}).array(weight).tobytes()


def _at_hand(weight: Weight) -> bool:
    """Say whether the elements of a weight are known without the model's file."""
    if isinstance(weight, Computed):
        return all(_at_hand(one) for one in weight.arguments if not isinstance(one, int | float | tuple))
    return isinstance(weight, Literal)
