"""Signals: spectra, digital filters, Kalman filters, wavelets."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import derived, program


def _frames(signal: jax.Array, length: int, hop: int) -> jax.Array:
    """Return windowed pieces (frames, length) of a signal."""
    starts = jnp.arange(0, signal.shape[0] - length + 1, hop)
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(length) / length)
    return signal[starts[:, None] + jnp.arange(length)[None, :]] * window


def _mel(bins: int, bands: int) -> jax.Array:
    """Return triangular filters (bins, bands)."""
    top = 2595.0 * jnp.log10(1.0 + 8000.0 / 700.0)
    edges = 700.0 * (10.0 ** (jnp.linspace(0.0, top, bands + 2) / 2595.0) - 1.0)
    at = jnp.linspace(0.0, 8000.0, bins)[:, None]
    rise = (at - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[None, 2:] - at) / (edges[2:] - edges[1:-1])
    return jnp.maximum(0.0, jnp.minimum(rise, fall))


def spectrum(options: Options) -> Model:
    """A spectrum, or another function of the Fourier transform of a signal, or the gradient of its energy."""
    length, frame, method = options["length"], options["frame"], options["method"]

    def seen(signal: jax.Array) -> jax.Array:
        if method == "lowpass":
            waves = jnp.fft.rfft(signal)
            gain = 1.0 / (1.0 + (jnp.fft.rfftfreq(length) / 0.1) ** 4)
            return jnp.fft.irfft(waves * gain, n=length)
        if method == "envelope":
            waves = jnp.fft.fft(signal)
            side = jnp.where(
                jnp.arange(length) == 0, 1.0, jnp.where(jnp.arange(length) < length // 2, 2.0, 0.0)
            )
            return jnp.abs(jnp.fft.ifft(waves * side)) + 1e-6
        if method == "autocorrelation":
            faded = (signal - signal.mean()) * jnp.linspace(1.0, 0.5, length)
            waves = jnp.fft.rfft(faded, n=2 * length)
            lags = jnp.fft.irfft(waves * jnp.conj(waves))[:length]
            return lags / (lags[0] + 1e-6)
        frames = _frames(signal, frame, frame // 2)
        power = jnp.abs(jnp.fft.rfft(frames, axis=-1)) ** 2
        if method == "welch":
            return 10 * jnp.log10(power.mean(0) + 1e-6)
        if method == "stft":
            return jnp.log1p(power)
        logs = jnp.log(power @ _mel(power.shape[-1], options["bands"]) + 1e-4)
        if method == "cepstrum":
            places = jnp.arange(options["bands"])
            cosines = jnp.cos(jnp.pi / options["bands"] * (places[:, None] + 0.5) * places[None, :])
            cepstrum = logs @ cosines
            change: Any = jnp.gradient(cepstrum, axis=0)
            return jnp.concatenate([cepstrum, change], -1)
        return logs - logs.mean(0, keepdims=True)

    def run(signal: jax.Array) -> Tree:
        if options["of"] == "value":
            return seen(signal)
        return derived(lambda signal: jnp.mean(seen(signal) ** 2), options["of"])(signal)

    return program(run, signal=floats(length))


def filters(options: Options) -> Model:
    """A digital filter of several channels."""
    length, channels, method, taps = (options[name] for name in ("length", "channels", "method", "taps"))
    unroll = options["unroll"]

    def filtered(signal: jax.Array, weights: jax.Array) -> jax.Array:
        kernel = weights[:taps, 0] * jnp.hanning(taps + 2)[1:-1]
        if method == "fir":
            return jax.vmap(lambda channel: jnp.convolve(channel, kernel, mode="same"), 1, 1)(signal)
        if method == "median":
            padded = jnp.pad(signal, ((taps // 2, taps // 2), (0, 0)), mode="edge")
            shifted = jnp.stack([padded[k : k + length] for k in range(2 * (taps // 2) + 1)])
            return jnp.median(shifted, axis=0)
        if method == "polynomial":
            half = taps // 2
            powers = jnp.vander(jnp.arange(-half, half + 1, dtype=jnp.float32) / max(half, 1), 3)
            smooth = jnp.linalg.pinv(powers)[-1]
            return jax.vmap(lambda channel: jnp.convolve(channel, smooth, mode="valid"), 1, 1)(signal)
        if method == "resampled":
            places = jnp.linspace(0.0, length - 1.0, 2 * length)
            known = jnp.arange(length, dtype=jnp.float32)
            return jax.vmap(lambda channel: jnp.interp(places, known, channel), 1, 1)(signal)
        if method == "adaptive":
            return _adaptive(signal, weights, taps, unroll)
        if method == "associative":
            return _averaged(signal, jax.nn.sigmoid(weights[:channels, 0]))
        return _recursive(signal, weights, options["sections"], unroll)

    def run(signal: jax.Array, weights: jax.Array) -> Tree:
        if options["of"] == "value":
            return filtered(signal, weights)
        return derived(lambda w, s: jnp.mean(filtered(s, w) ** 2), options["of"])(weights, signal)

    return program(run, signal=floats(length, channels), weights=floats(16, 8))


def _recursive(signal: jax.Array, weights: jax.Array, count: int, unroll: int) -> jax.Array:
    """A cascade of sections of second order, in the transposed direct form."""
    sections = 0.5 * jnp.tanh(weights[:count, :5])

    def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        kept: list[jax.Array] = []
        for place in range(count):
            b0, b1, b2, a1, a2 = sections[place]
            y = (1.0 + b0) * x + state[place, 0]
            kept.append(jnp.stack([b1 * x - a1 * y + state[place, 1], b2 * x - a2 * y]))
            x = y
        return jnp.stack(kept), x

    start = jnp.zeros((count, 2, signal.shape[1]))
    return jax.lax.scan(step, start, signal, unroll=unroll)[1]


def _adaptive(signal: jax.Array, weights: jax.Array, taps: int, unroll: int) -> jax.Array:
    """Normalised least mean squares: predict each sample from those before it."""
    channels = signal.shape[1]

    def step(carry: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        w, past = carry
        error = x - jnp.sum(w * past, 0)
        w = w + 0.1 * error * past / (jnp.sum(past**2, 0) + 1e-2)
        return (w, jnp.concatenate([x[None], past[:-1]])), error

    start = (weights[:taps, :1] * jnp.ones(channels), jnp.zeros((taps, channels)))
    return jax.lax.scan(step, start, signal, unroll=unroll)[1]


def _averaged(signal: jax.Array, decay: jax.Array) -> jax.Array:
    """Exponential moving averages, by an associative scan."""
    first = jnp.broadcast_to(decay, signal.shape)

    def joined(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    return jax.lax.associative_scan(joined, (first, (1 - decay) * signal))[1]


def kalman(options: Options) -> Model:
    """A Kalman filter: estimates and log likelihood, or the gradient of the log likelihood."""
    states, outputs, length, method = (options[name] for name in ("states", "outputs", "length", "method"))

    def filtered(weights: Tree, observed: jax.Array) -> tuple[jax.Array, Tree]:
        return _kalman_filter(weights, observed, method, options["unroll"])

    def run(weights: Tree, observed: jax.Array) -> Tree:
        if options["of"] != "value":
            return derived(lambda weights, y: filtered(weights, y)[0], options["of"])(weights, observed)
        total, trace = filtered(weights, observed)
        if method == "smoother":
            return total, _smoothed(weights, trace)
        return total, trace["x"], jax.vmap(jnp.diag)(trace["cov"])

    weights = {"transition": floats(states, states), "output": floats(outputs, states), "noise": floats(2)}
    return program(run, weights=weights, observed=floats(length, outputs))


def _kalman_filter(weights: Tree, observed: jax.Array, method: str, unroll: int) -> tuple[jax.Array, Tree]:
    """Return the log likelihood of observations, and the estimates before and after each."""
    transition, output = weights["transition"], weights["output"]
    outputs, states = output.shape
    noise = jax.nn.softplus(weights["noise"]) + 0.1
    process, measuring = noise[0] * jnp.eye(states), noise[1] * jnp.eye(outputs)

    def corrected(before: jax.Array, spread: jax.Array, error: jax.Array, innovation: jax.Array) -> Any:
        """Return the estimate and its covariance after an observation."""
        if method == "information":
            precision = jnp.linalg.inv(spread) + output.T @ output / noise[1]
            cov = jnp.linalg.inv(precision)
            return before + cov @ output.T @ error / noise[1], cov
        factor = jsp.linalg.cho_factor(innovation, lower=True)
        gain = jsp.linalg.cho_solve(factor, output @ spread).T
        x = before + gain @ error
        if method == "joseph":
            rest = jnp.eye(states) - gain @ output
            cov = rest @ spread @ rest.T + gain @ measuring @ gain.T
        else:
            cov = spread - gain @ innovation @ gain.T
        return x, 0.5 * (cov + cov.T)

    def step(carry: Any, y: jax.Array) -> tuple[Any, Tree]:
        x, cov, total = carry
        before, spread = _predicted(x, cov, transition, process, method)
        error = y - output @ before
        innovation = output @ spread @ output.T + measuring
        x, cov = corrected(before, spread, error, innovation)
        sign, logs = jnp.linalg.slogdet(innovation)
        distance = error @ jnp.linalg.solve(innovation, error)
        total = total - 0.5 * (distance + sign * logs + outputs * jnp.log(2 * jnp.pi))
        return (x, cov, total), {"x": x, "cov": cov, "before": before, "spread": spread}

    begin = (jnp.zeros(states), jnp.eye(states), jnp.float32(0.0))
    (_, _, total), trace = jax.lax.scan(step, begin, observed, unroll=unroll)
    return total, trace


def _predicted(
    x: jax.Array, cov: jax.Array, transition: jax.Array, process: jax.Array, method: str
) -> tuple[jax.Array, jax.Array]:
    """Return the estimate before the next observation, and its covariance."""

    def moves(x: jax.Array, transition: jax.Array) -> jax.Array:
        if method in ("extended", "unscented"):
            return x + 0.1 * jnp.sin(transition @ x)
        return 0.9 * x + 0.1 * transition @ x

    if method == "unscented":
        points, shares = _sigma_points(x, cov)
        moved = jax.vmap(moves, (0, None))(points, transition)
        mean = shares @ moved
        return mean, (moved - mean).T @ (shares[:, None] * (moved - mean)) + process
    jacobian = jax.jacfwd(moves)(x, transition)
    return moves(x, transition), jacobian @ cov @ jacobian.T + process


def _sigma_points(x: jax.Array, cov: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the sigma points of a normal distribution and their weights."""
    states = x.shape[0]
    spread = jnp.linalg.cholesky((states + 1.0) * cov)
    points = jnp.concatenate([x[None], x + spread.T, x - spread.T])
    first, rest = 1.0 / (states + 1.0), 0.5 / (states + 1.0)
    return points, jnp.full(2 * states + 1, rest).at[0].set(first)


