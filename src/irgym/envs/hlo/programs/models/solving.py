"""Simulation and optimisation: differential equations, particles, fluids, optimal transport."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics import derived, program

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
    one, two, three = k[0] * a, 20 * k[1] * b * c, 10 * k[2] * b**2
    decay = k[3] * d / (0.5 + jnp.abs(d))
    return jnp.stack([two - one + decay, one - two - three, three - c, c - decay])


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
            y = _STEPPERS[method](lambda one: field(one, p), y, dt)
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
    """Integrate with steps that follow the error estimate (Dormand and Prince, 1980)."""

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


def _rosenbrock_valley(x: jax.Array, data: jax.Array) -> jax.Array:
    return jnp.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + jnp.mean((data @ x) ** 2)


def _decays(x: jax.Array, data: jax.Array) -> jax.Array:
    """Residuals of a sum of exponentials that is fitted to each row's first number."""
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
    """Return a step that Armijo's rule accepts, by halving."""
    value, along = f(x), jnp.vdot(slope, direction)

    def too_long(carry: Any) -> jax.Array:
        rate, count = carry
        return (f(x + rate * direction) > value + 1e-4 * rate * along) & (count < 12)

    rate, _ = jax.lax.while_loop(
        too_long, lambda carry: (0.5 * carry[0], carry[1] + 1), (jnp.float32(1.0), 0)
    )
    return rate * direction


