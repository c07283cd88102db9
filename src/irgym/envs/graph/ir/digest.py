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


def hashed(content: bytes) -> bytes:
    """Return the digest of some bytes, of `SIZE` bytes."""
    return hashlib.blake2b(content, digest_size=SIZE).digest()


ABSENT = bytes(SIZE)
"""What stands for an operand that is left out."""


def of_inputs(inputs: Sequence[str], types: Mapping[str, TensorType]) -> dict[str, bytes]:
    """Return what stands for inputs: their places and types."""
    return {name: hashed(f"input {place} {types.get(name)}".encode()) for place, name in enumerate(inputs)}


def of_results(
    one: Told, values: Mapping[str, bytes], weights: Mapping[str, Weight]
) -> Iterable[tuple[str, bytes]]:
    """Return the digests of a node's results.

    Args:
        one: The node.
        values: The digests of values that are no weights.
        weights: By name.
    """
    # All parts are of one length, and the head tells how many there are.
    operands = [_of(value, values, weights) for value in (*one.inputs, *one.captured)]
    digest = hashlib.blake2b(one.head + b"".join(operands), digest_size=SIZE).digest()
    if len(one.outputs) == 1:
        return [(one.outputs[0], digest)]
    return [
        (value, hashed(digest + place.to_bytes(4, "little")) if place else digest)
        for place, value in enumerate(one.outputs)
        if value
    ]


def of_graph(
    outputs: Sequence[str],
    nodes: Iterable[str],
    values: Mapping[str, bytes],
    weights: Mapping[str, Weight],
) -> str:
    """Return the digest of a graph, hexadecimal.

    It is equal for graphs that compute the same in the same way, and as often: what is computed twice counts
    twice.

    Args:
        outputs: Names of the values that a run returns.
        nodes: Names of the nodes.
        values: The digests of values that are no weights.
        weights: By name.
    """
    whole = [_of(value, values, weights) for value in outputs]
    return hashed(
        len(whole).to_bytes(4, "little") + b"".join([*whole, *sorted([values[name] for name in nodes])])
    ).hex()


def _of(value: str, values: Mapping[str, bytes], weights: Mapping[str, Weight]) -> bytes:
    found = values.get(value)
    if found is None:
        found = bytes.fromhex(weights[value].digest) if value else ABSENT
    return found
