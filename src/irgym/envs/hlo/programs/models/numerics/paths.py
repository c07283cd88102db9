"""Algorithms on graphs: shortest paths, ranks, components, spanning trees."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.numerics.functions import program


def paths(options: Options) -> Model:
    """Algorithms on graphs, given as lists of edges or as matrices of distances."""
    nodes, edges, method, unroll = (options[name] for name in ("nodes", "edges", "method", "unroll"))

    def run(places: jax.Array, sources: jax.Array, targets: jax.Array, lengths: jax.Array) -> Tree:
        sources, targets = sources % nodes, targets % nodes
        lengths = jnp.abs(lengths) + 0.01
        if method == "shortest":
            return _relaxed(sources, targets, lengths, nodes)
        if method == "rank":
            return _ranked(sources, targets, lengths, jax.nn.softmax(places[0]), unroll)
        if method == "components":
            return _components(sources, targets, nodes), lengths.sum()
        if method == "breadth":
            return _searched(sources, targets, nodes), jnp.max(lengths)
        apart = jnp.sqrt(jnp.sum((places[:, None] - places[None]) ** 2, -1) + 1e-6)
        if method == "tree":
            return _spanning(apart, unroll)
        if method == "triangles":
            return _clustering(apart), apart.mean()
        return _all_pairs(sources, targets, lengths, nodes)

    inputs = {"sources": integers(edges), "targets": integers(edges), "lengths": floats(edges)}
    return program(run, places=floats(nodes, nodes), **inputs)


def _relaxed(sources: jax.Array, targets: jax.Array, lengths: jax.Array, nodes: int) -> Tree:
    """Return the lengths of the shortest paths from node 0 (Bellman and Ford), and the rounds taken."""

    def unfinished(carry: Any) -> jax.Array:
        return carry[1] & (carry[2] < nodes)

    def step(carry: Any) -> Any:
        far, _, rounds = carry
        new = far.at[targets].min(far[sources] + lengths)
        return new, jnp.any(new < far), rounds + 1

    begin = jnp.full(nodes, 1e6).at[0].set(0.0)
    far, _, rounds = jax.lax.while_loop(unfinished, step, (begin, jnp.bool_(True), 0))
    return far, rounds


def _ranked(
    sources: jax.Array, targets: jax.Array, weights: jax.Array, preferred: jax.Array, unroll: int
) -> Tree:
    """Return the page rank of the nodes, and by how much each round changed it."""
    nodes = preferred.shape[0]
    out = jax.ops.segment_sum(weights, sources, nodes)

    def step(rank: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        sent = (rank / jnp.maximum(out, 1e-6))[sources] * weights
        got = jax.ops.segment_sum(sent, targets, nodes)
        lost = jnp.sum(jnp.where(out > 0, 0.0, rank))
        new = 0.15 * preferred + 0.85 * (got + lost / nodes)
        return new, jnp.abs(new - rank).sum()

    return jax.lax.scan(step, jnp.full(nodes, 1.0 / nodes), None, length=8, unroll=unroll)


def _components(sources: jax.Array, targets: jax.Array, nodes: int) -> jax.Array:
    """Return the connected component of each node, by spreading the least label."""

    def unfinished(carry: Any) -> jax.Array:
        return jnp.any(carry[0] != carry[1])

    def step(carry: Any) -> Any:
        _, labels = carry
        least = jnp.minimum(labels[sources], labels[targets])
        new = labels.at[sources].min(least).at[targets].min(least)
        return labels, jnp.minimum(new, new[new])

    return jax.lax.while_loop(unfinished, step, (jnp.full(nodes, -1), jnp.arange(nodes)))[1]


def _searched(sources: jax.Array, targets: jax.Array, nodes: int) -> Tree:
    """Return the levels of a breadth-first search from node 0, and the parent of each node."""

    def unfinished(carry: Any) -> jax.Array:
        return jnp.any(carry[1]) & (carry[3] < nodes)

    def step(carry: Any) -> Any:
        level, front, parent, depth = carry
        reached = jnp.zeros(nodes, bool).at[targets].max(front[sources]) & (level < 0)
        offered = jnp.where(front[sources], sources, -1)
        parent = jnp.where(reached, parent.at[targets].max(offered), parent)
        return jnp.where(reached, depth + 1, level), reached, parent, depth + 1

    first = jnp.arange(nodes) == 0
    none = jnp.full(nodes, -1)
    return jax.lax.while_loop(unfinished, step, (jnp.where(first, 0, -1), first, none, 0))[::2]


def _spanning(matrix: jax.Array, unroll: int) -> Tree:
    """Return the nodes of a minimum spanning tree in the order of Prim's algorithm, and their costs."""
    nodes = matrix.shape[0]

    def step(carry: Any, _: None) -> tuple[Any, Tree]:
        inside, nearest = carry
        open_costs = jnp.where(inside, jnp.inf, nearest)
        new = jnp.argmin(open_costs)
        inside = inside.at[new].set(True)
        return (inside, jnp.minimum(nearest, matrix[new])), (new, open_costs[new])

    begin = (jnp.arange(nodes) == 0, matrix[0])
    return jax.lax.scan(step, begin, None, length=nodes - 1, unroll=unroll)[1]


def _clustering(apart: jax.Array) -> jax.Array:
    """Return the clustering coefficient of each node, an edge joining nodes nearer than the median."""
    near = (apart < jnp.median(apart)).astype(jnp.float32) * (1 - jnp.eye(apart.shape[0]))
    degree = near.sum(1)
    closed = jnp.diagonal(near @ near @ near)
    return jnp.where(degree > 1, closed / jnp.maximum(degree * (degree - 1), 1.0), 0.0)


def _all_pairs(sources: jax.Array, targets: jax.Array, lengths: jax.Array, nodes: int) -> jax.Array:
    """Return the lengths of the shortest paths between all pairs of nodes (Floyd and Warshall)."""
    matrix = jnp.full((nodes, nodes), 1e6).at[sources, targets].min(lengths)
    matrix = jnp.where(jnp.eye(nodes, dtype=bool), 0.0, matrix)

    def through(k: jax.Array | int, matrix: jax.Array) -> jax.Array:
        return jnp.minimum(matrix, matrix[:, k, None] + matrix[None, k, :])

    return jax.lax.fori_loop(0, nodes, through, matrix)
