"""Dynamic programming along sequences."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import program

_FAR = 1e3
"""Cost of beginning a warping elsewhere than in its corner."""


def alignment(options: Options) -> Model:
    """Hidden Markov models, alignments of two sequences, and the knapsack problem."""
    length, states, method, unroll = (options[name] for name in ("length", "states", "method", "unroll"))

    def run(scores: jax.Array, other: jax.Array, moves: jax.Array, gap: jax.Array) -> Tree:
        if method == "viterbi":
            return _viterbi(scores, moves, unroll)
        if method == "forward":
            return jax.value_and_grad(lambda scores, moves: _forward(scores, moves, unroll))(scores, moves)
        if method == "knapsack":
            return _knapsack(jnp.abs(scores[:, 0]), 4 * states, unroll)
        if method == "edit":
            left, right = jnp.argmax(scores, -1), jnp.argmax(other, -1)
            costs = jnp.where(left[:, None] == right[None, :], 0.0, gap + 0.5)
            return _table(costs, gap + 0.7, unroll)[-1, -1]
        costs = jnp.sum((scores[:, None] - other[None]) ** 2, -1)
        if method == "local":
            full = _table(costs - costs.mean(), gap, unroll, local=True)
            return full[-1], jnp.unravel_index(jnp.argmin(full), full.shape)
        return _table(costs, gap, unroll, warp=True)[-1]

    sequence = floats(length, states)
    return program(run, scores=sequence, other=sequence, moves=floats(states, states), gap=floats())


def _viterbi(scores: jax.Array, moves: jax.Array, unroll: int) -> Tree:
    """Return the score of the best path of states, and the path."""

    def step(best: jax.Array, score: jax.Array) -> tuple[jax.Array, jax.Array]:
        every = best[:, None] + moves
        return every.max(0) + score, every.argmax(0)

    best, back = jax.lax.scan(step, scores[0], scores[1:], unroll=unroll)
    last = jnp.argmax(best)
    _, path = jax.lax.scan(lambda at, row: (row[at], row[at]), last, back, reverse=True)
    return best.max(), jnp.concatenate([path, last[None]])


def _forward(scores: jax.Array, moves: jax.Array, unroll: int) -> jax.Array:
    """Return the log likelihood of a sequence, over all paths of states."""
    rates = jax.nn.log_softmax(moves, axis=1)

    def step(logs: jax.Array, score: jax.Array) -> tuple[jax.Array, jax.Array]:
        logs = jax.nn.logsumexp(logs[:, None] + rates, axis=0) + score
        return logs, logs

    return jax.nn.logsumexp(jax.lax.scan(step, scores[0], scores[1:], unroll=unroll)[0])


def _table(
    costs: jax.Array, gap: jax.Array, unroll: int, local: bool = False, warp: bool = False
) -> jax.Array:
    """Fill the table of an alignment row by row.

    Args:
        costs: Cost of matching each element of one sequence with each of the other.
        gap: Cost of leaving an element out.
        unroll: Steps in the body of the inner loop.
        local: Whether an alignment may begin and end anywhere.
        warp: Whether an element may match several in a row, at no cost of a gap (dynamic time warping).
    """

    def row(above: jax.Array, cost: jax.Array) -> tuple[jax.Array, jax.Array]:
        def cell(left: jax.Array, seen: Any) -> tuple[jax.Array, jax.Array]:
            corner, up, cost = seen
            if warp:
                new = cost + jnp.minimum(jnp.minimum(left, up), corner)
            else:
                new = jnp.minimum(jnp.minimum(left, up) + gap, corner + cost)
            new = jnp.minimum(new, 0.0) if local else new
            return new, new

        first = above[0] + (jnp.float32(_FAR) if warp else gap)
        first = jnp.zeros_like(first) if local else first
        _, rest = jax.lax.scan(cell, first, (above[:-1], above[1:], cost), unroll=unroll)
        now = jnp.concatenate([first[None], rest])
        return now, now

    begin = jnp.arange(costs.shape[1] + 1) * (jnp.float32(_FAR) if warp else gap)
    begin = jnp.zeros_like(begin) if local else begin
    return jax.lax.scan(row, begin, costs)[1]


def _knapsack(values: jax.Array, capacity: int, unroll: int) -> jax.Array:
    """Return the best value of each room up to `capacity`, plus how many items improved it."""
    sizes = 1 + jnp.arange(values.shape[0]) % 5
    room = jnp.arange(capacity)

    def step(best: jax.Array, item: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        value, size = item
        fits = room >= size
        taken = jnp.where(fits, best[jnp.maximum(room - size, 0)] + value, -jnp.inf)
        return jnp.maximum(best, taken), taken > best

    best, taken = jax.lax.scan(step, jnp.zeros(capacity), (values, sizes), unroll=unroll)
    return best + taken.sum(0)
