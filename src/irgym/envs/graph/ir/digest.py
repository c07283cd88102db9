"""Digests of graphs: of what is computed, how often, and what is returned, but not of names."""

from collections.abc import Iterable, Mapping, Sequence

from irgym.envs.graph.ir.node import DIGEST_BYTES, Node, hashed
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight

ABSENT = bytes(DIGEST_BYTES)
"""Digest of an operand that is left out."""


def of_given(
    inputs: Sequence[str], types: Mapping[str, TensorType], weights: Mapping[str, Weight]
) -> dict[str, bytes]:
    """Return the digests of the values that no node makes: inputs by their places and types, and weights."""
    places = {name: hashed(f"input {place} {types.get(name)}".encode()) for place, name in enumerate(inputs)}
    return {"": ABSENT, **of_weights(weights), **places}


def of_weights(weights: Mapping[str, Weight]) -> dict[str, bytes]:
    """Return the digests of weights."""
    return {name: bytes.fromhex(weight.digest) for name, weight in weights.items()}


def of_results(node: Node, values: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
    """Return the digests of a node's results.

    Args:
        node: The node.
        values: Digests of the values that it uses; of an empty name for an operand that is left out.
    """
    # All parts have the same length, and the head says how many there are.
    digest = hashed(node.head + b"".join([values[value] for value in node.given]))
    if len(node.outputs) == 1:
        return ((node.name, digest),)
    return [
        (value, hashed(digest + place.to_bytes(4, "little")) if place else digest)
        for place, value in enumerate(node.outputs)
        if value
    ]


def of_graph(
    outputs: Sequence[str],
    nodes: Iterable[str],
    values: Mapping[str, bytes],
) -> str:
    """Return the digest of a graph, hexadecimal.

    Graphs have equal digests if they compute the same values by the same operators, each as often: a value
    that is computed twice counts twice.

    Args:
        outputs: Names of the values that a run returns.
        nodes: Names of the nodes.
        values: Digests of all values.
    """
    whole = [values[value] for value in outputs]
    return hashed(
        len(whole).to_bytes(4, "little") + b"".join([*whole, *sorted([values[name] for name in nodes])])
    ).hex()
