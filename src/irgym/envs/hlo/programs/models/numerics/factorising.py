"""Linear algebra: least squares, Gaussian processes, eigenvalues, iterative solvers, matrix functions."""

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


def regression(options: Options) -> Model:
    """Least squares with several factorisations; the loss on other rows, or its gradient."""
    rows, columns, method = options["rows"], options["columns"], options["method"]

    def fitted(x: jax.Array, y: jax.Array, penalty: jax.Array) -> jax.Array:
        if method == "qr":
            q, r = jnp.linalg.qr(x)
            return jsp.linalg.solve_triangular(r, q.T @ y)
        if method == "svd":
            u, s, vt = jnp.linalg.svd(x, full_matrices=False)
            return vt.T @ ((s / (s * s + penalty)) * (u.T @ y))
        if method == "lstsq":
            return jnp.linalg.lstsq(x, y)[0]
        gram = x.T @ x + penalty * jnp.eye(columns)
        if method == "solve":
            return jnp.linalg.solve(gram, x.T @ y)
        if method == "robust":
            return _reweighted(x, y, gram, penalty)
        return jsp.linalg.cho_solve(jsp.linalg.cho_factor(gram), x.T @ y)

    def loss(x: jax.Array, y: jax.Array, other: Tree, penalty: jax.Array) -> jax.Array:
        centre, scale = x.mean(0), x.std(0) + 1e-6
        beta = fitted((x - centre) / scale, y - y.mean(), penalty)
        errors = (other["x"] - centre) / scale @ beta + y.mean() - other["y"]
        recent = 0.98 ** jnp.arange(rows)[::-1]
        return jnp.sum(recent * errors**2) / recent.sum() + 0.5 * jnp.sum(beta**2)

    def run(penalty: jax.Array, x: jax.Array, y: jax.Array, other: Tree) -> Tree:
        return derived(loss, options["of"])(x, y, other, penalty)

    other = {"x": floats(rows, columns), "y": floats(rows)}
    return program(run, penalty=floats(), x=floats(rows, columns), y=floats(rows), other=other)


def _reweighted(x: jax.Array, y: jax.Array, gram: jax.Array, penalty: jax.Array) -> jax.Array:
    """Huber's regression by a few reweighted least squares."""

    def step(beta: jax.Array, _: None) -> tuple[jax.Array, None]:
        errors = jnp.abs(y - x @ beta)
        scale = 1.4826 * jnp.median(errors) + 1e-3
        weights = jnp.where(errors <= scale, 1.0, scale / jnp.maximum(errors, 1e-6))
        weighted = x * weights[:, None]
        return jnp.linalg.solve(weighted.T @ x + penalty * jnp.eye(x.shape[1]), weighted.T @ y), None

    start = jnp.linalg.solve(gram, x.T @ y)
    return jax.lax.scan(step, start, None, length=4)[0]


