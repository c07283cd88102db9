"""Digests of graphs: of what is computed, how often, and what is returned, but not of names."""

from collections.abc import Iterable, Mapping, Sequence

from irgym.envs.graph.ir.node import DIGEST_BYTES, Node, hashed
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight

ABSENT = bytes(DIGEST_BYTES)
"""Digest of an operand that is left out."""


def of_inputs(inputs: Sequence[str], types: Mapping[str, TensorType]) -> dict[str, bytes]:
    """Return the digests of a graph's inputs: of their places and types."""
    return {name: hashed(f"input {place} {types.get(name)}".encode()) for place, name in enumerate(inputs)}


def of_results(
    node: Node, values: Mapping[str, bytes], weights: Mapping[str, Weight]
) -> Iterable[tuple[str, bytes]]:
    """Return the digests of a node's results.

    Args:
        node: The node.
        values: Digests of inputs and of other nodes' results.
        weights: By name.
    """
    # All parts have the same length, and the head says how many there are.
    operands = [_of(value, values, weights) for value in (*node.inputs, *node.captured)]
    digest = hashed(node.head + b"".join(operands))
    if len(node.outputs) == 1:
        return [(node.outputs[0], digest)]
    return [
        (value, hashed(digest + place.to_bytes(4, "little")) if place else digest)
        for place, value in enumerate(node.outputs)
        if value
    ]


def of_graph(
    outputs: Sequence[str],
    nodes: Iterable[str],
    values: Mapping[str, bytes],
    weights: Mapping[str, Weight],
) -> str:
    """Return the digest of a graph, hexadecimal.

    Graphs have equal digests if they compute the same values by the same operators, each as often: a value
    that is computed twice counts twice.

    Args:
        outputs: Names of the values that a run returns.
        nodes: Names of the nodes.
        values: Digests of inputs and of nodes' results.
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
