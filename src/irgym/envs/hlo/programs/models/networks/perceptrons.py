"""Models made of dense layers: perceptron, MLP-Mixer, DLRM, NeRF."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.networks.layers import (
    dense,
    dense_shapes,
    feed_forward,
    feed_forward_shapes,
    layer_norm,
    maybe_dropout,
    norm_shapes,
)
from irgym.envs.hlo.programs.models.networks.tasks import classifier

ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "tanh": jnp.tanh, "silu": jax.nn.silu}
"""Activation functions, by name."""


def perceptron_shapes(sizes: Sequence[int]) -> Tree:
    """Return the weights of dense layers from each size to the next."""
    return [dense_shapes(*pair) for pair in pairwise(sizes)]


def perceptron(x: jax.Array, layers: Tree, activation: str = "relu") -> jax.Array:
    """Apply dense layers with an activation between them."""
    for layer in layers[:-1]:
        x = ACTIVATIONS[activation](dense(x, layer))
    return dense(x, layers[-1])


def mlp(options: Options) -> Model:
    """Classify flat images with dense layers."""
    layers, batch, inputs = options["layers"], options["batch"], options["inputs"]
    activation = ACTIVATIONS[options["activation"]]
    parameters = perceptron_shapes([inputs, *[options["width"]] * (layers - 1), options["classes"]])

    def logits(weights: Tree, x: jax.Array, key: jax.Array | None) -> jax.Array:
        keys = None if key is None else jax.random.split(key, layers)
        for index, layer in enumerate(weights[:-1]):
            x = maybe_dropout(None if keys is None else keys[index], activation(dense(x, layer)), 0.5)
        return dense(x, weights[-1])

    return classifier(parameters, floats(batch, inputs), logits, options["dropout"])


def mixer(options: Options) -> Model:
    """MLP-Mixer: dense layers over patches and over channels in turn (Tolstikhin, arXiv 2105.01601)."""
    layers, width, patch = options["layers"], options["width"], options["patch"]
    batch, pixels = options["batch"], options["pixels"]
    patches = (pixels // patch) ** 2
    block = {
        "first_norm": norm_shapes(width),
        "patches": feed_forward_shapes(patches, width // 2),
        "second_norm": norm_shapes(width),
        "channels": feed_forward_shapes(width, 4 * width),
    }
    parameters = {
        "stem": {"kernel": floats(patch, patch, 3, width), "bias": floats(width)},
        "blocks": [block] * layers,
        "norm": norm_shapes(width),
        "head": dense_shapes(width, options["classes"]),
    }

    def logits(weights: Tree, images: jax.Array, key: jax.Array | None) -> jax.Array:
        x = jax.lax.conv_general_dilated(
            images,
            weights["stem"]["kernel"],
            (patch, patch),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        x = (x + weights["stem"]["bias"]).reshape(batch, patches, width)
        for layer in weights["blocks"]:
            turned = layer_norm(x, layer["first_norm"]).swapaxes(1, 2)
            x = x + feed_forward(turned, layer["patches"]).swapaxes(1, 2)
            x = x + feed_forward(layer_norm(x, layer["second_norm"]), layer["channels"])
        return dense(layer_norm(x, weights["norm"]).mean(1), weights["head"])

    return classifier(parameters, floats(batch, pixels, pixels, 3), logits)


def _binary_loss(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the cross-entropy of labels in 0..1 and logits, in a form that does not overflow."""
    return jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits)))


