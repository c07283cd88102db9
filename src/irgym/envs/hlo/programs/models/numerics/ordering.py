"""Sorting, and statistics of groups."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.numerics.functions import program


def _bitonic(keys: jax.Array) -> jax.Array:
    """Sort numbers by a bitonic network, padded to a power of two."""
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
    """Sorting of rows of numbers, with values that go with them."""
    count, method = options["count"], options["method"]

    def ordered(keys: jax.Array, values: jax.Array) -> Tree:
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
        return jax.vmap(ordered)(keys, values) if options["batched"] else ordered(keys[0], values[0])

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
