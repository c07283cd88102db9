"""Clusters of points, and nearest neighbours."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import program


def clusters(options: Options) -> Model:
    """Clusters of points, or the nearest neighbours of each centre."""
    points, features, count, method = (options[n] for n in ("points", "features", "clusters", "method"))

    def run(x: jax.Array, centres: jax.Array) -> Tree:
        if method == "mixture":
            return _mixture(x, centres, options["unroll"])
        if method == "density":
            return _dense(x)
        if method == "shift":
            return _shifted(x)
        if method == "neighbours":
            far, places = jax.lax.top_k(-_squares(centres, x), 4)
            weights = jax.nn.softmax(far, axis=-1)
            return jnp.sqrt(jnp.maximum(-far, 0.0)), jnp.einsum("kn,knd->kd", weights, x[places])
        if method == "linkage":
            return _linked(x, count)
        return _lloyd(x, centres, medians=method == "medians", unroll=options["unroll"])

    return program(run, x=floats(points, features), centres=floats(count, features))


def _squares(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the squared distances (rows of x, rows of y)."""
    return jnp.sum(x**2, -1)[:, None] - 2 * x @ y.T + jnp.sum(y**2, -1)[None, :]


def _lloyd(x: jax.Array, centres: jax.Array, medians: bool, unroll: int) -> Tree:
    """Lloyd's algorithm, with means or medians as centres."""
    points, count = x.shape[0], centres.shape[0]

    def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
        centres, _ = carry
        far = _squares(x, centres)
        labels = jnp.argmin(far, axis=1)
        if medians:
            inside = jnp.where((labels[:, None] == jnp.arange(count))[..., None], x[:, None], jnp.nan)
            new = jnp.nanmedian(inside, axis=0)
            new = jnp.where(jnp.isnan(new), centres, new)
        else:
            hot = jax.nn.one_hot(labels, count)
            sizes = hot.sum(0)[:, None]
            new = jnp.where(sizes > 0, hot.T @ x / jnp.maximum(sizes, 1.0), centres)
        return (new, labels), far.min(1)[: points // 2].sum()

    start = (centres, jnp.zeros(points, jnp.int32))
    return jax.lax.scan(step, start, None, length=5, unroll=unroll)


def _mixture(x: jax.Array, centres: jax.Array, unroll: int) -> Tree:
    """Expectation and maximisation of a mixture of normal distributions."""
    points, (count, features) = x.shape[0], centres.shape

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
    return jax.lax.scan(step, start, None, length=5, unroll=unroll)


def _dense(x: jax.Array) -> Tree:
    """Clusters of points with many close neighbours, by spreading labels (Ester et al., 1996)."""
    points, features = x.shape
    near = _squares(x, x) < 0.5 * features / 4
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


def _shifted(x: jax.Array) -> jax.Array:
    """Move each point towards the weighted mean of all points (mean shift)."""

    def step(_: int, y: jax.Array) -> jax.Array:
        weights = jnp.exp(-_squares(y, x))
        return weights @ x / weights.sum(1, keepdims=True)

    return jax.lax.fori_loop(0, 5, step, x)


def _linked(x: jax.Array, count: int) -> Tree:
    """Merge the two nearest clusters until `count` are left (single linkage)."""
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