def _newton(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """Newton's method with a damped, symmetric curvature."""

    def step(_: int, x: jax.Array) -> jax.Array:
        slope, curvature = jax.grad(f)(x), jax.hessian(f)(x)
        damped = curvature + (1e-2 + jnp.linalg.norm(slope)) * jnp.eye(x.shape[0])
        return x + _searched(f, x, slope, -jnp.linalg.solve(damped, slope))

    return jax.lax.fori_loop(0, steps, step, x)


def _trust(f: Any, x: jax.Array, steps: int) -> jax.Array:
    """A trust region: the diagonal is raised until the step is good."""

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
    """The same from the last four steps alone, by the two loops."""
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


def stencil(options: Options) -> Model:
    """A partial differential equation on a grid by finite differences."""
    size, equation = options["size"], options["equation"]

    def padded(u: jax.Array) -> jax.Array:
        mode = {"periodic": "wrap", "fixed": "constant", "mirror": "edge"}[options["boundary"]]
        return jnp.pad(u, 1, mode=mode)

    def laplacian(u: jax.Array) -> jax.Array:
        p = padded(u)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u

    def slopes(u: jax.Array) -> tuple[jax.Array, jax.Array]:
        p = padded(u)
        return 0.5 * (p[2:, 1:-1] - p[:-2, 1:-1]), 0.5 * (p[1:-1, 2:] - p[1:-1, :-2])

    def once(u: jax.Array, v: jax.Array, rate: jax.Array) -> tuple[jax.Array, jax.Array]:
        if equation == "wave":
            v = v + rate * laplacian(u)
            return u + rate * v, v
        if equation == "reaction":
            meet = u * v * v
            return (
                u + rate * (0.2 * laplacian(u) - meet + 0.04 * (1 - u)),
                v + rate * (0.1 * laplacian(v) + meet - 0.1 * v),
            )
        if equation == "burgers":
            ux, uy = slopes(u)
            vx, vy = slopes(v)
            return (
                u + rate * (0.1 * laplacian(u) - u * ux - v * uy),
                v + rate * (0.1 * laplacian(v) - u * vx - v * vy),
            )
        if equation == "advection":
            p = padded(u)
            left, right = u - p[:-2, 1:-1], p[2:, 1:-1] - u
            down, up = u - p[1:-1, :-2], p[1:-1, 2:] - u
            flow = jnp.where(v > 0, v * left, v * right) + jnp.where(v < 0, v * up, v * down)
            return u - rate * flow, v
        if equation == "life":
            p = padded((u > 0).astype(jnp.int32))
            around = sum(
                p[1 + i : p.shape[0] - 1 + i, 1 + j : p.shape[1] - 1 + j]
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                if (i, j) != (0, 0)
            )
            alive = (around == 3) | ((around == 2) & (u > 0))
            return jnp.where(alive, 1.0, -1.0), v + alive
        return u + 0.2 * rate * laplacian(u) + 0.01 * v, v

    def run(u: jax.Array, v: jax.Array, rate: jax.Array) -> Tree:
        def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
            u, v = carry
            u, v = once(u, v, 0.1 * rate)
            return (u, v), jnp.mean(u[: size // 2])

        def end(u: jax.Array, v: jax.Array) -> Tree:
            return jax.lax.scan(step, (u, v), None, length=options["steps"], unroll=options["unroll"])

        if options["of"] == "value":
            return end(u, v)
        return derived(lambda u, v: jnp.sum(end(u, v)[0][0] ** 2), options["of"])(u, v)

    grid = floats(size, size)
    return program(run, u=grid, v=grid, rate=floats())


_LINKS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
_BACK = (0, 3, 4, 1, 2, 7, 8, 5, 6)
_SHARES = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


def lattice(options: Options) -> Model:
    """A fluid by the lattice Boltzmann method, nine links a node (Qian et al., 1992)."""
    size, collision = options["size"], options["collision"]
    links, shares = jnp.array(_LINKS, jnp.float32), jnp.array(_SHARES)

    def still(rho: jax.Array, flow: jax.Array) -> jax.Array:
        along = jnp.einsum("qd,dxy->qxy", links, flow)
        square = jnp.sum(flow**2, 0)
        return rho * shares[:, None, None] * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)

    def step(f: jax.Array, solid: jax.Array, rate: jax.Array) -> jax.Array:
        rho = f.sum(0)
        flow = jnp.einsum("qd,qxy->dxy", links, f) / rho
        calm = still(rho, flow)
        if collision == "two":
            back = jnp.array(_BACK)
            even, odd = 0.5 * (f + f[back]), 0.5 * (f - f[back])
            even_calm, odd_calm = 0.5 * (calm + calm[back]), 0.5 * (calm - calm[back])
            out = f - rate * (even - even_calm) - 0.8 * (odd - odd_calm)
        elif collision == "smagorinsky":
            stress = jnp.einsum("qxy,qd,qe->dexy", f - calm, links, links)
            local = jnp.sqrt(jnp.sum(stress**2, (0, 1)) + 1e-6)
            out = f - (f - calm) / (1.0 / rate + 0.1 * local / rho)
        else:
            out = f - rate * (f - calm)
        if options["obstacle"]:
            out = jnp.where(solid > 0.2, f[jnp.array(_BACK)], out)
        moved = [jnp.roll(out[q], shift, (0, 1)) for q, shift in enumerate(_LINKS)]
        return jnp.stack(moved)

    def run(f: jax.Array, solid: jax.Array, rate: jax.Array) -> Tree:
        start = still(jnp.ones((size, size)), jnp.zeros((2, size, size))) + 0.05 * jnp.abs(f)

        def once(f: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            f = step(f, solid, rate)
            return f, jnp.sqrt(jnp.sum((links.T @ f.reshape(9, -1)) ** 2, 0)).max()

        f, speeds = jax.lax.scan(once, start, None, length=options["steps"], unroll=options["unroll"])
        return f, speeds

    return program(run, f=floats(9, size, size), solid=floats(size, size), rate=floats())


def transport(options: Options) -> Model:
    """Optimal transport with entropy between two clouds of points (Cuturi, arXiv 1306.0895)."""
    points, features, domain = options["points"], options["features"], options["domain"]

    def cost(x: jax.Array, y: jax.Array) -> jax.Array:
        if options["cost"] == "cosine":
            x, y = (one / (jnp.linalg.norm(one, axis=-1, keepdims=True) + 1e-3) for one in (x, y))
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


def gas(options: Options) -> Model:
    """The Euler equations of a gas in one dimension by finite volumes with limited slopes."""
    cells, limiter, riemann = options["cells"], options["limiter"], options["flux"]

    def limited(left: jax.Array, right: jax.Array) -> jax.Array:
        if limiter == "minmod":
            least = jnp.minimum(jnp.abs(left), jnp.abs(right))
            return jnp.where(left * right > 0, jnp.sign(left) * least, 0.0)
        if limiter == "vanleer":
            both = left * right
            return jnp.where(both > 0, 2 * both / jnp.where(both > 0, left + right, 1.0), 0.0)
        if limiter == "superbee":
            one = jnp.minimum(2 * jnp.abs(left), jnp.abs(right))
            two = jnp.minimum(jnp.abs(left), 2 * jnp.abs(right))
            return jnp.where(left * right > 0, jnp.sign(left) * jnp.maximum(one, two), 0.0)
        return jnp.zeros_like(left)

    def split(u: jax.Array) -> tuple[jax.Array, ...]:
        rho, momentum, energy = u
        speed = momentum / rho
        pressure = jnp.maximum(0.4 * (energy - 0.5 * rho * speed**2), 1e-3)
        return rho, speed, pressure, jnp.sqrt(1.4 * pressure / rho)

    def physical(u: jax.Array) -> jax.Array:
        _, speed, pressure, _ = split(u)
        return jnp.stack([u[1], u[1] * speed + pressure, (u[2] + pressure) * speed])

    def flux(left: jax.Array, right: jax.Array) -> jax.Array:
        _, vl, _, cl = split(left)
        _, vr, _, cr = split(right)
        fl, fr = physical(left), physical(right)
        if riemann == "hll":
            low, high = jnp.minimum(vl - cl, vr - cr), jnp.maximum(vl + cl, vr + cr)
            middle = (high * fl - low * fr + low * high * (right - left)) / (high - low)
            return jnp.select([low >= 0, high <= 0], [fl, fr], middle)
        fastest = jnp.maximum(jnp.abs(vl) + cl, jnp.abs(vr) + cr)
        return 0.5 * (fl + fr) - 0.5 * fastest * (right - left)

    def slope(u: jax.Array, ratio: jax.Array) -> jax.Array:
        p = jnp.concatenate([u[:, :1], u[:, :1], u, u[:, -1:], u[:, -1:]], 1)
        inner = limited(p[:, 1:-1] - p[:, :-2], p[:, 2:] - p[:, 1:-1])
        middle = p[:, 1:-1]
        flow = flux((middle + 0.5 * inner)[:, :-1], (middle - 0.5 * inner)[:, 1:])
        return -ratio * (flow[:, 1:] - flow[:, :-1])

    def run(u: jax.Array, courant: jax.Array) -> Tree:
        place = jnp.arange(cells)
        rho = jnp.where(place < cells // 2, 1.0, 0.2) + 0.1 * jnp.abs(u[0])
        start = jnp.stack([rho, 0.1 * u[1], 2.5 * rho + jnp.abs(u[2])])

        def step(u: jax.Array, none: None) -> tuple[jax.Array, jax.Array]:
            _, speed, _, sound = split(u)
            ratio = 0.4 * courant / jnp.max(jnp.abs(speed) + sound)
            half = u + slope(u, ratio)
            if options["order"] == 1:
                return half, ratio
            return 0.5 * (u + half + slope(half, ratio)), ratio

        return jax.lax.scan(step, start, None, length=options["steps"], unroll=options["unroll"])

    return program(run, u=floats(3, cells), courant=floats())
