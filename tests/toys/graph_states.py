"""Random graphs with candidates, and the specification of an encoder for them."""

import numpy as np

from irgym.core.graph_observation import GraphObservation
from irgym.networks.graphs import GraphSpec

SPEC = GraphSpec(node=3, edge=2, state=4, candidate=5, hidden=(16, 16), normalise=True)


def observation(rng: np.random.Generator, candidates: int | None = None) -> GraphObservation:
    nodes, edges = int(rng.integers(1, 7)), int(rng.integers(0, 9))
    count = int(rng.integers(0, 4)) if candidates is None else candidates
    owners = [owner for owner in range(count) for _ in range(int(rng.integers(1, 3)))]
    members = [(owner, int(rng.integers(nodes))) for owner in owners]
    return GraphObservation(
        rng.standard_normal((nodes, 3)).astype(np.float32),
        rng.standard_normal((edges, 2)).astype(np.float32),
        rng.integers(0, nodes, (edges, 2)),
        rng.standard_normal(4).astype(np.float32),
        rng.standard_normal((count, 5)).astype(np.float32),
        np.array(members, dtype=np.int64).reshape(-1, 2),
        present=int(rng.integers(1, nodes + 1)),
    )
