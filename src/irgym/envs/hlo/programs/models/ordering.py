"""Algorithms on orders, groups, graphs and bits: sorting, clustering, alignment, paths, hashes, fractals."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.numerics import program


def _bitonic(keys: jax.Array) -> jax.Array:
    """Sort numbers by a network of comparisons, which is for a power of two of them."""
    wanted = keys.shape[0]
    count = 1 << (wanted - 1).bit_length()
    if count > wanted:
        keys = jnp.pad(keys, (0, count - wanted), constant_values=jnp.inf)
    place = jnp.arange(count)
    block = 2
    while block <= count:
        apart = block // 2
        while apart:
            other = keys[place ^ apart]
            smaller = ((place & apart) == 0) == ((place & block) == 0)
            keys = jnp.where(smaller, jnp.minimum(keys, other), jnp.maximum(keys, other))
            apart //= 2
        block *= 2
    return keys[:wanted] if count > wanted else keys


def _transposed(keys: jax.Array) -> jax.Array:
    """Sort by comparing neighbours, odd and even pairs in turn."""
    count = keys.shape[0] // 2 * 2

    def step(_: int, keys: jax.Array) -> jax.Array:
        pairs = jnp.sort(keys[:count].reshape(-1, 2), axis=1)
        keys = keys.at[:count].set(pairs.reshape(-1))
        inner = keys[1 : count - 1].reshape(-1, 2)
        low, high = inner.min(1), inner.max(1)
        return keys.at[1 : count - 1].set(jnp.stack([low, high], 1).reshape(-1))

    return jax.lax.fori_loop(0, keys.shape[0] // 2 + 1, step, keys)


def _radix(keys: jax.Array, bits: int) -> jax.Array:
    """Sort floats by their bits, `bits` at a time."""
    raw = jax.lax.bitcast_convert_type(keys, jnp.uint32)
    whole = jnp.where(raw >> 31 == 1, ~raw, raw | jnp.uint32(1 << 31))

    def step(digit: jax.Array | int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        whole, keys = carry
        value = (whole >> (jnp.uint32(digit) * bits)) & ((1 << bits) - 1)
        hot = jax.nn.one_hot(value, 1 << bits, dtype=jnp.int32)
        counts = hot.sum(0)
        starts = jnp.cumsum(counts) - counts
        place = starts[value] + (jnp.cumsum(hot, 0) - hot)[jnp.arange(value.shape[0]), value]
        return jnp.zeros_like(whole).at[place].set(whole), jnp.zeros_like(keys).at[place].set(keys)

    return jax.lax.fori_loop(0, -(-32 // bits), step, (whole, keys))[1]


def sorting(options: Options) -> Model:
    """Rows of numbers in order, and values that go with them."""
    count, method = options["count"], options["method"]

    def one(keys: jax.Array, values: jax.Array) -> Tree:
        if method == "sort":
            return jnp.sort(keys), jnp.sort(values, descending=True)
        if method == "argsort":
            order = jnp.argsort(keys, stable=True)
            return keys[order], values[order], jnp.argsort(order)
        if method == "lexsort":
            order = jnp.lexsort((values, jnp.round(4 * keys)))
            return keys[order], values[order]
        if method == "pairs":
            return jax.lax.sort((keys, values, jnp.arange(count)), num_keys=1)
        if method == "top":
            best, places = jax.lax.top_k(keys, count // 4)
            return best, values[places]
        if method == "partition":
            low = jnp.partition(keys, count // 2)[: count // 2]
            return jnp.sort(low), jnp.argpartition(values, 2)[:2]
        if method == "rank":
            below = (keys[None, :] < keys[:, None]).sum(1)
            same = (keys[None, :] == keys[:, None]).sum(1)
            return below + 0.5 * (same + 1), jnp.zeros(count).at[below].set(values)
        if method == "bitonic":
            return _bitonic(keys)
        if method == "radix":
            return _radix(keys, options["bits"])
        return _transposed(keys)

    def run(keys: jax.Array, values: jax.Array) -> Tree:
        return jax.vmap(one)(keys, values) if options["batched"] else one(keys[0], values[0])

    shape = floats(options["rows"], count)
    return program(run, keys=shape, values=shape)


def grouping(options: Options) -> Model:
    """Statistics of groups: segments, histograms, distinct values, joins."""
    rows, groups, method = options["rows"], options["groups"], options["method"]

    def run(values: jax.Array, labels: jax.Array) -> Tree:
        labels = labels % groups
        column = values[:, 0]
        if method == "moments":
            ones = jax.ops.segment_sum(jnp.ones(rows), labels, groups)
            mean = jax.ops.segment_sum(values, labels, groups) / jnp.maximum(ones, 1.0)[:, None]
            spread = jax.ops.segment_sum((values - mean[labels]) ** 2, labels, groups)
            return mean, jnp.sqrt(spread / jnp.maximum(ones - 1, 1.0)[:, None]), ones
        if method == "extremes":
            low, high = (
                jax.ops.segment_min(values, labels, groups),
                jax.ops.segment_max(values, labels, groups),
            )
            known = jnp.isfinite(low) & jnp.isfinite(high)
            return jnp.where(known, high - low, 0.0), jnp.where(known, low, 0.0)
        if method == "softmax":
            high = jax.ops.segment_max(column, labels, groups)[labels]
            parts = jnp.exp(column - high)
            return parts / jax.ops.segment_sum(parts, labels, groups)[labels]
        if method == "histogram":
            counts, edges = jnp.histogram(column, bins=groups)
            return counts, edges, jnp.interp(column, edges[1:], jnp.cumsum(counts) / rows)
        if method == "plane":
            return jnp.histogram2d(column, values[:, 1], bins=groups, range=((-1.0, 1.0), (-1.0, 1.0)))[0]
        if method == "unique":
            found, back, counts = jnp.unique(
                jnp.round(4 * column), return_inverse=True, return_counts=True, size=groups, fill_value=0
            )
            return found, back, counts
        if method == "join":
            keys = jnp.sort(values[:, 1])
            left, right = jnp.searchsorted(keys, column), jnp.searchsorted(keys, column + 0.1, side="right")
            return right - left, jnp.where(right > left, keys[jnp.clip(left, 0, rows - 1)], 0.0)
        if method == "runs":
            changed = jnp.concatenate([jnp.ones(1, bool), labels[1:] != labels[:-1]])
            run = jnp.cumsum(changed) - 1
            lengths = jnp.zeros(rows, jnp.int32).at[run].add(1)
            return lengths, jax.ops.segment_sum(column, run, rows, indices_are_sorted=True)
        edges = jnp.quantile(column, jnp.linspace(0.0, 1.0, groups + 1))
        bins = jnp.clip(jnp.digitize(column, edges) - 1, 0, groups - 1)
        return jnp.bincount(bins, weights=values[:, 1], length=groups), edges

    return program(run, values=floats(rows, options["width"]), labels=integers(rows))


def clusters(options: Options) -> Model:
    """Clusters of points, or the nearest neighbours of each."""
    points, features, count, method = (options[n] for n in ("points", "features", "clusters", "method"))

    def squares(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(x**2, -1)[:, None] - 2 * x @ y.T + jnp.sum(y**2, -1)[None, :]

    def lloyd(x: jax.Array, centres: jax.Array) -> Tree:
        def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
            centres, _ = carry
            far = squares(x, centres)
            labels = jnp.argmin(far, axis=1)
            if method == "medians":
                inside = jnp.where((labels[:, None] == jnp.arange(count))[..., None], x[:, None], jnp.nan)
                new = jnp.nanmedian(inside, axis=0)
                new = jnp.where(jnp.isnan(new), centres, new)
            else:
                hot = jax.nn.one_hot(labels, count)
                sizes = hot.sum(0)[:, None]
                new = jnp.where(sizes > 0, hot.T @ x / jnp.maximum(sizes, 1.0), centres)
            return (new, labels), far.min(1)[: points // 2].sum()

        start = (centres, jnp.zeros(points, jnp.int32))
        return jax.lax.scan(step, start, None, length=5, unroll=options["unroll"])

    def mixture(x: jax.Array, centres: jax.Array) -> Tree:
        """Expectation and maximisation of a mixture of normal distributions."""

        def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
            means, variances, shares = carry
            apart = (x[:, None] - means) ** 2 / variances
            logs = jnp.log(shares) - 0.5 * jnp.sum(apart + jnp.log(2 * jnp.pi * variances), -1)
            total = jax.nn.logsumexp(logs, axis=1)
            duty = jnp.exp(logs - total[:, None])
            sizes = duty.sum(0) + 1e-3
            means = duty.T @ x / sizes[:, None]
            spread = jnp.einsum("nk,nkd->kd", duty, (x[:, None] - means) ** 2) / sizes[:, None]
            return (means, spread + 1e-2, sizes / sizes.sum()), total[: points // 2].sum()

        start = (centres, jnp.ones((count, features)), jnp.full(count, 1.0 / count))
        return jax.lax.scan(step, start, None, length=5, unroll=options["unroll"])

    def dense(x: jax.Array) -> Tree:
        """Clusters of points with many near ones, by spreading labels (Ester et al., 1996)."""
        near = squares(x, x) < 0.5 * features / 4
        core = near.sum(1) >= 3

        def unfinished(carry: Any) -> jax.Array:
            return carry[1] & (carry[2] < 32)

        def spread(carry: Any) -> Any:
            labels, _, rounds = carry
            seen = jnp.where(near & core[None, :], labels[None, :], points)
            new = jnp.where(core, jnp.minimum(labels, seen.min(1)), labels)
            return new, jnp.any(new != labels), rounds + 1

        labels, _, _ = jax.lax.while_loop(unfinished, spread, (jnp.arange(points), jnp.bool_(True), 0))
        edge = jnp.where(near & core[None, :], labels[None, :], points).min(1)
        return jnp.where(core, labels, jnp.where(edge < points, edge, -1)), x[jnp.argmax(near.sum(1))]

    def shifted(x: jax.Array) -> jax.Array:
        def step(_: int, y: jax.Array) -> jax.Array:
            weights = jnp.exp(-squares(y, x))
            return weights @ x / weights.sum(1, keepdims=True)

        return jax.lax.fori_loop(0, 5, step, x)

    def run(x: jax.Array, centres: jax.Array) -> Tree:
        if method == "mixture":
            return mixture(x, centres)
        if method == "density":
            return dense(x)
        if method == "shift":
            return shifted(x)
        if method == "neighbours":
            far, places = jax.lax.top_k(-squares(centres, x), 4)
            weights = jax.nn.softmax(far, axis=-1)
            return jnp.sqrt(jnp.maximum(-far, 0.0)), jnp.einsum("kn,knd->kd", weights, x[places])
        if method == "linkage":
            return _linked(x, count)
        return lloyd(x, centres)

    return program(run, x=floats(points, features), centres=floats(count, features))


def _linked(x: jax.Array, count: int) -> Tree:
    """Join the two nearest clusters until `count` are left."""
    points = x.shape[0]
    far = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    far = jnp.where(jnp.eye(points, dtype=bool), jnp.inf, far)

    def join(_: int, carry: Any) -> Any:
        far, labels, heights = carry
        i, j = jnp.unravel_index(jnp.argmin(far), far.shape)
        i, j = jnp.minimum(i, j), jnp.maximum(i, j)
        row = jnp.minimum(far[i], far[j]).at[i].set(jnp.inf).at[j].set(jnp.inf)
        heights = heights + jnp.where(jnp.isfinite(far[i, j]), far[i, j], 0.0)
        far = far.at[i, :].set(row).at[:, i].set(row).at[j, :].set(jnp.inf).at[:, j].set(jnp.inf)
        return far, jnp.where(labels == j, i, labels), heights

    start = (far, jnp.arange(points), jnp.float32(0.0))
    _, labels, heights = jax.lax.fori_loop(0, points - count, join, start)
    return labels, heights


def alignment(options: Options) -> Model:
    """Dynamic programming along sequences."""
    length, states, method = options["length"], options["states"], options["method"]

    def viterbi(scores: jax.Array, moves: jax.Array) -> Tree:
        def step(best: jax.Array, score: jax.Array) -> tuple[jax.Array, jax.Array]:
            every = best[:, None] + moves
            return every.max(0) + score, every.argmax(0)

        best, back = jax.lax.scan(step, scores[0], scores[1:], unroll=options["unroll"])
        last = jnp.argmax(best)
        _, path = jax.lax.scan(lambda at, row: (row[at], row[at]), last, back, reverse=True)
        return best.max(), jnp.concatenate([path, last[None]])

    def forward(scores: jax.Array, moves: jax.Array) -> jax.Array:
        rates = jax.nn.log_softmax(moves, axis=1)

        def step(logs: jax.Array, score: jax.Array) -> tuple[jax.Array, jax.Array]:
            logs = jax.nn.logsumexp(logs[:, None] + rates, axis=0) + score
            return logs, logs

        return jax.nn.logsumexp(jax.lax.scan(step, scores[0], scores[1:], unroll=options["unroll"])[0])

    def table(costs: jax.Array, gap: jax.Array, local: bool, warp: bool) -> jax.Array:
        """Fill the table of an alignment row by row; `local` keeps what is best anywhere."""

        def row(above: jax.Array, cost: jax.Array) -> tuple[jax.Array, jax.Array]:
            def cell(left: jax.Array, seen: Any) -> tuple[jax.Array, jax.Array]:
                corner, up, cost = seen
                if warp:
                    new = cost + jnp.minimum(jnp.minimum(left, up), corner)
                else:
                    new = jnp.minimum(jnp.minimum(left, up) + gap, corner + cost)
                new = jnp.minimum(new, 0.0) if local else new
                return new, new

            first = above[0] + (jnp.float32(1e3) if warp else gap)
            first = jnp.zeros_like(first) if local else first
            _, rest = jax.lax.scan(cell, first, (above[:-1], above[1:], cost), unroll=options["unroll"])
            now = jnp.concatenate([first[None], rest])
            return now, now

        begin = jnp.arange(costs.shape[1] + 1) * (jnp.float32(1e3) if warp else gap)
        begin = jnp.zeros_like(begin) if local else begin
        return jax.lax.scan(row, begin, costs)[1]

    def knapsack(values: jax.Array) -> jax.Array:
        sizes = 1 + jnp.arange(length) % 5
        room = jnp.arange(4 * states)

        def item(best: jax.Array, one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            value, size = one
            fits = room >= size
            taken = jnp.where(fits, best[jnp.maximum(room - size, 0)] + value, -jnp.inf)
            return jnp.maximum(best, taken), taken > best

        best, taken = jax.lax.scan(item, jnp.zeros(4 * states), (values, sizes), unroll=options["unroll"])
        return best + taken.sum(0)

    def run(scores: jax.Array, other: jax.Array, moves: jax.Array, gap: jax.Array) -> Tree:
        if method == "viterbi":
            return viterbi(scores, moves)
        if method == "forward":
            return jax.value_and_grad(forward)(scores, moves)
        if method == "knapsack":
            return knapsack(jnp.abs(scores[:, 0]))
        if method == "edit":
            left, right = jnp.argmax(scores, -1), jnp.argmax(other, -1)
            return table(jnp.where(left[:, None] == right[None, :], 0.0, gap + 0.5), gap + 0.7, False, False)[
                -1, -1
            ]
        costs = jnp.sum((scores[:, None] - other[None]) ** 2, -1)
        if method == "local":
            full = table(costs - costs.mean(), gap, True, False)
            return full[-1], jnp.unravel_index(jnp.argmin(full), full.shape)
        return table(costs, gap, False, True)[-1]

    sequence = floats(length, states)
    return program(run, scores=sequence, other=sequence, moves=floats(states, states), gap=floats())


def paths(options: Options) -> Model:
    """Algorithms on graphs, as lists of edges or as matrices."""
    nodes, edges, method = options["nodes"], options["edges"], options["method"]

    def relaxed(sources: jax.Array, targets: jax.Array, lengths: jax.Array) -> Tree:
        """Shortest ways from node 0 (Bellman and Ford)."""

        def unfinished(carry: Any) -> jax.Array:
            return carry[1] & (carry[2] < nodes)

        def step(carry: Any) -> Any:
            far, _, rounds = carry
            new = far.at[targets].min(far[sources] + lengths)
            return new, jnp.any(new < far), rounds + 1

        begin = jnp.full(nodes, 1e6).at[0].set(0.0)
        far, _, rounds = jax.lax.while_loop(unfinished, step, (begin, jnp.bool_(True), 0))
        return far, rounds

    def ranked(sources: jax.Array, targets: jax.Array, weights: jax.Array, liked: jax.Array) -> Tree:
        out = jax.ops.segment_sum(weights, sources, nodes)

        def step(rank: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            sent = (rank / jnp.maximum(out, 1e-6))[sources] * weights
            got = jax.ops.segment_sum(sent, targets, nodes)
            lost = jnp.sum(jnp.where(out > 0, 0.0, rank))
            new = 0.15 * liked + 0.85 * (got + lost / nodes)
            return new, jnp.abs(new - rank).sum()

        return jax.lax.scan(step, jnp.full(nodes, 1.0 / nodes), None, length=8, unroll=options["unroll"])

    def components(sources: jax.Array, targets: jax.Array) -> jax.Array:
        def unfinished(carry: Any) -> jax.Array:
            return jnp.any(carry[0] != carry[1])

        def step(carry: Any) -> Any:
            _, labels = carry
            least = jnp.minimum(labels[sources], labels[targets])
            new = labels.at[sources].min(least).at[targets].min(least)
            return labels, jnp.minimum(new, new[new])

        return jax.lax.while_loop(unfinished, step, (jnp.full(nodes, -1), jnp.arange(nodes)))[1]

    def searched(sources: jax.Array, targets: jax.Array) -> Tree:
        """Breadth first: the levels of the nodes, and the parent of each."""

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

    def spanning(matrix: jax.Array) -> Tree:
        """A least spanning tree, a node at a time (Prim)."""

        def step(carry: Any, _: None) -> tuple[Any, Tree]:
            inside, nearest = carry
            open_costs = jnp.where(inside, jnp.inf, nearest)
            new = jnp.argmin(open_costs)
            inside = inside.at[new].set(True)
            return (inside, jnp.minimum(nearest, matrix[new])), (new, open_costs[new])

        begin = (jnp.arange(nodes) == 0, matrix[0])
        return jax.lax.scan(step, begin, None, length=nodes - 1, unroll=options["unroll"])[1]

    def run(places: jax.Array, sources: jax.Array, targets: jax.Array, lengths: jax.Array) -> Tree:
        sources, targets = sources % nodes, targets % nodes
        lengths = jnp.abs(lengths) + 0.01
        if method == "shortest":
            return relaxed(sources, targets, lengths)
        if method == "rank":
            return ranked(sources, targets, lengths, jax.nn.softmax(places[0]))
        if method == "components":
            return components(sources, targets), lengths.sum()
        if method == "breadth":
            return searched(sources, targets), jnp.max(lengths)
        apart = jnp.sqrt(jnp.sum((places[:, None] - places[None]) ** 2, -1) + 1e-6)
        if method == "tree":
            return spanning(apart)
        if method == "triangles":
            near = (apart < jnp.median(apart)).astype(jnp.float32) * (1 - jnp.eye(nodes))
            degree = near.sum(1)
            closed = jnp.diagonal(near @ near @ near)
            return jnp.where(degree > 1, closed / jnp.maximum(degree * (degree - 1), 1.0), 0.0), apart.mean()
        matrix = jnp.full((nodes, nodes), 1e6).at[sources, targets].min(lengths)
        matrix = jnp.where(jnp.eye(nodes, dtype=bool), 0.0, matrix)

        def through(k: jax.Array | int, matrix: jax.Array) -> jax.Array:
            return jnp.minimum(matrix, matrix[:, k, None] + matrix[None, k, :])

        return jax.lax.fori_loop(0, nodes, through, matrix)

    inputs = {"sources": integers(edges), "targets": integers(edges), "lengths": floats(edges)}
    return program(run, places=floats(nodes, nodes), **inputs)


def _rotated(x: jax.Array, by: int) -> jax.Array:
    return (x << by) | (x >> (32 - by))


def _finished(h: jax.Array) -> jax.Array:
    """Mix the bits of 32-bit words at the end of a hash."""
    h = (h ^ (h >> 16)) * jnp.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def _murmur(words: jax.Array, rounds: int) -> jax.Array:
    """Hash rows of 32-bit words."""
    h = jnp.full(words.shape[0], 7, jnp.uint32)
    for _ in range(rounds):
        for column in range(words.shape[1]):
            k = _rotated(words[:, column] * jnp.uint32(0xCC9E2D51), 15) * jnp.uint32(0x1B873593)
            h = _rotated(h ^ k, 13) * jnp.uint32(5) + jnp.uint32(0xE6546B64)
    return _finished(h ^ jnp.uint32(4 * words.shape[1]))


def _checksum(words: jax.Array, rounds: int) -> jax.Array:
    """The cyclic redundancy check of rows of words, bit by bit."""

    def bit(crc: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jnp.where(crc & 1 == 1, (crc >> 1) ^ jnp.uint32(0xEDB88320), crc >> 1), None

    crc = jnp.full(words.shape[0], 0xFFFFFFFF, jnp.uint32)
    for column in range(words.shape[1]):
        crc, _ = jax.lax.scan(bit, crc ^ words[:, column], None, length=32, unroll=rounds)
    return ~crc


def _quarters(words: jax.Array, rounds: int) -> jax.Array:
    """Quarter rounds of additions, exclusive ors and rotations, as stream ciphers have them."""
    a, b, c, d = words.T

    def step(_: int, state: Any) -> Any:
        a, b, c, d = state
        a, d = a + b, _rotated(d ^ (a + b), 16)
        c, b = c + d, _rotated(b ^ (c + d), 12)
        a, d = a + b, _rotated(d ^ (a + b), 8)
        c, b = c + d, _rotated(b ^ (c + d), 7)
        return a, b, c, d

    for _ in range(rounds):
        a, b, c, d = jax.lax.fori_loop(0, 4, step, (a, b, c, d))
    return jnp.stack([a, b, c, d], 1) + words


def _shifted(words: jax.Array, rounds: int) -> jax.Array:
    """Numbers from xorshift generators, as floats in 0 to 1."""

    def step(x: jax.Array, none: None) -> tuple[jax.Array, jax.Array]:
        for _ in range(rounds):
            x = x ^ (x << 13)
            x = x ^ (x >> 17)
            x = x ^ (x << 5)
        return x, (x >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)

    return jax.lax.scan(step, words | 1, None, length=8)[1]


def _interleaved(words: jax.Array, rounds: int) -> Tree:
    """The Morton codes of pairs of numbers, the way back, and how many bits are set."""

    def apart(x: jax.Array) -> jax.Array:
        x = x & 0xFFFF
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            x = (x | (x << shift)) & jnp.uint32(mask)
        return x

    code = words[:, 0]
    for place in range(rounds):
        code = apart(words[:, place % 4] ^ code) | (apart(words[:, (place + 1) % 4]) << 1)
    return code, jax.lax.population_count(code), jax.lax.clz(code), jnp.argsort(code)


def _filtered(words: jax.Array, rounds: int) -> Tree:
    """A Bloom filter of half the rows, asked for all."""
    room = 256
    half = words.shape[0] // 2
    bits = jnp.zeros(room, bool)
    places = [
        (_finished(words[:, 0] + jnp.uint32(k) * words[:, 1]) % room).astype(jnp.int32) for k in range(rounds)
    ]
    for place in places:
        bits = bits.at[place[:half]].set(True)
    found = jnp.ones(words.shape[0], bool)
    for place in places:
        found = found & bits[place]
    return found, bits.sum(), bits


_HASHES: dict[str, Callable[[jax.Array, int], Tree]] = {
    "murmur": _murmur,
    "checksum": _checksum,
    "quarters": _quarters,
    "xorshift": _shifted,
    "morton": _interleaved,
    "bloom": _filtered,
}


def hashing(options: Options) -> Model:
    """Integer arithmetic on rows of four 32-bit words."""

    def run(words: jax.Array) -> Tree:
        return _HASHES[options["method"]](words, options["rounds"])

    return program(run, words=jax.ShapeDtypeStruct((options["rows"], 4), jnp.uint32))


def fractal(options: Options) -> Model:
    """Points of a plane under an iterated map: how soon they escape, or where they end."""
    pixels, method = options["pixels"], options["method"]

    def moved(z: jax.Array, c: jax.Array) -> jax.Array:
        if method == "newton":
            return z - (z**3 - 1) / (3 * z**2 + 1e-3)
        if method == "ship":
            return (jnp.abs(z.real) + 1j * jnp.abs(z.imag)) ** 2 + c
        if method == "cubic":
            return z**3 + c
        return z * z + c

    def run(window: jax.Array, c: jax.Array) -> Tree:
        x = jnp.linspace(-1.6 + window[0], 0.8 + window[1], pixels)
        y = jnp.linspace(-1.2 + window[2], 1.2 + window[3], pixels)
        plane = x[None, :] + 1j * y[:, None]
        seed = c[0] + 1j * c[1] - 0.5
        start, constant = (plane, seed) if method in ("julia", "newton") else (jnp.zeros_like(plane), plane)

        def once(z: jax.Array, count: jax.Array) -> tuple[jax.Array, jax.Array]:
            inside = jnp.abs(z) < 2.0
            return jnp.where(inside, moved(z, constant), z), count + inside

        none = jnp.zeros((pixels, pixels), jnp.int32)
        if options["loop"] == "while":

            def unfinished(carry: Any) -> jax.Array:
                return jnp.any(jnp.abs(carry[0]) < 2.0) & (carry[2] < options["steps"])

            z, count, _ = jax.lax.while_loop(
                unfinished, lambda carry: (*once(carry[0], carry[1]), carry[2] + 1), (start, none, 0)
            )
        elif options["loop"] == "unrolled":
            z, count = start, none
            for _ in range(options["steps"]):
                z, count = once(z, count)
        else:
            z, count = jax.lax.fori_loop(0, options["steps"], lambda _, carry: once(*carry), (start, none))
        smooth = count + 1 - jnp.log2(jnp.maximum(jnp.log(jnp.abs(z) + 1e-3), 1e-3))
        return count, smooth, jnp.angle(z)

    return program(run, window=floats(4), c=floats(2))