def _smoothed(weights: Tree, trace: Tree) -> jax.Array:
    """Correct the estimates from the last to the first (Rauch, Tung and Striebel, 1965)."""
    jacobian = 0.9 * jnp.eye(weights["transition"].shape[0]) + 0.1 * weights["transition"]

    def step(carry: Any, now: Tree) -> tuple[Any, jax.Array]:
        x, cov, ahead, spread = carry
        gain = jnp.linalg.solve(spread, jacobian @ now["cov"]).T
        x = now["x"] + gain @ (x - ahead)
        cov = now["cov"] + gain @ (cov - spread) @ gain.T
        return (x, cov, now["before"], now["spread"]), x

    last = jax.tree.map(lambda leaf: leaf[-1], trace)
    begin = (last["x"], last["cov"], last["before"], last["spread"])
    before = jax.tree.map(lambda leaf: leaf[:-1], trace)
    return jax.lax.scan(step, begin, before, reverse=True)[1]


_FILTERS = {
    "haar": (0.70710678, 0.70710678),
    "daubechies": (0.48296291, 0.8365163, 0.22414387, -0.12940952),
    "symlet": (
        -0.07576571,
        -0.02963553,
        0.49761867,
        0.80373875,
        0.29785780,
        -0.09921954,
        -0.01260397,
        0.03222310,
    ),
}


