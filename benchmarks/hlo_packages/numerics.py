"""Numerical programs, with optax, numpyro and diffrax: optimisers, densities, samplers, solvers.

Each builder returns a function and its arguments.
"""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import HMC, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import initialize_model, log_density

Built = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""

KEY = jax.random.PRNGKey(0)


# optax


def _valley(x: Any) -> Any:
    """Rosenbrock's function."""
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def optax_lbfgs() -> Built:
    """A step of L-BFGS with its line search on Rosenbrock's function."""
    optimiser = optax.lbfgs()
    x = jnp.zeros(8)

    def step(x: Any, state: Any) -> Any:
        value, slopes = optax.value_and_grad_from_state(_valley)(x, state=state)
        updates, state = optimiser.update(slopes, state, x, value=value, grad=slopes, value_fn=_valley)
        return optax.apply_updates(x, updates), state

    return step, (x, optimiser.init(x))


def _updated(optimiser: Any, *shapes: tuple[int, ...]) -> Built:
    weights = [jnp.zeros(shape) for shape in shapes]

    def step(weights: Any, state: Any, slopes: Any) -> Any:
        updates, state = optimiser.update(slopes, state, weights)
        return optax.apply_updates(weights, updates), state

    return step, (weights, optimiser.init(weights), weights)


def optax_adamw() -> Built:
    """AdamW with clipping, a schedule and accumulation over four steps, on ten arrays."""
    chained = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000), weight_decay=0.01),
    )
    every = optax.MultiSteps(chained, 4)
    return _updated(optax.GradientTransformation(every.init, every.update), *[(16, 16)] * 5, *[(16,)] * 5)


def optax_adafactor() -> Built:
    """Adafactor, which factors second moments, on large and small arrays."""
    return _updated(optax.adafactor(1e-3), (256, 128), (128, 256), (128,), (256,))


def optax_muon() -> Built:
    """Muon, which orthogonalises momenta by Newton-Schulz iterations."""
    return _updated(optax.contrib.muon(1e-3), (32, 16), (16, 32), (32,))


def optax_ctc() -> Built:
    """The gradient of the connectionist temporal classification loss."""

    def loss(logits: Any, labels: Any) -> Any:
        paddings = jnp.zeros(logits.shape[:2]), jnp.zeros(labels.shape)
        return optax.ctc_loss(logits, paddings[0], labels, paddings[1]).mean()

    return jax.value_and_grad(loss), (jnp.zeros((2, 20, 12)), jnp.ones((2, 6), jnp.int32))


# numpyro


def _schools(sigma: Any, y: Any = None) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample(
            "theta", dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.AffineTransform(mu, tau))
        )
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def numpyro_schools() -> Built:
    """The gradient of the potential energy of eight schools."""
    sigma, y = jnp.full(8, 10.0), jnp.arange(8.0)
    made = initialize_model(KEY, _schools, model_args=(sigma, y))
    return jax.value_and_grad(made.potential_fn), (made.param_info.z,)


def numpyro_hmc() -> Built:
    """A step of Hamiltonian Monte Carlo on eight schools."""
    kernel = HMC(_schools, num_steps=4, trajectory_length=None)
    sigma, y = jnp.full(8, 10.0), jnp.arange(8.0)
    state = kernel.init(KEY, 10, None, (sigma, y), {})
    return (lambda state, sigma, y: kernel.sample(state, (sigma, y), {}).z), (state, sigma, y)


def _regression(x: Any, y: Any = None) -> None:
    slope = numpyro.sample("slope", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    degrees = numpyro.sample("degrees", dist.Gamma(2.0, 0.1))
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.StudentT(degrees, x @ slope, scale), obs=y)


def numpyro_svi() -> Built:
    """A step of stochastic variational inference on a robust regression."""
    inference = SVI(_regression, AutoNormal(_regression), optax.adam(1e-2), Trace_ELBO())
    x, y = jnp.ones((20, 3)), jnp.zeros(20)
    state = inference.init(KEY, x, y)
    return inference.update, (state, x, y)


def _process(x: Any, y: Any) -> None:
    variance = numpyro.sample("variance", dist.LogNormal(0.0, 1.0))
    length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
    noise = numpyro.sample("noise", dist.LogNormal(0.0, 1.0))
    far = ((x[:, None] - x[None]) / length) ** 2
    kernel = variance * jnp.exp(-0.5 * far) + (noise + 1e-4) * jnp.eye(x.shape[0])
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(x.shape[0]), kernel), obs=y)


