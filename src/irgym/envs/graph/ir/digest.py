"""What tells graphs apart: a digest of what the outputs are computed from, whatever the names of values."""

import hashlib
from dataclasses import dataclass, field

from irgym.envs.graph.ir.graph import Graph, Node

SIZE = 16
"""Bytes of a digest."""


@dataclass
class Digests:
    """Digests of graphs that have much in common, such as the states of a task.

    What was computed once of a node with the same operands is not computed again.
    """

    _heads: dict[int, tuple[Node, bytes]] = field(default_factory=dict[int, tuple[Node, bytes]])
    _known: dict[tuple[bytes, ...], bytes] = field(default_factory=dict[tuple[bytes, ...], bytes])

    def of(self, graph: Graph) -> str:
        """Return the digest of a graph, hexadecimal: equal for graphs that compute the same in the same way.

        Raises:
            ScheduleError: The graph has a circle.
        """
        values: dict[str, bytes] = {"": b""}
        for place, name in enumerate(graph.inputs):
            values[name] = f"input {place} {graph.types.get(name)}".encode()
        for one in graph.order:
            operands: list[bytes] = [self._head(one)]
            for value in (*one.inputs, *one.captured):
                if value not in values:
                    values[value] = graph.weights[value].digest.encode()
                operands.append(values[value])
            key = tuple(operands)
            digest = self._known.get(key)
            if digest is None:
                digest = self._known[key] = hashlib.blake2b(_joined(key), digest_size=SIZE).digest()
            for place, value in enumerate(one.outputs):
                if value:
                    values[value] = digest + bytes([place]) if place else digest
        whole = [
            values[value] if value in values else graph.weights[value].digest.encode()
            for value in graph.outputs
        ]
        return hashlib.blake2b(_joined(tuple(whole)), digest_size=SIZE).hexdigest()

    def _head(self, one: Node) -> bytes:
        """Return what stands for a node's operator, attributes and outputs."""
        found = self._heads.get(id(one))
        if found is None:
            used = "".join("1" if value else "0" for value in one.outputs)
            text = f"{one.operator} {one.attributes!r} {len(one.inputs)} {used}"
            # The node is kept, so that no other one gets its id.
            found = self._heads[id(one)] = (one, text.encode())
        return found[1]


def _joined(parts: tuple[bytes, ...]) -> bytes:
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)