def _kernel(name: str, scales: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """Return the covariances of two sets of points (rows, features)."""
    length, amplitude, shape = jnp.exp(scales[0]), jnp.exp(scales[1]), jnp.exp(scales[2])
    squares = jnp.sum(left**2, -1)[:, None] + jnp.sum(right**2, -1)[None, :] - 2 * left @ right.T
    squares = jnp.maximum(squares, 0.0) / length**2
    if name == "matern":
        far = jnp.sqrt(5.0 * squares + 1e-8)
        return amplitude**2 * (1 + far + far**2 / 3) * jnp.exp(-far)
    if name == "rational":
        return amplitude**2 * (1 + squares / (2 * shape)) ** (-shape)
    if name == "periodic":
        apart = jnp.abs(left[:, None, :] - right[None, :, :]).sum(-1)
        return amplitude**2 * jnp.exp(-2 * jnp.sin(jnp.pi * apart / shape) ** 2 / length**2)
    if name == "sum":
        return amplitude**2 * jnp.exp(-0.5 * squares) + shape * left @ right.T + 0.1
    return amplitude**2 * jnp.exp(-0.5 * squares)


def gp(options: Options) -> Model:
    """A Gaussian process: its log likelihood, its derivatives, or predictions at other points."""
    points, features, name = options["points"], options["features"], options["kernel"]

    def factor(scales: jax.Array, x: jax.Array) -> jax.Array:
        noise = jnp.exp(2 * scales[3]) + 1e-3
        return jnp.linalg.cholesky(_kernel(name, scales, x, x) + noise * jnp.eye(points))

    def likelihood(scales: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        lower = factor(scales, x)
        whitened = jsp.linalg.solve_triangular(lower, y, lower=True)
        logs = jnp.sum(jnp.log(jnp.diagonal(lower)))
        return -0.5 * whitened @ whitened - logs - 0.5 * points * jnp.log(2 * jnp.pi)

    def run(scales: jax.Array, x: jax.Array, y: jax.Array, new: jax.Array) -> Tree:
        if options["of"] != "prediction":
            return derived(likelihood, options["of"])(scales, x, y)
        lower = factor(scales, x)
        cross = _kernel(name, scales, x, new)
        alpha = jsp.linalg.cho_solve((lower, True), y)
        half = jsp.linalg.solve_triangular(lower, cross, lower=True)
        variance = jnp.diag(_kernel(name, scales, new, new)) - jnp.sum(half**2, 0)
        return cross.T @ alpha, jnp.sqrt(jnp.clip(variance, 1e-6, None))

    x = floats(points, features)
    return program(run, scales=floats(4), x=x, y=floats(points), new=x)


def eigen(options: Options) -> Model:
    """Eigenvalues and functions of them, by LAPACK or by iteration."""
    size, method = options["size"], options["method"]

    def spectrum(matrix: jax.Array, start: jax.Array) -> jax.Array:
        symmetric = 0.5 * (matrix + matrix.T) + jnp.diag(jnp.arange(size, dtype=jnp.float32))
        if method == "eigh":
            return jnp.linalg.eigvalsh(symmetric)
        if method == "svd":
            return jnp.linalg.svd(symmetric, compute_uv=False)
        if method == "power":
            return _power(symmetric, start)
        if method == "subspace":
            return _subspace(symmetric, start)
        if method == "lanczos":
            return _lanczos(symmetric, start[:, 0], options["steps"])
        return _jacobi(symmetric)

    def value(matrix: jax.Array, start: jax.Array) -> jax.Array:
        values = spectrum(matrix, start)
        return jnp.log(jnp.sum(jnp.exp(values - values.max()))) + values.max()

    def run(matrix: jax.Array, start: jax.Array) -> Tree:
        if options["of"] == "value":
            return spectrum(matrix, start)
        return derived(value, options["of"])(matrix, start)

    return program(run, matrix=floats(size, size), start=floats(size, 4))


def _power(matrix: jax.Array, start: jax.Array) -> jax.Array:
    """Return the greatest eigenvalues by power iteration with deflation."""
    found: list[jax.Array] = []
    for column in range(3):

        def step(vector: jax.Array, _: None, matrix: jax.Array = matrix) -> tuple[jax.Array, None]:
            image = matrix @ vector
            return image / (jnp.linalg.norm(image) + 1e-6), None

        vector, _ = jax.lax.scan(step, start[:, column] + 0.1, None, length=8)
        value = vector @ matrix @ vector
        found.append(value)
        matrix = matrix - value * jnp.outer(vector, vector)
    return jnp.stack(found)


def _subspace(matrix: jax.Array, start: jax.Array) -> jax.Array:
    def step(_: int, basis: jax.Array) -> jax.Array:
        return jnp.linalg.qr(matrix @ basis)[0]

    basis = jax.lax.fori_loop(0, 6, step, jnp.linalg.qr(start)[0])
    return jnp.linalg.eigvalsh(basis.T @ matrix @ basis)


def _lanczos(matrix: jax.Array, start: jax.Array, steps: int) -> jax.Array:
    """Return the eigenvalues of the tridiagonal matrix of a few reorthogonalised Lanczos steps."""
    basis = [start / (jnp.linalg.norm(start) + 1e-6)]
    alphas: list[jax.Array] = []
    betas: list[jax.Array] = []
    for place in range(steps):
        image = matrix @ basis[-1]
        alphas.append(basis[-1] @ image)
        known = jnp.stack(basis)
        image = image - known.T @ (known @ image)
        betas.append(jnp.linalg.norm(image))
        if place + 1 < steps:
            basis.append(image / (betas[-1] + 1e-6))
    off = jnp.stack(betas[:-1]) if steps > 1 else jnp.zeros(0)
    return jnp.linalg.eigvalsh(jnp.diag(jnp.stack(alphas)) + jnp.diag(off, 1) + jnp.diag(off, -1))


def _jacobi(matrix: jax.Array) -> jax.Array:
    """Return the diagonal after sweeps of Jacobi rotations."""
    size = matrix.shape[0]
    rows, columns = jnp.triu_indices(size, 1)

    def rotate(matrix: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        p, q = pair
        theta = 0.5 * jnp.arctan2(2 * matrix[p, q], matrix[q, q] - matrix[p, p])
        c, s = jnp.cos(theta), jnp.sin(theta)
        turn = jnp.eye(size).at[p, p].set(c).at[q, q].set(c).at[p, q].set(s).at[q, p].set(-s)
        return turn.T @ matrix @ turn, None

    return jnp.sort(jnp.diagonal(jax.lax.scan(rotate, matrix, (rows, columns))[0]))


def _conjugate(
    apply: Callable[[jax.Array], jax.Array], scale: jax.Array, right: jax.Array, tolerance: jax.Array
) -> Tree:
    """Conjugate gradients with a diagonal preconditioner."""

    def unfinished(state: Tree) -> jax.Array:
        return (state["rz"] > 1e-6 * tolerance) & (state["count"] < 16)

    def step(state: Tree) -> Tree:
        image = apply(state["p"])
        rate = state["rz"] / jnp.vdot(state["p"], image)
        r = state["r"] - rate * image
        z = r / scale
        rz = jnp.vdot(r, z)
        p = z + rz / state["rz"] * state["p"]
        return {"x": state["x"] + rate * state["p"], "r": r, "p": p, "rz": rz, "count": state["count"] + 1}

    z = right / scale
    start = {"x": jnp.zeros_like(right), "r": right, "p": z, "rz": jnp.vdot(right, z), "count": 0}
    end = jax.lax.while_loop(unfinished, step, start)
    return end["x"], end["count"]


def krylov(options: Options) -> Model:
    """A linear system solved by iteration; the matrix is dense or a stencil on a grid."""
    size, method = options["size"], options["method"]
    dense = options["matrix"] == "dense"

    def run(weights: jax.Array, right: jax.Array, tolerance: jax.Array) -> Tree:
        if dense:
            matrix = weights @ weights.T + jnp.eye(size * size)
            scale = jnp.diagonal(matrix)

            def apply(x: jax.Array) -> jax.Array:
                return matrix @ x
        else:
            field = jnp.abs(weights[:, :size].reshape(-1)[: size * size]) + 0.5
            scale = 4.0 + field

            def apply(x: jax.Array) -> jax.Array:
                grid = jnp.pad(x.reshape(size, size), 1)
                around = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
                return scale * x - around.reshape(-1)

        if method == "preconditioned":
            return _conjugate(apply, scale, right, tolerance)
        if method == "cg":
            return jsp.sparse.linalg.cg(apply, right, tol=1e-4, maxiter=12)[0]
        if method == "bicgstab":
            return jsp.sparse.linalg.bicgstab(apply, right, tol=1e-3, maxiter=6)[0]
        if method == "gmres":
            return jsp.sparse.linalg.gmres(apply, right, restart=4, maxiter=1, solve_method="batched")[0]
        if method == "jacobi":
            return jax.lax.fori_loop(0, 10, lambda _, x: x + 0.5 * (right - apply(x)) / scale, 0 * right)
        return _chebyshev(apply, right / scale.max(), scale.max())

    return program(run, weights=floats(size * size, size), right=floats(size * size), tolerance=floats())


def _chebyshev(apply: Callable[[jax.Array], jax.Array], start: jax.Array, high: jax.Array) -> jax.Array:
    low = 0.1 * high
    centre, half = 0.5 * (high + low), 0.5 * (high - low)
    right = start * high

    def step(carry: Any, _: None) -> tuple[Any, None]:
        x, p, alpha, first = carry
        r = right - apply(x)
        beta = jnp.where(first, 0.0, (half * alpha / 2.0) ** 2)
        alpha = jnp.where(first, 1.0 / centre, 1.0 / (centre - beta / alpha))
        p = r + beta * p
        return (x + alpha * p, p, alpha, jnp.zeros_like(first)), None

    begin = (start, jnp.zeros_like(start), jnp.float32(1.0), jnp.bool_(True))
    return jax.lax.scan(step, begin, None, length=8)[0][0]


def matfun(options: Options) -> Model:
    """A function of a matrix, or the gradient of its weighted sum."""
    size, method = options["size"], options["method"]

    def image(matrix: jax.Array) -> jax.Array:
        regular = matrix + 2.0 * jnp.eye(size)
        if method == "exponential":
            return jsp.linalg.expm(matrix, max_squarings=4)
        if method == "inverse":
            return jnp.linalg.inv(regular)
        if method == "determinant":
            sign, logs = jnp.linalg.slogdet(regular)
            return sign * logs * regular
        if method == "pseudoinverse":
            return jnp.linalg.pinv(regular, rtol=1e-4)
        if method == "polar":
            return _iterated_sign(regular, options["steps"])
        return _root(regular @ regular.T, options["steps"])

    def value(matrix: jax.Array, weights: jax.Array) -> jax.Array:
        return jnp.sum(weights * jnp.tril(image(matrix)))

    def run(matrix: jax.Array, weights: jax.Array) -> Tree:
        if options["of"] == "value":
            return image(matrix)
        return derived(value, options["of"])(matrix, weights)

    return program(run, matrix=floats(size, size), weights=floats(size, size))


def _iterated_sign(matrix: jax.Array, steps: int) -> jax.Array:
    """Return the orthogonal factor of a matrix by Newton-Schulz iterations."""
    x = matrix / jnp.sqrt(jnp.sum(matrix**2))
    for _ in range(steps):
        x = 1.5 * x - 0.5 * x @ x.T @ x
    return x


def _root(matrix: jax.Array, steps: int) -> jax.Array:
    """Return the square root of a positive matrix by Denman-Beavers iterations."""
    y, z = matrix, jnp.eye(matrix.shape[0])
    for _ in range(steps):
        y, z = 0.5 * (y + jnp.linalg.inv(z)), 0.5 * (z + jnp.linalg.inv(y))
    return y
