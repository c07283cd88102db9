"""Optimisation: minimisation of smooth functions, optimal transport."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import derived, program


def _rosenbrock_valley(x: jax.Array, data: jax.Array) -> jax.Array:
    return jnp.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + jnp.mean((data @ x) ** 2)


def _decays(x: jax.Array, data: jax.Array) -> jax.Array:
    """Robust residuals of a sum of exponentials fitted to the first column."""
    times = jnp.arange(data.shape[0], dtype=jnp.float32) / data.shape[0]
    half = x.shape[0] // 2
    curve = jnp.sum(x[:half] * jnp.exp(-times[:, None] * jax.nn.softplus(x[half : 2 * half])), -1)
    return jnp.sum(jnp.log1p((curve - data[:, 0]) ** 2)) + 0.01 * jnp.sum(x**2)


def _barrier(x: jax.Array, data: jax.Array) -> jax.Array:
    """A linear programme with logarithmic barriers."""
    slack = 2.0 - data @ x
    price = jnp.linspace(0.5, 1.5, x.shape[0])
    return price @ x - 0.5 * jnp.sum(jnp.log(jnp.maximum(slack, 1e-3))) + 0.5 * x @ x


_OBJECTIVES = {"valley": _rosenbrock_valley, "decays": _decays, "barrier": _barrier}


def minimise(options: Options) -> Model:
    """Minimisation of a smooth function by one of several methods."""
    size, rows, method = options["size"], options["rows"], options["method"]
    objective, steps = _OBJECTIVES[options["objective"]], options["steps"]

    def run(x: jax.Array, data: jax.Array) -> Tree:
        def f(x: jax.Array) -> jax.Array:
            return objective(x, data)

        found = _MINIMISERS[method](f, x + 0.3, steps)
        return found, f(found), jnp.linalg.norm(jax.grad(f)(found))

    return program(run, x=floats(size), data=floats(rows, size))


def _searched(f: Any, x: jax.Array, slope: jax.Array, direction: jax.Array) -> jax.Array:
    """Return the first step that satisfies Armijo's rule, halving it until it does."""
    value, along = f(x), jnp.vdot(slope, direction)

    def too_long(carry: Any) -> jax.Array:
        rate, count = carry
        return (f(x + rate * direction) > value + 1e-4 * rate * along) & (count < 12)

    rate, _ = jax.lax.while_loop(
        too_long, lambda carry: (0.5 * carry[0], carry[1] + 1), (jnp.float32(1.0), 0)
    )
    return rate * direction