def dlrm(options: Options) -> Model:
    """Recommendation from dense features and embedding tables (Naumov et al., arXiv 1906.00091)."""
    tables, rows, width, layers = (options[n] for n in ("tables", "rows", "width", "layers"))
    batch, features, bag = options["batch"], options["features"], options["bag"]
    pairs = (tables + 1) * tables // 2
    parameters = {
        "tables": [floats(rows, width) for _ in range(tables)],
        "bottom": perceptron_shapes([features, *[2 * width] * (layers - 1), width]),
        "top": perceptron_shapes([width + pairs, *[2 * width] * (layers - 1), 1]),
    }

    def logits(weights: Tree, inputs: Tree) -> jax.Array:
        below = jax.nn.relu(perceptron(inputs["dense"], weights["bottom"]))
        found = [table[inputs["sparse"][:, i]].sum(1) for i, table in enumerate(weights["tables"])]
        every = jnp.stack([below, *found], axis=1)
        products = jnp.einsum("bid,bjd->bij", every, every)
        left, right = jnp.tril_indices(tables + 1, -1)
        joined = jnp.concatenate([below, products[:, left, right]], axis=-1)
        return perceptron(joined, weights["top"])[:, 0]

    def loss(weights: Tree, state: Tree, inputs: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        return _binary_loss(logits(weights, inputs), inputs["clicked"]).mean(), state

    def forward(weights: Tree, state: Tree, inputs: Tree) -> jax.Array:
        return jax.nn.sigmoid(logits(weights, inputs))

    inputs = {"dense": floats(batch, features), "sparse": integers(batch, tables, bag)}
    return Model(parameters, inputs | {"clicked": floats(batch)}, loss, inputs, forward)


def _frequencies(x: jax.Array, count: int) -> jax.Array:
    """Return x with sines and cosines of 1, 2, 4, ... times it."""
    scaled = [x * 2.0**power for power in range(count)]
    return jnp.concatenate([x, *map(jnp.sin, scaled), *map(jnp.cos, scaled)], axis=-1)


def nerf(options: Options) -> Model:
    """Neural radiance field: colours of rays by volume rendering (Mildenhall, arXiv 2003.08934)."""
    layers, width, samples, batch = (options[n] for n in ("layers", "width", "samples", "batch"))
    frequencies = options["frequencies"]
    place, direction = 3 + 6 * frequencies, 3 + 6 * 4
    parameters = {
        "first": perceptron_shapes([place, *[width] * layers]),
        "second": perceptron_shapes([width + place, *[width] * layers]),
        "density": dense_shapes(width, 1),
        "colour": perceptron_shapes([width + direction, width // 2, 3]),
    }

    def render(weights: Tree, rays: Tree, key: jax.Array | None) -> jax.Array:
        depths = jnp.broadcast_to(jnp.linspace(2.0, 6.0, samples), (batch, samples))
        if key is not None:
            depths = depths + jax.random.uniform(key, depths.shape) * (4.0 / samples)
        depths = depths.astype(rays["origin"].dtype)
        points = rays["origin"][:, None] + rays["direction"][:, None] * depths[..., None]
        encoded = _frequencies(points, frequencies)
        hidden = jax.nn.relu(perceptron(encoded, weights["first"]))
        hidden = jnp.concatenate([hidden, encoded], axis=-1)
        hidden = jax.nn.relu(perceptron(hidden, weights["second"]))
        density = jax.nn.relu(dense(hidden, weights["density"])[..., 0])
        norms = jnp.linalg.norm(rays["direction"], axis=-1, keepdims=True)
        views = _frequencies(rays["direction"] / norms, 4)
        views = jnp.broadcast_to(views[:, None], (batch, samples, direction))
        colour = jax.nn.sigmoid(perceptron(jnp.concatenate([hidden, views], axis=-1), weights["colour"]))
        gaps = jnp.concatenate([depths[:, 1:] - depths[:, :-1], jnp.full((batch, 1), 1e3)], axis=-1)
        opacity = 1.0 - jnp.exp(-density * gaps)
        clear = jnp.cumprod(1.0 - opacity + 1e-6, axis=-1)
        clear = jnp.concatenate([jnp.ones((batch, 1)), clear[:, :-1]], axis=-1)
        return ((opacity * clear)[..., None] * colour).sum(1)

    def loss(weights: Tree, state: Tree, rays: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        return jnp.mean((render(weights, rays, key) - rays["colour"]) ** 2), state

    def forward(weights: Tree, state: Tree, rays: Tree) -> jax.Array:
        return render(weights, rays, None)

    rays = {"origin": floats(batch, 3), "direction": floats(batch, 3)}
    return Model(parameters, rays | {"colour": floats(batch, 3)}, loss, rays, forward)
