"""What the time of an operator depends on: attributes, types of operands, and which of them are weights."""

import hashlib
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Opaque
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Literal, Weight, Weights

Residence: TypeAlias = Choice["cache", "memory"]
"""Where the weights of a model are when a run begins: in the last cache that all cores share, or beyond."""

FEW = 8
"""Elements of the largest weight of floating-point numbers whose values count, such as an exponent."""

SMALL = 64
"""The same of whole numbers and truth values, such as a shape."""


@dataclass(frozen=True)
class Operand:
    """What an operator reads.

    Attributes:
        type: Its type.
        role: A value that is computed or given, and lies in a near cache; a weight that this operator alone
            uses; or one that others use too, which one of them has brought near.
        content: The elements of a small weight, row by row; None where they do not matter, or are not known.
        same: Place of the first operand that is the same value.
        captured: The name by which graphs within the operator use it; empty for an input.
    """

    type: TensorType
    role: Choice["value", "weight", "shared"]
    content: bytes | None
    same: int
    captured: str = ""

    @property
    def text(self) -> str:
        """What stands for it in the text of a signature."""
        mark = {"value": "", "weight": "*", "shared": "&"}[self.role]
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
        residence: Where its own weights are before it runs; None where it has none that count.
    """

    operator: str
    operands: tuple[Operand | None, ...]
    outputs: tuple[bool, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    opsets: tuple[tuple[str, int], ...]
    residence: Residence | None
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        operands = ", ".join("-" if one is None else one.text for one in self.operands)
        outputs = "".join(str(int(one)) for one in self.outputs)
        attributes = " ".join(f"{name}={_written(value)}" for name, value in self.attributes)
        opsets = " ".join(f"{domain or 'onnx'}:{version}" for domain, version in self.opsets)
        parts = (f"{self.operator}({operands})", outputs, attributes, opsets, self.residence or "")
        object.__setattr__(self, "text", "; ".join(parts))


def _written(value: Attribute) -> str:
    if isinstance(value, Opaque):
        return f"{value.kind}:{_short(value.content)}"
    return repr(value)


def _short(content: bytes) -> str:
    """Return bytes in hexadecimal digits; a digest of many."""
    return (content if len(content) <= FEW else hashlib.blake2b(content, digest_size=16).digest()).hex()


def signature_of(graph: Graph, one: Node, residence: Residence) -> Signature | None:
    """Return what the time of a node depends on.

    Args:
        graph: The graph.
        one: One of its nodes.
        residence: Where the weights of the model are.

    Returns:
        None where an operand has no known type, or is a text.
    """
    inner = any(isinstance(value, Opaque) for _, value in one.attributes)
    values = (*one.inputs, *one.captured)
    operands: list[Operand | None] = []
    for place, value in enumerate(values):
        kind = graph.types.get(value)
        if value and (kind is None or kind.dtype == "str"):
            return None
        captured = value if place >= len(one.inputs) else ""
        operands.append(_operand(graph, value, kind, values.index(value), captured) if kind else None)
    domain = one.operator.rpartition(".")[0]
    return Signature(
        one.operator,
        tuple(operands),
        tuple(bool(value) for value in one.outputs),
        one.attributes,
        tuple(pair for pair in graph.opsets if inner or pair[0] in ("", domain)),
        residence if any(operand and operand.role == "weight" for operand in operands) else None,
    )


def _operand(graph: Graph, value: str, kind: TensorType, same: int, captured: str) -> Operand:
    weight = graph.weights.get(value)
    if weight is None:
        return Operand(kind, "value", None, same, captured)
    content = _content(weight)
    alone = content is None and len(graph.users[value]) == 1
    return Operand(kind, "weight" if alone else "shared", content, same, captured)


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
