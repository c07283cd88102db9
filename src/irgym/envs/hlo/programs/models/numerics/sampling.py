"""Statistics: densities, Markov chains, particle filters, bootstrap, random variates, simulated prices."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from irgym.envs.hlo.programs.models.model import KEY, Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import derived, program

_stats: Any = jsp.stats
"""The distributions, which the type declarations of jax leave out."""


def _eight_groups(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """A hierarchical model: normal group means, half-Cauchy scales."""
    mean, log_scale, offsets = theta[0], theta[1], theta[2:]
    scale = jnp.exp(log_scale)
    prior = _stats.norm.logpdf(mean, 0.0, 5.0) + _stats.cauchy.logpdf(scale, 0.0, 5.0) + log_scale
    prior = prior + _stats.norm.logpdf(offsets).sum()
    groups = mean + scale * offsets
    return prior + _stats.norm.logpdf(y, x @ groups, 1.0).sum()


def _gamma_model(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Gamma regression with a gamma and a beta prior."""
    shape, share = jnp.exp(theta[0]), jax.nn.sigmoid(theta[1])
    rate = shape / jnp.exp(jnp.clip(x @ theta[2:], -4.0, 4.0))
    positive = jnp.abs(y) + 0.1
    prior = _stats.gamma.logpdf(shape, 2.0, scale=0.5) + _stats.beta.logpdf(share, 2.0, 3.0)
    prior = prior + theta[0] + jnp.log(share) + jnp.log1p(-share)
    logs = _stats.gamma.logpdf(positive, shape, scale=1.0 / rate)
    return prior + jnp.sum(share * logs + (1 - share) * _stats.expon.logpdf(positive))


