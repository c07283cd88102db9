"""Trajectories: ordinary differential equations and particles."""

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

_Field = Callable[[jax.Array, jax.Array], jax.Array]
"""Maps state and parameters to the rate of change."""


def _lorenz(state: jax.Array, p: jax.Array) -> jax.Array:
    x, y, z, w = state
    return jnp.stack([10 * p[0] * (y - x), x * (2.8 - z) - y, x * y - 2.7 * p[1] * z, p[2] * x - p[3] * w])


def _pendulums(state: jax.Array, p: jax.Array) -> jax.Array:
    """Two pendulums, one hanging from the other."""
    first, second, w1, w2 = state
    m, apart = 1.0 + p[0] ** 2, first - second
    bottom = m - jnp.cos(apart) ** 2 + 0.5
    a1 = p[1] * jnp.sin(second) * jnp.cos(apart) - jnp.sin(apart) * (w1**2 * jnp.cos(apart) + w2**2)
    a1 = (a1 - m * p[2] * jnp.sin(first)) / bottom
    a2 = jnp.sin(apart) * (m * w1**2 + w2**2 * jnp.cos(apart)) + m * p[3] * jnp.sin(first) * jnp.cos(apart)
    return jnp.stack([w1, w2, a1, (a2 - m * jnp.sin(second)) / bottom])


def _predators(state: jax.Array, p: jax.Array) -> jax.Array:
    growth = 1.0 + p
    return state * (
        growth - jnp.array([[1, 0.3, 0, 0.2], [0.3, 1, 0.4, 0], [0, 0.2, 1, 0.5], [0.5, 0, 0.1, 1]]) @ state
    )


def _reactions(state: jax.Array, p: jax.Array) -> jax.Array:
    """A stiff chain of reactions."""
    a, b, c, d = state
    k = jnp.exp(p)
    first, second, third = k[0] * a, 20 * k[1] * b * c, 10 * k[2] * b**2
    decay = k[3] * d / (0.5 + jnp.abs(d))
    return jnp.stack([second - first + decay, first - second - third, third - c, c - decay])


_SYSTEMS: dict[str, _Field] = {
    "lorenz": _lorenz,
    "pendulums": _pendulums,
    "predators": _predators,
    "reactions": _reactions,
}


