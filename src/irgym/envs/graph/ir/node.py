"""Nodes of tensor graphs: an operator with its operands and attributes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Any, TypeAlias

DIGEST_BYTES = 16
"""Bytes of a digest."""


def hashed(content: bytes) -> bytes:
    """Return the digest of some bytes, `DIGEST_BYTES` long."""
    return blake2s(content, digest_size=DIGEST_BYTES).digest()


Plain: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Opaque:
    """An attribute that no rule looks into: a tensor or a subgraph.

    Attributes:
        kind: Its number in `onnx.AttributeProto.AttributeType`.
        content: The attribute as ONNX stores it.
    """

    kind: int
    content: bytes


Attribute: TypeAlias = Plain | tuple[Plain, ...] | Opaque


@dataclass(frozen=True, slots=True)
class Node:
    """An operator and its operands.

    Attributes:
        operator: ONNX's name, prefixed with any domain but the default one: `com.microsoft.FusedConv`.
        inputs: Names of values; empty for an optional input that is left out.
        outputs: Names of values, the first not empty; empty for an optional output that nothing uses.
        attributes: Pairs of name and value, sorted by name.
        captured: Outer values that subgraphs among the attributes use. They are never renamed.
        name: The name of the node: its first output.
        given: Inputs and captured values.
        operands: All values that it needs.
        results: All values that it makes.
        head: Digest that tells the node apart from others with the same operands.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    captured: tuple[str, ...] = ()
    name: str = field(init=False, repr=False, compare=False)
    given: tuple[str, ...] = field(init=False, repr=False, compare=False)
    operands: tuple[str, ...] = field(init=False, repr=False, compare=False)
    results: tuple[str, ...] = field(init=False, repr=False, compare=False)
    head: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the derived fields, which are read often."""
        used = "".join("1" if value else "0" for value in self.outputs)
        head = f"{self.operator} {self.attributes!r} {len(self.inputs)} {len(self.captured)} {used}".encode()
        given = self.inputs + self.captured
        operands = tuple([value for value in given if value]) if "" in given else given
        object.__setattr__(self, "name", self.outputs[0])
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "results", tuple([value for value in self.outputs if value]))
        object.__setattr__(self, "head", hashed(head))

    def __reduce__(self) -> tuple[type["Node"], tuple[Any, ...]]:
        """Pickle the given fields alone; the derived ones are computed again."""
        return Node, (self.operator, self.inputs, self.outputs, self.attributes, self.captured)

    def attribute(self, name: str, default: Attribute | None = None) -> Attribute | None:
        """Return an attribute's value."""
        return next((value for key, value in self.attributes if key == name), default)


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Attribute) -> Node:
    """Return a node with the given attributes."""
    return Node(operator, tuple(inputs), tuple(outputs), tuple(sorted(attributes.items())))
