"""What tells graphs apart: a digest of what is computed, how often, and what is returned; not of names."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight

SIZE = 16
"""Bytes of a digest."""


class Told(Protocol):
    """What is asked of a node."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of values; empty for one that is left out."""
        ...

    @property
    def captured(self) -> tuple[str, ...]:
        """Values that graphs among the attributes use."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of values; empty for one that is left out."""
        ...

    @property
    def head(self) -> bytes:
        """What tells the node apart from others with the same operands."""
        ...


def of_inputs(inputs: Sequence[str], types: Mapping[str, TensorType]) -> dict[str, bytes]:
    """Return what stands for inputs: their places and types."""
    return {name: f"input {place} {types.get(name)}".encode() for place, name in enumerate(inputs)}


def of_results(
    one: Told, values: Mapping[str, bytes], weights: Mapping[str, Weight]
) -> Iterable[tuple[str, bytes]]:
    """Return the digests of a node's results.

    Args:
        one: The node.
        values: The digests of values that are no weights.
        weights: By name.
    """
    operands = [_of(value, values, weights) for value in (*one.inputs, *one.captured)]
    digest = hashlib.blake2b(_joined([one.head, *operands]), digest_size=SIZE).digest()
    return [
        (value, digest + place.to_bytes(4, "little") if place else digest)
        for place, value in enumerate(one.outputs)
        if value
    ]


def of_graph(
    outputs: Iterable[str],
    nodes: Iterable[str],
    values: Mapping[str, bytes],
    weights: Mapping[str, Weight],
) -> str:
    """Return the digest of a graph, hexadecimal: equal for graphs that compute the same in the same way.

    Args:
        outputs: Names of the values that it returns.
        nodes: Names of its nodes: what is computed twice is not what is computed once.
        values: The digests of values that are no weights.
        weights: By name.
    """
    returned = _joined([_of(value, values, weights) for value in outputs])
    computed = _joined(sorted(values[name] for name in nodes))
    return hashlib.blake2b(_joined([returned, computed]), digest_size=SIZE).hexdigest()


def _of(value: str, values: Mapping[str, bytes], weights: Mapping[str, Weight]) -> bytes:
    if not value:
        return b""
    found = values.get(value)
    return weights[value].digest.encode() if found is None else found


def _joined(parts: Sequence[bytes]) -> bytes:
    return b"".join([len(part).to_bytes(4, "little") + part for part in parts])
