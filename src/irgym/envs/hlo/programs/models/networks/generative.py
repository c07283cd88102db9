"""Models that generate images: a U-Net for diffusion, and a variational autoencoder."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import math

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import KEY, Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.networks.layers import (
    attention_shapes,
    dense,
    dense_shapes,
    layer_norm,
    norm_shapes,
    self_attention,
)
from irgym.envs.hlo.programs.models.networks.residual import convolve

NOISE_STEPS = 1000
"""Steps of the diffusion process (Ho et al., arXiv 2006.11239)."""


def _noise_schedule(dtype: jnp.dtype) -> tuple[jax.Array, jax.Array]:
    """Return alpha and its running product for each step."""
    alpha = 1.0 - jnp.linspace(1e-4, 0.02, NOISE_STEPS)
    return alpha.astype(dtype), jnp.cumprod(alpha).astype(dtype)


def _conv_shapes(inputs: int, outputs: int) -> Tree:
    return {"kernel": floats(3, 3, inputs, outputs), "bias": floats(outputs)}


def _conv(x: jax.Array, weights: Tree, stride: int = 1) -> jax.Array:
    return convolve(x, weights["kernel"], stride) + weights["bias"]


def _group_norm(x: jax.Array, weights: Tree) -> jax.Array:
    """Normalise groups of channels (Wu and He, arXiv 1803.08494)."""
    groups = math.gcd(8, x.shape[-1])
    grouped = x.reshape(*x.shape[:3], groups, x.shape[-1] // groups)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    variance = grouped.var((1, 2, 4), keepdims=True)
    normal = ((grouped - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return normal * weights["scale"] + weights["offset"]


def _time_embedding(times: jax.Array, width: int, dtype: jnp.dtype) -> jax.Array:
    """Return sines and cosines of the times, (batch, width)."""
    half = width // 2
    rates = jnp.exp(-math.log(10000.0) * jnp.arange(half) / half)
    angles = times[:, None].astype(jnp.float32) * rates
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1).astype(dtype)


def _residual_shapes(inputs: int, outputs: int, width: int) -> Tree:
    shapes: dict[str, Tree] = {
        "first_norm": norm_shapes(inputs),
        "first": _conv_shapes(inputs, outputs),
        "time": dense_shapes(width, outputs),
        "second_norm": norm_shapes(outputs),
        "second": _conv_shapes(outputs, outputs),
    }
    return shapes | ({"skip": floats(1, 1, inputs, outputs)} if inputs != outputs else {})


def _residual(x: jax.Array, time: jax.Array, weights: Tree) -> jax.Array:
    y = _conv(jax.nn.silu(_group_norm(x, weights["first_norm"])), weights["first"])
    y = y + dense(jax.nn.silu(time), weights["time"])[:, None, None, :]
    y = _conv(jax.nn.silu(_group_norm(y, weights["second_norm"])), weights["second"])
    return y + (convolve(x, weights["skip"]) if "skip" in weights else x)


def _unet_shapes(levels: int, depth: int, width: int) -> Tree:
    """Return the weights of a U-Net: `depth` residual blocks at each level on the way down and up."""
    embedding = 4 * width
    channels = [width << level for level in range(levels)]
    down: list[Tree] = []
    up: list[Tree] = []
    current = width
    skips = [current]
    for level, outputs in enumerate(channels):
        blocks: list[Tree] = []
        for _ in range(depth):
            blocks.append(_residual_shapes(current, outputs, embedding))
            current = outputs
            skips.append(current)
        last = level == levels - 1
        down.append({"blocks": blocks} | ({} if last else {"shrink": _conv_shapes(current, current)}))
        if not last:
            skips.append(current)
    middle = {
        "first": _residual_shapes(current, current, embedding),
        "norm": norm_shapes(current),
        "attention": attention_shapes(current),
        "second": _residual_shapes(current, current, embedding),
    }
    for level, outputs in reversed(list(enumerate(channels))):
        blocks = []
        for _ in range(depth + 1):
            blocks.append(_residual_shapes(current + skips.pop(), outputs, embedding))
            current = outputs
        up.append({"blocks": blocks} | ({"grow": _conv_shapes(current, current)} if level else {}))
    return {
        "time": [dense_shapes(width, embedding), dense_shapes(embedding, embedding)],
        "stem": _conv_shapes(3, width),
        "down": down,
        "middle": middle,
        "up": up,
        "norm": norm_shapes(current),
        "output": _conv_shapes(current, 3),
    }


def _unet(images: jax.Array, times: jax.Array, weights: Tree, width: int, heads: int) -> jax.Array:
    """Predict the noise in images (batch, rows, columns, 3) at times (batch,)."""
    time = dense(_time_embedding(times, width, images.dtype), weights["time"][0])
    time = dense(jax.nn.silu(time), weights["time"][1])
    x = _conv(images, weights["stem"])
    skips = [x]
    for level in weights["down"]:
        for block in level["blocks"]:
            x = _residual(x, time, block)
            skips.append(x)
        if "shrink" in level:
            x = _conv(x, level["shrink"], 2)
            skips.append(x)
    middle = weights["middle"]
    x = _residual(x, time, middle["first"])
    flat = layer_norm(x.reshape(x.shape[0], -1, x.shape[-1]), middle["norm"])
    x = x + self_attention(flat, middle["attention"], heads).reshape(x.shape)
    x = _residual(x, time, middle["second"])
    for level in weights["up"]:
        for block in level["blocks"]:
            x = _residual(jnp.concatenate([x, skips.pop()], axis=-1), time, block)
        if "grow" in level:
            x = _conv(x.repeat(2, axis=1).repeat(2, axis=2), level["grow"])
    return _conv(jax.nn.silu(_group_norm(x, weights["norm"])), weights["output"])


def unet(options: Options) -> Model:
    """Denoising diffusion with a U-Net: a training step, or one step of sampling (arXiv 2006.11239)."""
    width, heads, batch, pixels = (options[n] for n in ("width", "heads", "batch", "pixels"))
    parameters = _unet_shapes(options["levels"], options["depth"], width)
    images = floats(batch, pixels, pixels, 3)

    def loss(weights: Tree, state: Tree, x: jax.Array, key: jax.Array) -> tuple[jax.Array, Tree]:
        first, second = jax.random.split(key)
        times = jax.random.randint(first, (batch,), 0, NOISE_STEPS)
        noise = jax.random.normal(second, x.shape, x.dtype)
        level = _noise_schedule(x.dtype)[1][times][:, None, None, None]
        noisy = jnp.sqrt(level) * x + jnp.sqrt(1.0 - level) * noise
        predicted = _unet(noisy, times, weights, width, heads)
        return jnp.mean(jnp.square(predicted - noise)), state

    def forward(weights: Tree, state: Tree, inputs: Tree) -> jax.Array:
        x, time = inputs["images"], inputs["time"]
        predicted = _unet(x, jnp.full((batch,), time), weights, width, heads)
        alphas, products = _noise_schedule(x.dtype)
        alpha, product = alphas[time], products[time]
        before = jnp.where(time > 0, products[time - 1], 1.0)
        mean = (x - (1.0 - alpha) / jnp.sqrt(1.0 - product) * predicted) / jnp.sqrt(alpha)
        variance = (1.0 - alpha) * (1.0 - before) / (1.0 - product)
        noise = jax.random.normal(inputs["noise"], x.shape, x.dtype)
        return mean + jnp.where(time > 0, jnp.sqrt(variance), 0.0) * noise

    inputs = {"images": images, "time": integers(), "noise": KEY}
    return Model(parameters, images, loss, inputs, forward)


def vae(options: Options) -> Model:
    """Variational autoencoder of images (Kingma and Welling, arXiv 1312.6114); inference samples."""
    width, depth, latents = options["width"], options["depth"], options["latents"]
    batch, pixels = options["batch"], options["pixels"]
    channels = [width << level for level in range(depth)]
    side, top = pixels >> depth, channels[-1]
    parameters = {
        "encoder": [_conv_shapes(a, b) for a, b in zip([3, *channels], channels, strict=False)],
        "moments": dense_shapes(side * side * top, 2 * latents),
        "unpack": dense_shapes(latents, side * side * top),
        "decoder": [_conv_shapes(a, b) for a, b in zip(channels[::-1], [*channels[-2::-1], 3], strict=True)],
    }

    def decode(weights: Tree, codes: jax.Array) -> jax.Array:
        x = jax.nn.relu(dense(codes, weights["unpack"])).reshape(batch, side, side, top)
        for index, layer in enumerate(weights["decoder"]):
            x = jax.lax.conv_transpose(x, layer["kernel"], (2, 2), "SAME") + layer["bias"]
            x = jax.nn.relu(x) if index < depth - 1 else x
        return x

    def loss(weights: Tree, state: Tree, images: jax.Array, key: jax.Array) -> tuple[jax.Array, Tree]:
        x = images
        for layer in weights["encoder"]:
            x = jax.nn.relu(_conv(x, layer, 2))
        mean, log_variance = jnp.split(dense(x.reshape(batch, -1), weights["moments"]), 2, axis=-1)
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        logits = decode(weights, mean + jnp.exp(0.5 * log_variance) * noise)
        errors = jnp.maximum(logits, 0) - logits * images + jnp.log1p(jnp.exp(-jnp.abs(logits)))
        divergence = -0.5 * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum(-1)
        return (errors.sum((1, 2, 3)) + divergence).mean(), state

    def forward(weights: Tree, state: Tree, noise: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(decode(weights, jax.random.normal(noise, (batch, latents))))

    return Model(parameters, floats(batch, pixels, pixels, 3), loss, KEY, forward)