def _newton(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """Newton's method with a damped Hessian."""

    def step(_: int, x: jax.Array) -> jax.Array:
        slope, curvature = jax.grad(f)(x), jax.hessian(f)(x)
        damped = curvature + (1e-2 + jnp.linalg.norm(slope)) * jnp.eye(x.shape[0])
        return x + _searched(f, x, slope, -jnp.linalg.solve(damped, slope))

    return jax.lax.fori_loop(0, steps, step, x)


def _trust(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """A trust region: the diagonal grows until the step is an improvement."""

    def step(_: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, damping = carry
        value, slope = jax.value_and_grad(f)(x)
        curvature = jax.jacfwd(jax.grad(f))(x)
        matrix = curvature @ curvature.T + damping * jnp.diag(1.0 + jnp.diagonal(curvature) ** 2)
        move = -jsp.linalg.cho_solve(jsp.linalg.cho_factor(matrix), curvature @ slope)
        better = f(x + move) < value
        factor = jnp.where(better, 0.5, 3.0)
        return jnp.where(better, x + move, x), jnp.clip(damping * factor, 1e-3, 1e3)

    return jax.lax.fori_loop(0, steps, step, (x, jnp.float32(1.0)))[0]


def _bfgs(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """Quasi-Newton steps with an approximate inverse curvature."""

    def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
        x, inverse, slope = carry
        s = _searched(f, x, slope, -inverse @ slope)
        new = jax.grad(f)(x + s)
        y = new - slope
        curve = jnp.vdot(s, y)
        rho = jnp.where(curve > 1e-6, 1.0 / jnp.maximum(curve, 1e-6), 0.0)
        left = jnp.eye(x.shape[0]) - rho * jnp.outer(s, y)
        updated = left @ inverse @ left.T + rho * jnp.outer(s, s)
        return (x + s, jnp.where(curve > 1e-6, updated, inverse), new), f(x)

    begin = (x, jnp.eye(x.shape[0]), jax.grad(f)(x))
    return jax.lax.scan(step, begin, None, length=steps)[0][0]


def _limited(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """L-BFGS: quasi-Newton steps from the last four steps alone, by the two-loop recursion."""
    memory = 4

    def direction(slope: jax.Array, ss: jax.Array, ys: jax.Array) -> jax.Array:
        rho = 1.0 / (jnp.sum(ss * ys, -1) + 1e-6)
        q, alphas = slope, []
        for place in reversed(range(memory)):
            alphas.append(rho[place] * jnp.vdot(ss[place], q))
            q = q - alphas[-1] * ys[place]
        q = q * (jnp.vdot(ss[-1], ys[-1]) + 1e-3) / (jnp.vdot(ys[-1], ys[-1]) + 1e-3)
        for place in range(memory):
            beta = rho[place] * jnp.vdot(ys[place], q)
            q = q + ss[place] * (alphas[memory - 1 - place] - beta)
        return q

    def step(_: int, carry: Any) -> Any:
        x, slope, ss, ys = carry
        q = direction(slope, ss, ys)
        q = jnp.where(jnp.vdot(q, slope) > 0, q, slope)
        s = _searched(f, x, slope, -q)
        new = jax.grad(f)(x + s)
        return x + s, new, jnp.roll(ss, -1, 0).at[-1].set(s), jnp.roll(ys, -1, 0).at[-1].set(new - slope)

    none = jnp.zeros((memory, x.shape[0]))
    return jax.lax.fori_loop(0, steps, step, (x, jax.grad(f)(x), none, none))[0]


def _nonlinear(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """Conjugate gradients of Polak and Ribiere."""

    def step(carry: Any, _: None) -> tuple[Any, None]:
        x, slope, direction = carry
        x = x + _searched(f, x, slope, direction)
        new = jax.grad(f)(x)
        beta = jnp.maximum(jnp.vdot(new, new - slope) / (jnp.vdot(slope, slope) + 1e-6), 0.0)
        direction = beta * direction - new
        return (x, new, jnp.where(jnp.vdot(direction, new) < 0, direction, -new)), None

    slope = jax.grad(f)(x)
    return jax.lax.scan(step, (x, slope, -slope), None, length=steps)[0][0]


_MINIMISERS: dict[str, Callable[[Any, jax.Array, int], jax.Array]] = {
    "newton": _newton,
    "trust": _trust,
    "bfgs": _bfgs,
    "limited": _limited,
    "conjugate": _nonlinear,
}


def transport(options: Options) -> Model:
    """Optimal transport with entropy between two clouds of points (Cuturi, arXiv 1306.0895)."""
    points, features, domain = options["points"], options["features"], options["domain"]

    def cost(x: jax.Array, y: jax.Array) -> jax.Array:
        if options["cost"] == "cosine":
            x, y = (cloud / (jnp.linalg.norm(cloud, axis=-1, keepdims=True) + 1e-3) for cloud in (x, y))
            return 1.0 - x @ y.T
        squares = jnp.sum((x[:, None] - y[None]) ** 2, -1)
        return jnp.sqrt(squares + 1e-6) if options["cost"] == "euclidean" else squares

    def distance(x: jax.Array, y: jax.Array, weights: jax.Array, epsilon: jax.Array) -> jax.Array:
        epsilon = epsilon + 0.1
        matrix = cost(x, y)
        rows, columns = jax.nn.log_softmax(weights[0]), jax.nn.log_softmax(weights[1])

        def in_logarithms(carry: Any, _: None) -> tuple[Any, jax.Array]:
            f, g = carry
            f = epsilon * (rows - jsp.special.logsumexp((g[None] - matrix) / epsilon, axis=1))
            g = epsilon * (columns - jsp.special.logsumexp((f[:, None] - matrix) / epsilon, axis=0))
            return (f, g), jnp.sum(f)

        kernel = jnp.exp(-matrix / epsilon)

        def scaled(carry: Any, _: None) -> tuple[Any, jax.Array]:
            _, v = carry
            u = jnp.exp(rows) / (kernel @ v)
            v = jnp.exp(columns) / (kernel.T @ u)
            return (u, v), jnp.sum(u)

        if domain == "logarithmic":
            start = (jnp.zeros(points), jnp.zeros(points))
            (f, g), _ = jax.lax.scan(in_logarithms, start, None, length=8, unroll=options["unroll"])
            plan = jnp.exp((f[:, None] + g[None] - matrix) / epsilon)
        else:
            start = (jnp.ones(points), jnp.ones(points))
            (u, v), _ = jax.lax.scan(scaled, start, None, length=8, unroll=options["unroll"])
            plan = u[:, None] * kernel * v[None]
        return jnp.sum(plan * matrix)

    def run(x: jax.Array, y: jax.Array, weights: jax.Array, epsilon: jax.Array) -> Tree:
        return derived(distance, options["of"])(x, y, weights, epsilon)

    cloud = floats(points, features)
    return program(run, x=cloud, y=cloud, weights=floats(2, points), epsilon=floats())