def numpyro_gp() -> Built:
    """The gradient of the log density of a Gaussian process: a Cholesky decomposition."""
    x, y = jnp.linspace(0.0, 1.0, 16), jnp.zeros(16)

    def density(values: Any, x: Any, y: Any) -> Any:
        return log_density(_process, (x, y), {}, values)[0]

    return jax.value_and_grad(density), (dict.fromkeys(("variance", "length", "noise"), jnp.ones(())), x, y)


def _mixture(x: Any) -> None:
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    with numpyro.plate("components", 3):
        places = numpyro.sample("places", dist.Normal(0.0, 10.0))
        scales = numpyro.sample("scales", dist.InverseGamma(2.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        mixture = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(places, scales))
        numpyro.sample("x", mixture, obs=x)


def numpyro_mixture() -> Built:
    """The gradient of the potential energy of a mixture of normals."""
    made = initialize_model(KEY, _mixture, model_args=(jnp.linspace(-3.0, 3.0, 24),))
    return jax.value_and_grad(made.potential_fn), (made.param_info.z,)


# diffrax


def _hunted(t: Any, y: Any, rates: Any) -> Any:
    """Lotka and Volterra's equations."""
    prey, hunters = y
    a, b, c, d = rates
    return a * prey - b * prey * hunters, -c * hunters + d * prey * hunters


def _solved(solver: Any, controller: Any, y0: Any, rates: Any, **options: Any) -> Any:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(_hunted),
        solver,
        t0=0.0,
        t1=2.0,
        dt0=0.1,
        y0=y0,
        args=rates,
        stepsize_controller=controller,
        throw=False,
        **options,
    ).ys


STARTS = (jnp.ones(()), jnp.ones(())), jnp.array([1.0, 0.5, 1.0, 0.5])


def diffrax_tsit5() -> Built:
    """Tsit5 with adaptive steps on Lotka and Volterra's equations, saved at eleven times."""

    def solve(y0: Any, rates: Any) -> Any:
        controller = diffrax.PIDController(rtol=1e-4, atol=1e-4)
        saved = diffrax.SaveAt(ts=jnp.linspace(0.0, 2.0, 11))
        return _solved(diffrax.Tsit5(), controller, y0, rates, saveat=saved)

    return solve, STARTS


def diffrax_constant() -> Built:
    """Dopri5 with constant steps, and the gradient through it."""

    def loss(rates: Any, y0: Any) -> Any:
        prey, _ = _solved(diffrax.Dopri5(), diffrax.ConstantStepSize(), y0, rates, max_steps=32)
        return prey[-1] ** 2

    return jax.value_and_grad(loss), STARTS[::-1]


def diffrax_stiff() -> Built:
    """Kvaerno3, an implicit method, on Robertson's stiff equations."""

    def slopes(t: Any, y: Any, args: Any) -> Any:
        made, used = 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return jnp.stack([-0.04 * y[0] + made, 0.04 * y[0] - made - used, used])

    def solve(y0: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(slopes),
            diffrax.Kvaerno3(),
            t0=0.0,
            t1=1.0,
            dt0=1e-4,
            y0=y0,
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
            throw=False,
        ).ys

    return solve, (jnp.array([1.0, 0.0, 0.0]),)


def diffrax_sde() -> Built:
    """Heun's method on a stochastic equation, driven by a virtual Brownian tree."""

    def solve(y0: Any, key: Any) -> Any:
        noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1, noise)
        )
        return diffrax.diffeqsolve(terms, diffrax.Heun(), t0=0.0, t1=1.0, dt0=0.05, y0=y0, throw=False).ys

    return solve, (jnp.ones(()), KEY)


def diffrax_neural() -> Built:
    """A neural differential equation, trained through its backward equation."""
    weights = {"in": jnp.zeros((4, 16)), "out": jnp.zeros((16, 4))}

    def loss(weights: Any, y0: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, w: jnp.tanh(y @ w["in"]) @ w["out"]),
            diffrax.Heun(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=y0,
            args=weights,
            adjoint=diffrax.BacksolveAdjoint(),
            throw=False,
        )
        return jnp.mean(found.ys**2)

    return jax.value_and_grad(loss), (weights, jnp.ones((8, 4)))


NUMERICS = {
    "optax": (optax_lbfgs, optax_adamw, optax_adafactor, optax_muon, optax_ctc),
    "numpyro": (numpyro_schools, numpyro_hmc, numpyro_svi, numpyro_gp, numpyro_mixture),
    "diffrax": (diffrax_tsit5, diffrax_constant, diffrax_stiff, diffrax_sde, diffrax_neural),
}
"""Builders by package."""