def integrate(options: Options) -> Model:
    """Ordinary differential equations: the end of a trajectory, or its sensitivities."""
    field, method, steps = _SYSTEMS[options["system"]], options["method"], options["steps"]

    def end(p: jax.Array, state: jax.Array, dt: jax.Array) -> jax.Array:
        dt = 0.1 * dt
        if method == "adaptive":
            return _dormand_prince(lambda y: field(y, p), state, dt * steps, dt)

        def step(y: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            y = _STEPPERS[method](lambda state: field(state, p), y, dt)
            return y, y

        last, path = jax.lax.scan(step, state, None, length=steps, unroll=options["unroll"])
        return last + 0.01 * path.mean(0)

    def value(p: jax.Array, state: jax.Array, dt: jax.Array) -> jax.Array:
        return jnp.sum(end(p, state, dt) ** 2)

    def run(p: jax.Array, state: jax.Array, dt: jax.Array) -> Tree:
        if options["of"] == "value":
            function = end
        elif options["of"] == "jacobian":
            function = jax.jacfwd(end)
        elif method == "adaptive":  # a loop of unknown length is not differentiated backwards
            function = jax.jacfwd(value)
        else:
            function = derived(value, "gradient")
        return jax.vmap(function, (None, 0, None))(p, state, dt)

    return program(run, p=floats(4), state=floats(options["batch"], 4), dt=floats())


def _euler(f: Any, y: jax.Array, dt: jax.Array) -> jax.Array:
    return y + dt * f(y)


def _heun(f: Any, y: jax.Array, dt: jax.Array) -> jax.Array:
    slope = f(y)
    return y + 0.5 * dt * (slope + f(y + dt * slope))


def _classical(f: Any, y: jax.Array, dt: jax.Array) -> jax.Array:
    a = f(y)
    b = f(y + 0.5 * dt * a)
    c = f(y + 0.5 * dt * b)
    d = f(y + dt * c)
    return y + dt / 6.0 * (a + 2 * b + 2 * c + d)


def _implicit(f: Any, y: jax.Array, dt: jax.Array) -> jax.Array:
    """Euler's implicit method, two Newton steps."""
    z = y
    for _ in range(2):
        matrix = jnp.eye(y.shape[0]) - dt * jax.jacfwd(f)(z)
        z = z - jnp.linalg.solve(matrix, z - y - dt * f(z))
    return z


def _rosenbrock(f: Any, y: jax.Array, dt: jax.Array) -> jax.Array:
    """A linearly implicit method of second order, both stages with one factorisation."""
    gamma = 1.0 - 2.0**-0.5
    factors = jsp.linalg.lu_factor(jnp.eye(y.shape[0]) - gamma * dt * jax.jacfwd(f)(y))
    first = jsp.linalg.lu_solve(factors, f(y))
    second = jsp.linalg.lu_solve(factors, f(y + dt * first) - 2 * first)
    return y + 1.5 * dt * first + 0.5 * dt * second


_STEPPERS: dict[str, Callable[[Any, jax.Array, jax.Array], jax.Array]] = {
    "rk4": _classical,
    "euler": _euler,
    "heun": _heun,
    "implicit": _implicit,
    "rosenbrock": _rosenbrock,
}

_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERRORS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def _dormand_prince(f: Any, start: jax.Array, until: jax.Array, step: jax.Array) -> jax.Array:
    """Integrate with step sizes from an error estimate (Dormand and Prince, 1980)."""

    def unfinished(carry: Any) -> jax.Array:
        time, _, _, count = carry
        return (time < until) & (count < 32)

    def once(carry: Any) -> Any:
        time, y, dt, count = carry
        dt = jnp.minimum(dt, until - time)
        slopes = [f(y)]
        ahead = y
        for row in _STAGES:
            ahead = y + dt * sum(c * k for c, k in zip(row, slopes, strict=True))
            slopes.append(f(ahead))
        error = dt * sum(c * k for c, k in zip(_ERRORS, slopes, strict=True))
        scale = 1e-3 + 1e-3 * jnp.maximum(jnp.abs(y), jnp.abs(ahead))
        size = jnp.sqrt(jnp.mean((error / scale) ** 2))
        accepted = size <= 1.0
        factor = jnp.clip(0.9 * jnp.where(size > 0, size, 1e-4) ** -0.2, 0.2, 5.0)
        return jnp.where(accepted, time + dt, time), jnp.where(accepted, ahead, y), dt * factor, count + 1

    return jax.lax.while_loop(unfinished, once, (jnp.float32(0.0), start, step, 0))[1]


def nbody(options: Options) -> Model:
    """Particles that attract or repel each other, steps of a symplectic integrator."""
    count, force = options["bodies"], options["force"]

    def potential(x: jax.Array, mass: jax.Array) -> jax.Array:
        apart = x[:, None, :] - x[None, :, :]
        if force == "periodic":
            apart = apart - jnp.round(apart)
        squares = jnp.sum(apart**2, -1) + 0.05
        if force == "gravity":
            pairs = -mass[:, None] * mass[None, :] / jnp.sqrt(squares)
        elif force == "springs":
            pairs = 0.5 * (jnp.sqrt(squares) - 1.0) ** 2 * mass[:, None]
        else:
            near = 0.3 / squares
            pairs = jnp.where(squares < 2.0, near**6 - near**3, 0.0)
        return 0.5 * jnp.sum(jnp.where(jnp.eye(count, dtype=bool), 0.0, pairs))

    def pull(x: jax.Array, mass: jax.Array) -> jax.Array:
        if options["derivative"] == "automatic":
            return -jax.grad(potential)(x, mass)
        apart = x[None, :, :] - x[:, None, :]
        squares = jnp.sum(apart**2, -1, keepdims=True) + 0.05
        if force == "springs":
            far = jnp.sqrt(squares)
            return jnp.sum((far - 1.0) * apart / far * mass[None, :, None], 1)
        if force == "gravity":
            return jnp.sum(mass[None, :, None] * apart * jax.lax.rsqrt(squares) ** 3, 1) * mass[:, None]
        if force == "periodic":
            apart = apart - jnp.round(apart)
            squares = jnp.sum(apart**2, -1, keepdims=True) + 0.05
        near = 0.3 / squares
        strength = jnp.where(squares < 2.0, (6 * near**3 - 12 * near**6) / squares, 0.0)
        return jnp.sum(strength * apart, 1)

    def run(x: jax.Array, v: jax.Array, mass: jax.Array, dt: jax.Array) -> Tree:
        mass = jnp.abs(mass) + 0.1

        def step(carry: Any, _: None) -> tuple[Any, Tree]:
            x, v, a = carry
            v = v + 0.05 * dt * a
            x = x + 0.1 * dt * v
            a = pull(x, mass) / mass[:, None]
            v = v + 0.05 * dt * a
            energy = 0.5 * mass * jnp.sum(v**2, -1) + potential(x, mass) / count
            return (x, v, a), {"energy": energy, "centre": mass @ x / mass.sum()}

        begin = (x, v, pull(x, mass) / mass[:, None])
        (x, v, _), trace = jax.lax.scan(step, begin, None, length=options["steps"], unroll=options["unroll"])
        return x, v, trace

    where = floats(count, 3)
    return program(run, x=where, v=where, mass=floats(count), dt=floats())
