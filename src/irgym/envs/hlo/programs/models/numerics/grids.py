"""Grids: finite differences, lattice Boltzmann, gas dynamics, fractals."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import derived, program


def stencil(options: Options) -> Model:
    """A partial differential equation on a grid by finite differences."""
    size, equation = options["size"], options["equation"]
    mode = {"periodic": "wrap", "fixed": "constant", "mirror": "edge"}[options["boundary"]]

    def padded(u: jax.Array) -> jax.Array:
        return jnp.pad(u, 1, mode=mode)

    def laplacian(u: jax.Array) -> jax.Array:
        p = padded(u)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u

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
            ux, uy = _slopes(padded(u))
            vx, vy = _slopes(padded(v))
            return (
                u + rate * (0.1 * laplacian(u) - u * ux - v * uy),
                v + rate * (0.1 * laplacian(v) - u * vx - v * vy),
            )
        if equation == "advection":
            return u - rate * _upwind(u, padded(u), v), v
        if equation == "life":
            around = _neighbours(padded((u > 0).astype(jnp.int32)))
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


def _slopes(p: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the central differences of a grid padded by 1, along both axes."""
    return 0.5 * (p[2:, 1:-1] - p[:-2, 1:-1]), 0.5 * (p[1:-1, 2:] - p[1:-1, :-2])


def _upwind(u: jax.Array, p: jax.Array, v: jax.Array) -> jax.Array:
    """Return the advection of a grid `u`, which is `p` without its padding, by a wind `v`."""
    left, right = u - p[:-2, 1:-1], p[2:, 1:-1] - u
    down, up = u - p[1:-1, :-2], p[1:-1, 2:] - u
    return jnp.where(v > 0, v * left, v * right) + jnp.where(v < 0, v * up, v * down)


def _neighbours(p: jax.Array) -> Any:
    """Return the sums of the eight cells around each one of a grid padded by 1."""
    return sum(
        p[1 + i : p.shape[0] - 1 + i, 1 + j : p.shape[1] - 1 + j]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    )


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
            steep_right = jnp.minimum(2 * jnp.abs(left), jnp.abs(right))
            steep_left = jnp.minimum(jnp.abs(left), 2 * jnp.abs(right))
            return jnp.where(left * right > 0, jnp.sign(left) * jnp.maximum(steep_right, steep_left), 0.0)
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


def fractal(options: Options) -> Model:
    """Points of a plane under an iterated map: when they escape, or where they end."""
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
