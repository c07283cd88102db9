"""Programs with networks of haiku, flax and equinox: training steps and forward passes.

Each builder returns a function and its arguments; the weights are those that the package draws.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import optax
from flax import nnx

Built = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""

KEY = jax.random.PRNGKey(0)


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _trained(apply: Callable[..., Any], weights: Any, optimiser: Any, *batch: Any) -> Built:
    """Return a training step of `apply(weights, x)` on a batch `(x, labels)`."""

    def step(weights: Any, state: Any, x: Any, labels: Any) -> Any:
        loss, slopes = jax.value_and_grad(lambda w: _cross_entropy(apply(w, x), labels))(weights)
        updates, state = optimiser.update(slopes, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    return step, (weights, optimiser.init(weights), *batch)


def _images(*shape: int) -> Any:
    return jnp.zeros(shape), jnp.zeros(shape[0], jnp.int32)


# haiku


def haiku_mlp() -> Built:
    """Classifier of `hk.nets.MLP` with Adam."""
    net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([64, 64, 10])(jnp.log1p(x))))
    x, labels = _images(8, 64)
    return _trained(net.apply, net.init(KEY, x), optax.adam(1e-3), x, labels)


def haiku_resnet() -> Built:
    """`hk.nets.ResNet18` in training: batch normalisation keeps a state."""
    net = hk.transform_with_state(lambda x: hk.nets.ResNet18(10)(x, is_training=True))
    x, labels = _images(2, 32, 32, 3)
    weights, state = net.init(KEY, x)
    optimiser = optax.sgd(0.1, momentum=0.9)

    def loss(weights: Any, state: Any, x: Any, labels: Any) -> Any:
        logits, state = net.apply(weights, state, None, x)
        return _cross_entropy(logits, labels), state

    def step(weights: Any, state: Any, moments: Any, x: Any, labels: Any) -> Any:
        slopes, state = jax.grad(loss, has_aux=True)(weights, state, x, labels)
        updates, moments = optimiser.update(slopes, moments)
        return optax.apply_updates(weights, updates), state, moments

    return step, (weights, state, optimiser.init(weights), x, labels)


def haiku_lstm() -> Built:
    """An `hk.LSTM` over a sequence, by `hk.dynamic_unroll`."""

    def forward(x: Any) -> Any:
        core = hk.LSTM(32)
        outputs, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
        return hk.Linear(10)(outputs[-1])

    net = hk.without_apply_rng(hk.transform(forward))
    x = jnp.zeros((16, 4, 8))
    return _trained(net.apply, net.init(KEY, x), optax.rmsprop(1e-3), x, jnp.zeros(4, jnp.int32))


def haiku_transformer() -> Built:
    """Two blocks of `hk.MultiHeadAttention` with dropout, forward and backward."""

    def forward(tokens: Any) -> Any:
        x = hk.Embed(128, 32)(tokens)
        for _ in range(2):
            y = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.dropout(hk.next_rng_key(), 0.1, hk.MultiHeadAttention(4, 8, w_init_scale=1.0)(y, y, y))
            y = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.dropout(hk.next_rng_key(), 0.1, hk.nets.MLP([128, 32], activation=jax.nn.gelu)(y))
        return hk.Linear(128)(x)

    net = hk.transform(forward)
    tokens = jnp.zeros((2, 16), jnp.int32)

    def loss(weights: Any, key: Any, tokens: Any) -> Any:
        return _cross_entropy(net.apply(weights, key, tokens[:, :-1]), tokens[:, 1:])

    return jax.value_and_grad(loss), (net.init(KEY, tokens), KEY, tokens)


def haiku_mobilenet() -> Built:
    """`hk.nets.MobileNetV1` at inference."""
    net = hk.without_apply_rng(
        hk.transform_with_state(
            lambda x, training: hk.nets.MobileNetV1(num_classes=10)(x, is_training=training)
        )
    )
    x, _ = _images(2, 32, 32, 3)
    weights, state = net.init(KEY, x, True)

    def forward(weights: Any, state: Any, x: Any) -> Any:
        return net.apply(weights, state, x, False)[0]

    return forward, (weights, state, x)


# flax


class _Convolutional(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.avg_pool(nn.relu(nn.Conv(16, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.avg_pool(nn.relu(nn.Conv(32, (3, 3))(x)), (2, 2), (2, 2))
        return nn.Dense(10)(nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1))))


def flax_cnn() -> Built:
    """A network for digits in flax.linen, with SGD and momentum."""
    net = _Convolutional()
    x, labels = _images(4, 28, 28, 1)
    return _trained(net.apply, net.init(KEY, x), optax.sgd(0.1, 0.9), x, labels)


class _Autoencoder(nn.Module):
    @nn.compact
    def __call__(self, x: Any, key: Any) -> Any:
        hidden = nn.relu(nn.Dense(64)(x))
        mean, log_variance = nn.Dense(8)(hidden), nn.Dense(8)(hidden)
        z = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
        return nn.Dense(x.shape[-1])(nn.relu(nn.Dense(64)(z))), mean, log_variance


def flax_vae() -> Built:
    """A variational autoencoder in flax.linen: gradient of the evidence bound."""
    net = _Autoencoder()
    x = jnp.zeros((4, 196))

    def loss(weights: Any, x: Any, key: Any) -> Any:
        logits, mean, log_variance = net.apply(weights, x, key)
        likely = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
        near = -0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance), -1)
        return (likely + near).mean()

    return jax.value_and_grad(loss), (net.init(KEY, x, KEY), x, KEY)


class _Tagger(nn.Module):
    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        x = nn.Embed(100, 16)(tokens)
        x = nn.Bidirectional(nn.RNN(nn.LSTMCell(16)), nn.RNN(nn.LSTMCell(16)))(x)
        return nn.Dense(5)(x)


def flax_lstm() -> Built:
    """A bidirectional LSTM that tags words, with AdamW."""
    net = _Tagger()
    tokens = jnp.zeros((2, 12), jnp.int32)
    return _trained(net.apply, net.init(KEY, tokens), optax.adamw(1e-3), tokens, tokens)


class _Encoder(nn.Module):
    layers: int

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        x = nn.Embed(100, 32)(tokens) + self.param("places", nn.initializers.normal(), (1, 16, 32))
        for _ in range(self.layers):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            x = x + nn.Dense(32)(nn.gelu(nn.Dense(128)(nn.LayerNorm()(x))))
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


def flax_transformer() -> Built:
    """An encoder of four blocks in flax.linen, with clipping, warm-up and AdamW."""
    net = _Encoder(4)
    tokens = jnp.zeros((2, 16), jnp.int32)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    return _trained(net.apply, net.init(KEY, tokens), optimiser, tokens, jnp.zeros(2, jnp.int32))


class _Normalised(nnx.Module):
    def __init__(self, rngs: Any) -> None:
        self.first = nnx.Linear(32, 64, rngs=rngs)
        self.norm = nnx.BatchNorm(64, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


def flax_nnx() -> Built:
    """A network of flax.nnx with batch normalisation and dropout: its gradient and statistics."""
    parts, state = nnx.split(_Normalised(nnx.Rngs(0)))

    def step(state: Any, x: Any, labels: Any) -> Any:
        net = nnx.merge(parts, state)
        slopes = nnx.grad(lambda net: _cross_entropy(net(x), labels))(net)
        return slopes, nnx.state(net)

    return step, (state, *_images(8, 32))


# equinox


def _split(module: Any, call: Callable[[Any, Any], Any], optimiser: Any, *batch: Any) -> Built:
    weights, rest = eqx.partition(module, eqx.is_inexact_array)
    return _trained(lambda w, x: call(eqx.combine(w, rest), x), weights, optimiser, *batch)


def _batched(net: Any, x: Any) -> Any:
    return jax.vmap(net)(x)


def equinox_mlp() -> Built:
    """`eqx.nn.MLP` under vmap, with Adam."""
    net = eqx.nn.MLP(16, 10, 32, 3, key=KEY)
    return _split(net, _batched, optax.adam(1e-3), *_images(8, 16))


class _Recurrent(eqx.Module):
    cell: Any
    last: Any

    def __call__(self, x: Any) -> Any:
        hidden, _ = jax.lax.scan(lambda h, features: (self.cell(features, h), None), jnp.zeros(16), x)
        return self.last(hidden)


def equinox_gru() -> Built:
    """A GRU cell over a sequence by `lax.scan`, under vmap."""
    net = _Recurrent(eqx.nn.GRUCell(4, 16, key=KEY), eqx.nn.Linear(16, 10, key=KEY))
    x = jnp.zeros((4, 12, 4))
    return _split(net, _batched, optax.adabelief(1e-3), x, jnp.zeros(4, jnp.int32))


class _Attending(eqx.Module):
    embed: Any
    attend: list[Any]
    feed: list[Any]
    norms: list[Any]
    last: Any

    def __call__(self, tokens: Any) -> Any:
        x = jax.vmap(self.embed)(tokens)
        mask = jnp.tril(jnp.ones((tokens.shape[0],) * 2, bool))
        for attend, feed, norm in zip(self.attend, self.feed, self.norms, strict=True):
            y = jax.vmap(norm)(x)
            x = x + attend(y, y, y, mask=mask)
            x = x + jax.vmap(feed)(jax.vmap(norm)(x))
        return jax.vmap(self.last)(x)


def equinox_transformer() -> Built:
    """Three blocks of `eqx.nn.MultiheadAttention` with a causal mask."""
    keys = jax.random.split(KEY, 8)
    net = _Attending(
        eqx.nn.Embedding(64, 32, key=keys[0]),
        [eqx.nn.MultiheadAttention(4, 32, key=key) for key in keys[1:4]],
        [eqx.nn.MLP(32, 32, 128, 1, activation=jax.nn.gelu, key=key) for key in keys[4:7]],
        [eqx.nn.LayerNorm(32) for _ in range(3)],
        eqx.nn.Linear(32, 64, key=keys[7]),
    )
    tokens = jnp.zeros((2, 16), jnp.int32)
    return _split(net, _batched, optax.lion(1e-4), tokens, tokens)


def equinox_cnn() -> Built:
    """Convolutions and poolings of equinox in `eqx.nn.Sequential`."""
    keys = jax.random.split(KEY, 3)
    net = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(3, 8, 3, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.Conv2d(8, 16, 3, key=keys[1]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.AdaptiveAvgPool2d(1),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(16, 10, key=keys[2]),
        ]
    )
    return _split(net, _batched, optax.adam(1e-3), *_images(4, 3, 20, 20))


def equinox_pinn() -> Built:
    """A network for the heat equation: second derivatives by `jax.hessian` within the loss."""
    net = eqx.nn.MLP(2, "scalar", 16, 2, activation=jnp.tanh, key=KEY)
    weights, rest = eqx.partition(net, eqx.is_inexact_array)

    def loss(weights: Any, points: Any) -> Any:
        u = eqx.combine(weights, rest)
        in_time = jax.vmap(jax.grad(u))(points)[:, 0]
        curved = jax.vmap(jax.hessian(u))(points)[:, 1, 1]
        return jnp.mean((in_time - 0.1 * curved) ** 2) + jnp.mean(jax.vmap(u)(points) ** 2)

    return jax.value_and_grad(loss), (weights, jnp.zeros((16, 2)))


NETWORKS = {
    "haiku": (haiku_mlp, haiku_resnet, haiku_lstm, haiku_transformer, haiku_mobilenet),
    "flax": (flax_cnn, flax_vae, flax_lstm, flax_transformer, flax_nnx),
    "equinox": (equinox_mlp, equinox_gru, equinox_transformer, equinox_cnn, equinox_pinn),
}
"""Builders by package."""