def _student_model(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Robust regression: Student errors, Laplace prior."""
    freedom, scale = 2.0 + jax.nn.softplus(theta[0]), jax.nn.softplus(theta[1]) + 0.1
    prior = _stats.laplace.logpdf(theta[2:]).sum() + _stats.gamma.logpdf(freedom, 2.0, scale=10.0)
    return prior + _stats.t.logpdf(y, freedom, x @ theta[2:], scale).sum()


def _mixture_model(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """A mixture of normal distributions, its shares on a simplex."""
    shares = jax.nn.log_softmax(theta[:3])
    means, scales = jnp.cumsum(jnp.exp(theta[2:5])), jax.nn.softplus(theta[5:8]) + 0.1
    logs = shares + _stats.norm.logpdf(y[:, None], means, scales)
    prior = _stats.dirichlet.logpdf(jnp.exp(shares), jnp.full(3, 1.5)) + _stats.norm.logpdf(theta).sum()
    return prior + jsp.special.logsumexp(logs, axis=-1).sum() + 0.01 * jnp.sum(x**2)


def _count_model(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Counts: a negative binomial with an excess of zeros."""
    rate, excess = jnp.exp(jnp.clip(x @ theta[2:], -5.0, 5.0)), jax.nn.sigmoid(theta[0])
    size = jax.nn.softplus(theta[1]) + 0.5
    count = jnp.floor(10 * jnp.abs(y))
    logs = jsp.special.gammaln(count + size) - jsp.special.gammaln(size) - jsp.special.gammaln(count + 1)
    logs = (
        logs + jsp.special.xlogy(size, size / (size + rate)) + jsp.special.xlogy(count, rate / (size + rate))
    )
    logs = jnp.where(count == 0, jnp.logaddexp(jnp.log(excess), jnp.log1p(-excess) + logs), logs)
    return logs.sum() + _stats.norm.logpdf(theta, 0.0, 3.0).sum()


def _logistic_model(theta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Logistic regression with a horseshoe prior."""
    local, whole = jnp.exp(theta[2:]), jnp.exp(theta[0])
    prior = jnp.sum(_stats.cauchy.logpdf(local) + theta[2:]) + _stats.cauchy.logpdf(whole) + theta[0]
    logits = x @ (whole * local * jnp.tanh(theta[1])) + theta[1]
    return prior + jnp.where(y > 0, jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)).sum()


_DENSITIES: dict[str, Callable[[jax.Array, jax.Array, jax.Array], jax.Array]] = {
    "hierarchical": _eight_groups,
    "gamma": _gamma_model,
    "student": _student_model,
    "mixture": _mixture_model,
    "counts": _count_model,
    "logistic": _logistic_model,
}


def density(options: Options) -> Model:
    """The log density of a Bayesian model, its gradient, or its curvature."""
    features, rows = options["features"], options["rows"]
    log_density = _DENSITIES[options["model"]]

    def run(theta: jax.Array, x: jax.Array, y: jax.Array) -> Tree:
        return derived(log_density, options["of"])(theta, x, y)

    return program(run, theta=floats(features + 2), x=floats(rows, features), y=floats(rows))


def mcmc(options: Options) -> Model:
    """Steps of a Markov chain on the density of a Bayesian model."""
    features, rows, kernel = options["features"], options["rows"], options["kernel"]
    log_density = _DENSITIES[options["model"]]

    def run(theta: jax.Array, x: jax.Array, y: jax.Array, step: jax.Array, noise: jax.Array) -> Tree:
        step = 0.1 * step

        def target(theta: jax.Array) -> jax.Array:
            return log_density(theta, x, y)

        def once(state: Tree, key: jax.Array) -> tuple[Tree, jax.Array]:
            new = _TRANSITIONS[kernel](target, state, step, key, options["leaps"])
            return new, new["theta"]

        keys = jax.random.split(noise, options["steps"])
        start = {"theta": theta, "log": target(theta), "accepted": jnp.int32(0)}
        return jax.lax.scan(once, start, keys, unroll=options["unroll"])

    inputs = {"x": floats(rows, features), "y": floats(rows), "step": floats(), "noise": KEY}
    return program(run, theta=floats(features + 2), **inputs)


def _accept(state: Tree, new: jax.Array, log: jax.Array, ratio: jax.Array, key: jax.Array) -> Tree:
    """Return the proposal or the old state, by the rule of Metropolis and Hastings."""
    yes = jnp.log(jax.random.uniform(key, minval=1e-6)) < ratio
    return {
        "theta": jnp.where(yes, new, state["theta"]),
        "log": jnp.where(yes, log, state["log"]),
        "accepted": state["accepted"] + yes.astype(jnp.int32),
    }


def _walk(target: Any, state: Tree, step: jax.Array, key: jax.Array, leaps: int) -> Tree:
    first, second = jax.random.split(key)
    new = state["theta"] + step * jax.random.normal(first, state["theta"].shape)
    log = target(new)
    return _accept(state, new, log, log - state["log"], second)


def _langevin(target: Any, state: Tree, step: jax.Array, key: jax.Array, leaps: int) -> Tree:
    first, second = jax.random.split(key)
    theta = state["theta"]
    half = 0.5 * step**2
    drift = theta + half * jax.grad(target)(theta)
    new = drift + step * jax.random.normal(first, theta.shape)
    log, gradient = jax.value_and_grad(target)(new)
    there = jnp.sum((new - drift) ** 2)
    back = jnp.sum((theta - new - half * gradient) ** 2)
    return _accept(state, new, log, log - state["log"] + (there - back) / (2 * step**2), second)


def _hamiltonian(target: Any, state: Tree, step: jax.Array, key: jax.Array, leaps: int) -> Tree:
    first, second = jax.random.split(key)
    momentum = jax.random.normal(first, state["theta"].shape)
    gradient = jax.grad(target)

    def leap(_: int, phase: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        theta, p = phase
        p = p + 0.5 * step * gradient(theta)
        theta = theta + step * p
        return theta, p + 0.5 * step * gradient(theta)

    theta, p = jax.lax.fori_loop(0, leaps, leap, (state["theta"], momentum))
    log = target(theta)
    ratio = log - state["log"] - 0.5 * (p @ p - momentum @ momentum)
    return _accept(state, theta, log, ratio, second)


def _slice(target: Any, state: Tree, step: jax.Array, key: jax.Array, leaps: int) -> Tree:
    """Slice sampling along a random direction: the bracket shrinks until a point lies in the slice."""
    first, second, third = jax.random.split(key, 3)
    theta = state["theta"]
    direction = jax.random.normal(first, theta.shape)
    direction = direction / jnp.linalg.norm(direction)
    level = state["log"] + jnp.log(jax.random.uniform(second, minval=1e-6))

    def outside(bracket: Any) -> jax.Array:
        _, _, place, _, count = bracket
        return (target(theta + place * direction) < level) & (count < 10)

    def shrink(bracket: Any) -> Any:
        low, high, place, key, count = bracket
        low, high = jnp.where(place < 0, place, low), jnp.where(place < 0, high, place)
        key, used = jax.random.split(key)
        return low, high, jax.random.uniform(used, minval=low, maxval=high), key, count + 1

    begin = (-step, step, 0.9 * step, third, 0)
    new = theta + jax.lax.while_loop(outside, shrink, begin)[2] * direction
    return {"theta": new, "log": target(new), "accepted": state["accepted"] + 1}


def _coordinates(target: Any, state: Tree, step: jax.Array, key: jax.Array, leaps: int) -> Tree:
    """Metropolis steps on each coordinate in turn."""

    def move(place: jax.Array | int, carry: tuple[Tree, jax.Array]) -> tuple[Tree, jax.Array]:
        state, key = carry
        key, first, second = jax.random.split(key, 3)
        new = state["theta"].at[place].add(step * jax.random.normal(first))
        log = target(new)
        return _accept(state, new, log, log - state["log"], second), key

    return jax.lax.fori_loop(0, state["theta"].shape[0], move, (state, key))[0]


_TRANSITIONS: dict[str, Callable[..., Tree]] = {
    "hmc": _hamiltonian,
    "walk": _walk,
    "langevin": _langevin,
    "slice": _slice,
    "coordinates": _coordinates,
}


def particles(options: Options) -> Model:
    """A particle filter of a stochastic volatility or of a growth model: log likelihood and means."""
    count, length = options["particles"], options["length"]
    growth = options["model"] == "growth"

    def run(observed: jax.Array, scales: jax.Array, noise: jax.Array) -> Tree:
        persistence, spread = jax.nn.sigmoid(scales[0] + 2.0), jax.nn.softplus(scales[1])

        def step(carry: Any, seen: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[Any, Tree]:
            x, logs, total = carry
            y, key, time = seen
            first, second = jax.random.split(key)
            shocks = jax.random.normal(first, (count,))
            if growth:
                x = 0.5 * x + 25 * x / (1 + x**2) + 8 * jnp.cos(1.2 * time) + spread * shocks
                logs = logs + _stats.norm.logpdf(y, x**2 / 20, 1.0)
            else:
                x = persistence * x + spread * shocks
                logs = logs + _stats.norm.logpdf(y, 0.0, jnp.exp(0.5 * x))
            weights = jax.nn.softmax(logs)
            total = total + jsp.special.logsumexp(logs) - jnp.log(count)
            mean = jnp.sum(weights * x)

            def again(_: None) -> tuple[jax.Array, jax.Array]:
                return x[_resampled(second, weights, options["resampling"])], jnp.zeros(count)

            def kept(_: None) -> tuple[jax.Array, jax.Array]:
                return x, jnp.log(weights + 1e-9)

            few = 1.0 / jnp.sum(weights**2) < 0.9 * count
            if options["adaptive"]:
                x, logs = jax.lax.cond(few, again, kept, None)
            else:
                x, logs = again(None)
            return (x, logs, total), {"mean": mean, "few": few}

        keys = jax.random.split(noise, length + 1)
        begin = (jax.random.normal(keys[0], (count,)), jnp.zeros(count), 0.0)
        times = jnp.arange(length, dtype=jnp.float32)
        (_, _, total), trace = jax.lax.scan(
            step, begin, (observed, keys[1:], times), unroll=options["unroll"]
        )
        return total, trace

    return program(run, observed=floats(length), scales=floats(2), noise=KEY)


def _resampled(key: jax.Array, weights: jax.Array, method: str) -> jax.Array:
    """Return the particles drawn in proportion to their weights, as many as there are."""
    count = weights.shape[0]
    if method == "multinomial":
        return jax.random.choice(key, count, (count,), p=weights)
    if method == "categorical":
        return jax.random.categorical(key, jnp.log(weights), shape=(count,))
    if method == "residual":
        copies = jnp.floor(count * weights)
        rest = count * weights - copies
        rest = jnp.where(rest.sum() > 0, rest / rest.sum(), weights)
        kept = jnp.repeat(jnp.arange(count), copies.astype(jnp.int32), total_repeat_length=count)
        drawn = jax.random.choice(key, count, (count,), p=rest)
        return jnp.where(jnp.arange(count) < copies.sum(), kept, drawn)
    offsets = jax.random.uniform(key, (count,)) if method == "stratified" else jax.random.uniform(key)
    return jnp.clip(
        jnp.searchsorted(jnp.cumsum(weights), (jnp.arange(count) + offsets) / count), 0, count - 1
    )


def bootstrap(options: Options) -> Model:
    """Intervals of a statistic by resampling, or its jackknife."""
    rows, repeats, statistic = options["rows"], options["repeats"], options["statistic"]

    def measured(sample: jax.Array) -> jax.Array:
        x, y = sample[:, 0], sample[:, 1]
        if statistic == "median":
            return jnp.median(x)
        if statistic == "correlation":
            return jnp.corrcoef(x, y)[0, 1]
        if statistic == "trimmed":
            cut = rows // 10
            return jnp.sort(x)[cut : rows - cut].mean()
        if statistic == "slope":
            return jnp.polyfit(x, y, 1)[0]
        if statistic == "skewness":
            centred = x - x.mean()
            return jnp.mean(centred**3) / (jnp.var(x) ** 1.5 + 1e-6)
        return x.mean() / (x.std(ddof=1) + 1e-6)

    def run(data: jax.Array, noise: jax.Array) -> Tree:
        whole = measured(data)
        if options["method"] == "jackknife":
            left = jax.vmap(lambda out: measured(jnp.roll(data, -out, 0).at[0].set(data.mean(0))))
            values = left(jnp.arange(rows))
            return whole, jnp.sqrt((rows - 1) * jnp.var(values)), values
        if options["method"] == "permutation":
            shuffle = jax.vmap(lambda key: data.at[:, 1].set(jax.random.permutation(key, data[:, 1])))
            values = jax.vmap(measured)(shuffle(jax.random.split(noise, repeats)))
            return whole, jnp.mean(jnp.abs(values) >= jnp.abs(whole)), values
        picks = jax.random.randint(noise, (repeats, rows), 0, rows)
        values = jax.vmap(measured)(data[picks])
        return whole, values.std(), jnp.percentile(values, jnp.array([2.5, 50.0, 97.5]))

    return program(run, data=floats(rows, 2), noise=KEY)


def variates(options: Options) -> Model:
    """Random variates of one distribution, with summaries."""
    count, law = options["count"], options["law"]

    def drawn(key: jax.Array, shape: jax.Array) -> jax.Array:
        a = jnp.abs(shape) + 0.5
        size = (count, *shape.shape)
        if law == "gamma":
            return jax.random.gamma(key, a, size)
        if law == "beta":
            return jax.random.beta(key, a, a + 1.0, size)
        if law == "dirichlet":
            return jax.random.dirichlet(key, a, (count,))
        if law == "poisson":
            return jax.random.poisson(key, 4.0 * a, size).astype(jnp.float32)
        if law == "student":
            return jax.random.t(key, 2.0 + a, size)
        if law == "categorical":
            return jax.nn.one_hot(jax.random.categorical(key, shape, shape=(count,)), shape.shape[0])
        if law == "multivariate":
            covariance = jnp.diag(a) + 0.1 * jnp.outer(shape, shape)
            return jax.random.multivariate_normal(key, shape, covariance, (count,))
        if law == "permutation":
            keys = jax.random.split(key, count)
            return jax.vmap(lambda key: jax.random.permutation(key, shape))(keys)
        if law == "truncated":
            return shape + jax.random.truncated_normal(key, -1.5, 2.0, size)
        return shape + a * jax.random.normal(key, size)

    def run(shape: jax.Array, noise: jax.Array) -> Tree:
        values = drawn(noise, shape)
        mean = values.mean(0)
        return values, mean, jnp.sqrt(jnp.mean((values - mean) ** 2, 0)), jnp.max(values, 0)

    return program(run, shape=floats(options["width"]), noise=KEY)


def pricing(options: Options) -> Model:
    """The price of an option by simulation or by formula, or its sensitivities."""
    paths, steps, payoff = options["paths"], options["steps"], options["payoff"]

    def payment(prices: jax.Array, strike: jax.Array) -> jax.Array:
        last = prices[-1]
        if payoff == "asian":
            return jax.nn.relu(prices.mean(0) - strike)
        if payoff == "barrier":
            return jnp.where(prices.max(0) < 1.8 * strike, jax.nn.relu(last - strike), 0.0)
        if payoff == "lookback":
            return last - prices.min(0)
        return jax.nn.relu(last - strike)

    def simulated(market: jax.Array, strike: jax.Array, key: jax.Array) -> jax.Array:
        spot, rate, sigma = jnp.exp(market[0]), 0.05 + 0.1 * market[1], 0.2 + 0.1 * jnp.abs(market[2])
        dt = 1.0 / steps
        noise = jax.random.normal(key, (steps, 2, paths))

        def step(carry: Any, shocks: jax.Array) -> tuple[Any, jax.Array]:
            log, variance = carry
            floor = jnp.maximum(variance, 1e-4)
            shock = -0.7 * shocks[0] + jnp.sqrt(1 - 0.49) * shocks[1]
            log = log + (rate - 0.5 * floor) * dt + jnp.sqrt(floor * dt) * shocks[0]
            if options["volatility"] == "heston":
                variance = variance + 1.5 * (sigma**2 - floor) * dt + 0.3 * jnp.sqrt(floor * dt) * shock
            return (log, variance), jnp.exp(log)

        begin = (jnp.full(paths, jnp.log(spot)), jnp.full(paths, sigma**2))
        prices = jax.lax.scan(step, begin, noise, unroll=options["unroll"])[1]
        return jnp.exp(-rate) * payment(prices, strike).mean()

    def formula(market: jax.Array, strike: jax.Array, key: jax.Array) -> jax.Array:
        spot, rate, sigma = jnp.exp(market[0]), 0.05 + 0.1 * market[1], 0.2 + 0.1 * jnp.abs(market[2])
        upper = (jnp.log(spot / strike) + rate + 0.5 * sigma**2) / sigma
        return spot * _stats.norm.cdf(upper) - strike * jnp.exp(-rate) * _stats.norm.cdf(upper - sigma)

    def run(market: jax.Array, strike: jax.Array, noise: jax.Array) -> Tree:
        price = formula if payoff == "formula" else simulated
        return derived(price, options["of"])(market, strike + 0.5, noise)

    return program(run, market=floats(3), strike=floats(), noise=KEY)
