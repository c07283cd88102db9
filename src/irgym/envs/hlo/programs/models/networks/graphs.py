"""Networks on graphs."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.networks.layers import (
    cross_entropy,
    dense,
    dense_shapes,
    layer_norm,
    norm_shapes,
)
from irgym.envs.hlo.programs.models.networks.perceptrons import perceptron, perceptron_shapes


def _gather(messages: jax.Array, targets: jax.Array, nodes: int, how: str, weights: Tree) -> jax.Array:
    """Join the messages (edges, width) that reach each node: their sum, mean, maximum or attention."""
    if how == "max":
        most = jax.ops.segment_max(messages, targets, nodes)
        return jnp.where(jnp.isfinite(most), most, 0.0)
    if how == "attention":
        # Softmax over the edges of each node (Velickovic et al., arXiv 1710.10903).
        scores = jax.nn.leaky_relu(dense(messages, weights["score"])[:, 0], 0.2)
        greatest = jax.ops.segment_max(scores, targets, nodes)
        shares = jnp.exp(scores - greatest[targets])
        shares = shares / (jax.ops.segment_sum(shares, targets, nodes)[targets] + 1e-9)
        return jax.ops.segment_sum(messages * shares[:, None], targets, nodes)
    total = jax.ops.segment_sum(messages, targets, nodes)
    if how == "sum":
        return total
    degrees = jax.ops.segment_sum(jnp.ones_like(messages[:, 0]), targets, nodes)
    return total / jnp.maximum(degrees, 1.0)[:, None]


def gnn(options: Options) -> Model:
    """Message passing between the nodes of a graph (Gilmer et al., arXiv 1704.01212)."""
    layers, width, features = options["layers"], options["width"], options["features"]
    nodes, edges, how = options["nodes"], options["edges"], options["aggregate"]
    block = {
        "message": perceptron_shapes([2 * width, width, width]),
        "update": perceptron_shapes([2 * width, width, width]),
        "norm": norm_shapes(width),
    } | ({"score": dense_shapes(width, 1)} if how == "attention" else {})
    parameters = {
        "stem": dense_shapes(features, width),
        "layers": [block] * layers,
        "head": dense_shapes(width, options["classes"]),
    }

    def logits(weights: Tree, graph: Tree) -> jax.Array:
        sources, targets = graph["sources"], graph["targets"]
        x = dense(graph["nodes"], weights["stem"])
        for layer in weights["layers"]:
            pairs = jnp.concatenate([x[sources], x[targets]], axis=-1)
            messages = perceptron(pairs, layer["message"])
            joined = _gather(messages, targets, nodes, how, layer)
            update = perceptron(jnp.concatenate([x, joined], axis=-1), layer["update"])
            x = layer_norm(x + update, layer["norm"])
        return dense(x, weights["head"])

    def loss(weights: Tree, state: Tree, graph: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        errors = cross_entropy(logits(weights, graph), graph["labels"])
        return (errors * graph["known"]).sum() / jnp.maximum(graph["known"].sum(), 1.0), state

    def forward(weights: Tree, state: Tree, graph: Tree) -> jax.Array:
        return logits(weights, graph)

    graph = {"nodes": floats(nodes, features), "sources": integers(edges), "targets": integers(edges)}
    targets = {"labels": integers(nodes), "known": floats(nodes)}
    return Model(parameters, graph | targets, loss, graph, forward)
