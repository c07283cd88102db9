"""Signals and images: spectra, digital filters, Kalman filters, wavelets, pictures."""

# jax leaves parts of its own types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics import derived, program


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
    """What is read off the Fourier transform of a signal, or the gradient of its energy."""
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

    def recursive(signal: jax.Array, weights: jax.Array) -> jax.Array:
        """A cascade of sections of second order, in the transposed direct form."""
        sections = 0.5 * jnp.tanh(weights[: options["sections"], :5])

        def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            kept: list[jax.Array] = []
            for place in range(options["sections"]):
                b0, b1, b2, a1, a2 = sections[place]
                y = (1.0 + b0) * x + state[place, 0]
                kept.append(jnp.stack([b1 * x - a1 * y + state[place, 1], b2 * x - a2 * y]))
                x = y
            return jnp.stack(kept), x

        start = jnp.zeros((options["sections"], 2, channels))
        return jax.lax.scan(step, start, signal, unroll=options["unroll"])[1]

    def adaptive(signal: jax.Array, weights: jax.Array) -> jax.Array:
        """Normalised least mean squares: the next sample from those before it."""

        def step(carry: Any, x: jax.Array) -> tuple[Any, jax.Array]:
            w, past = carry
            error = x - jnp.sum(w * past, 0)
            w = w + 0.1 * error * past / (jnp.sum(past**2, 0) + 1e-2)
            return (w, jnp.concatenate([x[None], past[:-1]])), error

        start = (weights[:taps, :1] * jnp.ones(channels), jnp.zeros((taps, channels)))
        return jax.lax.scan(step, start, signal, unroll=options["unroll"])[1]

    def filtered(signal: jax.Array, weights: jax.Array) -> jax.Array:
        kernel = weights[:taps, 0] * jnp.hanning(taps + 2)[1:-1]
        if method == "fir":
            return jax.vmap(lambda one: jnp.convolve(one, kernel, mode="same"), 1, 1)(signal)
        if method == "median":
            padded = jnp.pad(signal, ((taps // 2, taps // 2), (0, 0)), mode="edge")
            shifted = jnp.stack([padded[k : k + length] for k in range(2 * (taps // 2) + 1)])
            return jnp.median(shifted, axis=0)
        if method == "polynomial":
            half = taps // 2
            powers = jnp.vander(jnp.arange(-half, half + 1, dtype=jnp.float32) / max(half, 1), 3)
            smooth = jnp.linalg.pinv(powers)[-1]
            return jax.vmap(lambda one: jnp.convolve(one, smooth, mode="valid"), 1, 1)(signal)
        if method == "resampled":
            places = jnp.linspace(0.0, length - 1.0, 2 * length)
            known = jnp.arange(length, dtype=jnp.float32)
            return jax.vmap(lambda one: jnp.interp(places, known, one), 1, 1)(signal)
        if method == "adaptive":
            return adaptive(signal, weights)
        if method == "associative":
            decay = jax.nn.sigmoid(weights[:channels, 0])
            first = jnp.broadcast_to(decay, signal.shape)

            def joined(left: Any, right: Any) -> Any:
                return left[0] * right[0], right[0] * left[1] + right[1]

            return jax.lax.associative_scan(joined, (first, (1 - decay) * signal))[1]
        return recursive(signal, weights)

    def run(signal: jax.Array, weights: jax.Array) -> Tree:
        if options["of"] == "value":
            return filtered(signal, weights)
        return derived(lambda w, s: jnp.mean(filtered(s, w) ** 2), options["of"])(weights, signal)

    return program(run, signal=floats(length, channels), weights=floats(16, 8))


def kalman(options: Options) -> Model:
    """A Kalman filter: estimates and log likelihood, or the gradient of the latter."""
    states, outputs, length, method = (options[name] for name in ("states", "outputs", "length", "method"))

    def moves(x: jax.Array, transition: jax.Array) -> jax.Array:
        if method in ("extended", "unscented"):
            return x + 0.1 * jnp.sin(transition @ x)
        return 0.9 * x + 0.1 * transition @ x

    def cloud(x: jax.Array, cov: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the sigma points of a normal distribution and their weights."""
        spread = jnp.linalg.cholesky((states + 1.0) * cov)
        points = jnp.concatenate([x[None], x + spread.T, x - spread.T])
        first, rest = 1.0 / (states + 1.0), 0.5 / (states + 1.0)
        return points, jnp.full(2 * states + 1, rest).at[0].set(first)

    def filtered(weights: Tree, observed: jax.Array) -> tuple[jax.Array, Tree]:
        transition, output = weights["transition"], weights["output"]
        noise = jax.nn.softplus(weights["noise"]) + 0.1
        process, measuring = noise[0] * jnp.eye(states), noise[1] * jnp.eye(outputs)

        def predicted(x: jax.Array, cov: jax.Array) -> tuple[jax.Array, jax.Array]:
            if method == "unscented":
                points, shares = cloud(x, cov)
                moved = jax.vmap(moves, (0, None))(points, transition)
                mean = shares @ moved
                return mean, (moved - mean).T @ (shares[:, None] * (moved - mean)) + process
            jacobian = jax.jacfwd(moves)(x, transition)
            return moves(x, transition), jacobian @ cov @ jacobian.T + process

        def step(carry: Any, y: jax.Array) -> tuple[Any, Tree]:
            x, cov, total = carry
            before, spread = predicted(x, cov)
            error = y - output @ before
            innovation = output @ spread @ output.T + measuring
            if method == "information":
                precision = jnp.linalg.inv(spread) + output.T @ output / noise[1]
                cov = jnp.linalg.inv(precision)
                x = before + cov @ output.T @ error / noise[1]
            else:
                factor = jsp.linalg.cho_factor(innovation, lower=True)
                gain = jsp.linalg.cho_solve(factor, output @ spread).T
                x = before + gain @ error
                if method == "joseph":
                    rest = jnp.eye(states) - gain @ output
                    cov = rest @ spread @ rest.T + gain @ measuring @ gain.T
                else:
                    cov = spread - gain @ innovation @ gain.T
                cov = 0.5 * (cov + cov.T)
            sign, logs = jnp.linalg.slogdet(innovation)
            distance = error @ jnp.linalg.solve(innovation, error)
            total = total - 0.5 * (distance + sign * logs + outputs * jnp.log(2 * jnp.pi))
            return (x, cov, total), {"x": x, "cov": cov, "before": before, "spread": spread}

        begin = (jnp.zeros(states), jnp.eye(states), jnp.float32(0.0))
        (_, _, total), trace = jax.lax.scan(step, begin, observed, unroll=options["unroll"])
        return total, trace

    def smoothed(weights: Tree, trace: Tree) -> jax.Array:
        """Go backwards through the estimates (Rauch, Tung and Striebel, 1965)."""
        jacobian = 0.9 * jnp.eye(states) + 0.1 * weights["transition"]

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

    def run(weights: Tree, observed: jax.Array) -> Tree:
        if options["of"] != "value":
            return derived(lambda weights, y: filtered(weights, y)[0], options["of"])(weights, observed)
        total, trace = filtered(weights, observed)
        if method == "smoother":
            return total, smoothed(weights, trace)
        return total, trace["x"], jax.vmap(jnp.diag)(trace["cov"])

    weights = {"transition": floats(states, states), "output": floats(outputs, states), "noise": floats(2)}
    return program(run, weights=weights, observed=floats(length, outputs))


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
    """A wavelet transform: coefficients, or a signal without what is small among them."""
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

    def one(signal: jax.Array) -> Tree:
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
        return jax.vmap(one)(signals)

    return program(run, signals=floats(options["channels"], length))


def _convolved(image: jax.Array, kernel: jax.Array) -> jax.Array:
    return jsp.signal.convolve2d(image, kernel, mode="same")


def _edges(image: jax.Array) -> tuple[jax.Array, jax.Array]:
    across = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    return _convolved(image, across), _convolved(image, across.T)


def picture(options: Options) -> Model:
    """An operation on images."""
    pixels, operation = options["pixels"], options["operation"]

    def windowed(image: jax.Array, least: bool) -> jax.Array:
        start, combine = (jnp.inf, jax.lax.min) if least else (-jnp.inf, jax.lax.max)
        return jax.lax.reduce_window(image, start, combine, (3, 3), (1, 1), "SAME")

    def blurred(image: jax.Array, sigma: float = 1.0) -> jax.Array:
        bell = jnp.exp(-0.5 * (jnp.arange(-3, 4) / sigma) ** 2)
        bell = bell / bell.sum()
        return _convolved(_convolved(image, bell[:, None]), bell[None, :])

    def bilateral(image: jax.Array) -> jax.Array:
        total, weights = jnp.zeros_like(image), jnp.zeros_like(image)
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                near = jnp.roll(image, (i, j), (0, 1))
                weight = jnp.exp(-0.5 * (i * i + j * j) - (near - image) ** 2 / 0.1)
                total, weights = total + weight * near, weights + weight
        return total / weights

    def outlined(image: jax.Array) -> jax.Array:
        """Thin edges: what is a maximum across its own direction, with two thresholds."""
        dx, dy = _edges(blurred(image))
        size, angle = jnp.hypot(dx, dy), jnp.round(jnp.arctan2(dy, dx) / (jnp.pi / 4)) % 4
        ahead = [(0, 1), (1, 1), (1, 0), (1, -1)]
        before = jnp.select([angle == k for k in range(4)], [jnp.roll(size, at, (0, 1)) for at in ahead], 0.0)
        back = [(-i, -j) for i, j in ahead]
        after = jnp.select([angle == k for k in range(4)], [jnp.roll(size, at, (0, 1)) for at in back], 0.0)
        thin = jnp.where((size >= before) & (size >= after), size, 0.0)
        strong = (thin > 0.5 * thin.max()).astype(jnp.float32)
        weak = thin > 0.2 * thin.max()

        def grow(_: int, strong: jax.Array) -> jax.Array:
            return jnp.where(weak, windowed(strong, False), strong)

        return jax.lax.fori_loop(0, 4, grow, strong) * thin

    def equalised(image: jax.Array) -> jax.Array:
        low, high = image.min(), image.max()
        levels = jnp.clip((image - low) / (high - low + 1e-6) * 31, 0, 31).astype(jnp.int32)
        counts = jnp.bincount(levels.ravel(), length=32)
        cumulative = jnp.cumsum(counts)
        table = (cumulative - cumulative[0]) / (pixels * pixels - cumulative[0] + 1)
        return table[levels] + 0.01 * image

    def corners(image: jax.Array) -> jax.Array:
        dx, dy = _edges(image)
        xx, yy, xy = blurred(dx * dx), blurred(dy * dy), blurred(dx * dy)
        score = xx * yy - xy**2 - 0.05 * (xx + yy) ** 2
        return jnp.where(score == windowed(score, False), score, 0.0)

    def turned(image: jax.Array, angle: jax.Array) -> jax.Array:
        middle = (pixels - 1) / 2
        rows, columns = jnp.meshgrid(jnp.arange(pixels) - middle, jnp.arange(pixels) - middle, indexing="ij")
        c, s = jnp.cos(angle), jnp.sin(angle)
        places = [c * rows - s * columns + middle, s * rows + c * columns + middle]
        return jsp.ndimage.map_coordinates(image, places, order=1, mode="constant")

    def distinct(image: jax.Array) -> jax.Array:
        """The threshold between two classes that are furthest apart (Otsu, 1979)."""
        levels = jnp.linspace(image.min(), image.max(), 16)
        below = (image[None] <= levels[:, None, None]).astype(jnp.float32)
        share = below.mean((1, 2))
        left = (below * image).sum((1, 2)) / (below.sum((1, 2)) + 1e-6)
        right = ((1 - below) * image).sum((1, 2)) / ((1 - below).sum((1, 2)) + 1e-6)
        best = levels[jnp.argmax(share * (1 - share) * (left - right) ** 2)]
        return jnp.where(image > best, image, best)

    def one(image: jax.Array, angle: jax.Array) -> jax.Array:
        if operation == "blur":
            return image + 0.5 * (image - blurred(image))
        if operation == "bilateral":
            return bilateral(image)
        if operation == "canny":
            return outlined(image)
        if operation == "equalise":
            return equalised(image)
        if operation == "corners":
            return corners(image)
        if operation == "rotate":
            return turned(image, angle)
        if operation == "morphology":
            opened = windowed(windowed(image, True), False)
            return image - opened + windowed(windowed(opened, False), True)
        if operation == "threshold":
            return distinct(image)
        if operation == "resize":
            return jax.image.resize(image, (pixels // 2, 2 * pixels), "cubic")
        return jnp.hypot(*_edges(image))

    def run(images: jax.Array, angle: jax.Array) -> Tree:
        return jax.vmap(one, (0, None))(images, angle)

    return program(run, images=floats(options["batch"], pixels, pixels), angle=floats())