def wavelet(options: Options) -> Model:
    """A wavelet transform: the coefficients, or the signal without the small ones."""
    length, levels = options["length"], options["levels"]
    low = jnp.array(_FILTERS[options["basis"]])
    high = low[::-1] * jnp.where(jnp.arange(low.shape[0]) % 2 == 0, 1.0, -1.0)

    def split(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        size = low.shape[0]
        around = (
            jnp.concatenate([x, x[: size - 1]])
            if size - 1 <= x.shape[0]
            else jnp.resize(x, (x.shape[0] + size,))
        )
        pieces = jnp.stack([around[k : k + x.shape[0]] for k in range(size)], -1)[::2]
        return pieces @ low, pieces @ high

    def joined(smooth: jax.Array, detail: jax.Array) -> jax.Array:
        count = 2 * smooth.shape[0]
        places = (2 * jnp.arange(smooth.shape[0])[:, None] + jnp.arange(low.shape[0])) % count
        pieces = smooth[:, None] * low + detail[:, None] * high
        return jnp.zeros(count).at[places].add(pieces)

    def shrunk(detail: jax.Array, threshold: jax.Array) -> jax.Array:
        if options["threshold"] == "hard":
            return jnp.where(jnp.abs(detail) > threshold, detail, 0.0)
        return jnp.sign(detail) * jax.nn.relu(jnp.abs(detail) - threshold)

    def transformed(signal: jax.Array) -> Tree:
        details: list[jax.Array] = []
        for _ in range(levels):
            signal, detail = split(signal)
            details.append(detail)
        if options["threshold"] == "none":
            return signal, details
        scale = jnp.median(jnp.abs(details[0])) / 0.6745
        threshold = scale * jnp.sqrt(2 * jnp.log(length))
        for detail in reversed(details):
            signal = joined(signal, shrunk(detail, 0.3 * threshold))
        return signal

    def run(signals: jax.Array) -> Tree:
        return jax.vmap(transformed)(signals)

    return program(run, signals=floats(options["channels"], length))
