"""Training objectives of models: the next token, or the class of each example."""

from collections.abc import Callable

import jax

from irgym.envs.hlo.programs.models.model import Model, Tree, integers
from irgym.envs.hlo.programs.models.networks.layers import cross_entropy

Logits = Callable[[Tree, jax.Array, jax.Array | None], jax.Array]
"""Maps weights, inputs and a random key (None without dropout) to scores."""

StatefulLogits = Callable[[Tree, Tree, jax.Array, bool], tuple[jax.Array, Tree]]
"""Maps weights, state, inputs and a flag for training to scores and the new state."""


def language_model(
    parameters: Tree, batch: int, sequence: int, logits: Logits, dropout: bool = False
) -> Model:
    """Return a model that predicts the next token at each place of (batch, sequence)."""

    def loss(weights: Tree, state: Tree, tokens: jax.Array, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores = logits(weights, tokens[:, :-1], key if dropout else None)
        return cross_entropy(scores, tokens[:, 1:]).mean(), state

    def forward(weights: Tree, state: Tree, tokens: jax.Array) -> jax.Array:
        return logits(weights, tokens, None)

    return Model(parameters, integers(batch, sequence + 1), loss, integers(batch, sequence), forward)


def classifier(
    parameters: Tree, inputs: Tree, logits: Logits, dropout: bool = False, name: str = "images"
) -> Model:
    """Return a model that predicts the class of each input of a batch; `name` is their key in the batch."""

    def loss(weights: Tree, state: Tree, examples: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores = logits(weights, examples[name], key if dropout else None)
        return cross_entropy(scores, examples["labels"]).mean(), state

    def forward(weights: Tree, state: Tree, inputs: jax.Array) -> jax.Array:
        return logits(weights, inputs, None)

    return Model(parameters, {name: inputs, "labels": integers(inputs.shape[0])}, loss, inputs, forward)


def stateful_classifier(parameters: Tree, state: Tree, images: Tree, logits: StatefulLogits) -> Model:
    """Return a classifier of images with a state, such as the averages of batch normalisation."""

    def loss(weights: Tree, state: Tree, examples: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        scores, state = logits(weights, state, examples["images"], True)
        return cross_entropy(scores, examples["labels"]).mean(), state

    def forward(weights: Tree, state: Tree, images: jax.Array) -> jax.Array:
        return logits(weights, state, images, False)[0]

    batch = {"images": images, "labels": integers(images.shape[0])}
    return Model(parameters, batch, loss, images, forward, state)
