"""Recurrent networks and other models of sequences: LSTM, GRU, a selective state space, WaveNet."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.networks.layers import dense, dense_shapes, layer_norm, norm_shapes
from irgym.envs.hlo.programs.models.networks.tasks import classifier, language_model

Cell = Callable[[Tree, jax.Array, Tree], Tree]
"""Maps a cell's state, its input and its weights to the next state, whose first part is the output."""


def _lstm_cell(state: Tree, x: jax.Array, weights: Tree) -> Tree:
    """One step of an LSTM (Hochreiter and Schmidhuber, 1997), its forget gate biased by one."""
    output, memory = state
    gates = dense(jnp.concatenate([x, output], axis=-1), weights["gates"])
    admit, forget, new, emit = jnp.split(gates, 4, axis=-1)
    memory = jax.nn.sigmoid(forget + 1.0) * memory + jax.nn.sigmoid(admit) * jnp.tanh(new)
    return jax.nn.sigmoid(emit) * jnp.tanh(memory), memory


def _gru_cell(state: Tree, x: jax.Array, weights: Tree) -> Tree:
    """One step of a GRU (Cho et al., arXiv 1406.1078)."""
    (output,) = state
    reset, update = jnp.split(
        jax.nn.sigmoid(dense(jnp.concatenate([x, output], axis=-1), weights["gates"])), 2, axis=-1
    )
    new = jnp.tanh(dense(jnp.concatenate([x, reset * output], axis=-1), weights["new"]))
    return ((1.0 - update) * output + update * new,)


def _run(cell: Cell, x: jax.Array, weights: Tree, width: int, parts: int, unroll: int) -> jax.Array:
    """Run a cell over (batch, sequence, features) from a state of zeros; `parts` arrays make the state."""
    start = (jnp.zeros((x.shape[0], width), x.dtype),) * parts

    def step(state: Tree, x: jax.Array) -> tuple[Tree, jax.Array]:
        state = cell(state, x, weights)
        return state, state[0]

    return jax.lax.scan(step, start, x.swapaxes(0, 1), unroll=unroll)[1].swapaxes(0, 1)


def lstm(options: Options) -> Model:
    """Language model of stacked LSTM layers (Zaremba et al., arXiv 1409.2329, without dropout)."""
    layers, width, batch, sequence = (options[n] for n in ("layers", "width", "batch", "sequence"))
    parameters = {
        "tokens": floats(options["vocabulary"], width),
        "layers": [{"gates": dense_shapes(2 * width, 4 * width)} for _ in range(layers)],
        "head": dense_shapes(width, options["vocabulary"]),
    }

    def logits(weights: Tree, tokens: jax.Array, key: jax.Array | None) -> jax.Array:
        x = weights["tokens"][tokens]
        for layer in weights["layers"]:
            x = _run(_lstm_cell, x, layer, width, 2, options["unroll"])
        return dense(x, weights["head"])

    return language_model(parameters, batch, sequence, logits)


def gru(options: Options) -> Model:
    """Classifier of sequences: stacked GRU layers, in both directions if `bidirectional`."""
    layers, width, batch, sequence = (options[n] for n in ("layers", "width", "batch", "sequence"))
    directions = 2 if options["bidirectional"] else 1
    inputs = [options["features"], *[directions * width] * (layers - 1)]
    parameters = {
        "layers": [
            [
                {"gates": dense_shapes(size + width, 2 * width), "new": dense_shapes(size + width, width)}
                for _ in range(directions)
            ]
            for size in inputs
        ],
        "head": dense_shapes(directions * width, options["classes"]),
    }

    def logits(weights: Tree, x: jax.Array, key: jax.Array | None) -> jax.Array:
        for layer in weights["layers"]:
            outputs = [_run(_gru_cell, x, layer[0], width, 1, options["unroll"])]
            if directions == 2:
                backward = _run(_gru_cell, x[:, ::-1], layer[1], width, 1, options["unroll"])
                outputs.append(backward[:, ::-1])
            x = jnp.concatenate(outputs, axis=-1)
        return dense(x.mean(1), weights["head"])

    return classifier(parameters, floats(batch, sequence, options["features"]), logits, name="inputs")


def _recur(decay: jax.Array, update: jax.Array, how: str) -> jax.Array:
    """Return all h[t] = decay[t] * h[t - 1] + update[t] along axis 1, by a tree of products or a loop."""
    if how == "tree":

        def join(left: Tree, right: Tree) -> Tree:
            return left[0] * right[0], right[0] * left[1] + right[1]

        return jax.lax.associative_scan(join, (decay, update), axis=1)[1]

    def step(h: jax.Array, pair: Tree) -> tuple[jax.Array, jax.Array]:
        h = pair[0] * h + pair[1]
        return h, h

    pairs = (decay.swapaxes(0, 1), update.swapaxes(0, 1))
    return jax.lax.scan(step, jnp.zeros_like(update[:, 0]), pairs)[1].swapaxes(0, 1)


def _selective_block(x: jax.Array, weights: Tree, states: int, how: str) -> jax.Array:
    signal, gate = jnp.split(dense(layer_norm(x, weights["norm"]), weights["input"]), 2, axis=-1)
    padded = jnp.pad(signal, ((0, 0), (3, 0), (0, 0)))
    signal = sum(padded[:, i : i + signal.shape[1]] * weights["taps"][i] for i in range(4))
    signal = jax.nn.silu(signal)
    pace = jax.nn.softplus(dense(signal, weights["pace"]))
    into, out = jnp.split(signal @ weights["select"], [states], axis=-1)
    decay = jnp.exp(-pace[..., None] * jnp.exp(weights["rates"]))
    update = (pace * signal)[..., None] * into[:, :, None, :]
    hidden = _recur(decay, update, how)
    y = (hidden * out[:, :, None, :]).sum(-1) + weights["direct"] * signal
    return x + dense(y * jax.nn.silu(gate), weights["output"])


def ssm(options: Options) -> Model:
    """Language model of selective state spaces, as in Mamba (Gu and Dao, arXiv 2312.00752)."""
    layers, width, batch, sequence = (options[n] for n in ("layers", "width", "batch", "sequence"))
    states = options["states"]
    block = {
        "norm": norm_shapes(width),
        "input": dense_shapes(width, 4 * width),
        "taps": floats(4, 2 * width),
        "pace": dense_shapes(2 * width, 2 * width),
        "select": floats(2 * width, 2 * states),
        "rates": floats(2 * width, states),
        "direct": floats(2 * width),
        "output": dense_shapes(2 * width, width),
    }
    parameters = {
        "tokens": floats(options["vocabulary"], width),
        "layers": [block] * layers,
        "norm": norm_shapes(width),
    }

    def logits(weights: Tree, tokens: jax.Array, key: jax.Array | None) -> jax.Array:
        x = weights["tokens"][tokens]
        for layer in weights["layers"]:
            x = _selective_block(x, layer, states, options["recurrence"])
        return layer_norm(x, weights["norm"]) @ weights["tokens"].T

    return language_model(parameters, batch, sequence, logits)


def wavenet(options: Options) -> Model:
    """WaveNet: gated, dilated, causal convolutions of sound samples (van den Oord, arXiv 1609.03499)."""
    layers, width, batch, sequence = (options[n] for n in ("layers", "width", "batch", "sequence"))
    levels = options["levels"]
    block = {
        "gated": floats(2, width, 2 * width),
        "bias": floats(2 * width),
        "out": dense_shapes(width, width),
    }
    parameters = {
        "samples": floats(levels, width),
        "blocks": [block | {"skip": dense_shapes(width, width)}] * layers,
        "first": dense_shapes(width, width),
        "second": dense_shapes(width, levels),
    }

    def logits(weights: Tree, samples: jax.Array, key: jax.Array | None) -> jax.Array:
        x = weights["samples"][samples]
        total = jnp.zeros_like(x)
        for index, layer in enumerate(weights["blocks"]):
            gap = 1 << index % options["cycle"]
            y = jax.lax.conv_general_dilated(
                x,
                layer["gated"],
                (1,),
                [(gap, 0)],
                rhs_dilation=(gap,),
                dimension_numbers=("NWC", "WIO", "NWC"),
            )
            value, gate = jnp.split(y + layer["bias"], 2, axis=-1)
            y = jnp.tanh(value) * jax.nn.sigmoid(gate)
            total = total + dense(y, layer["skip"])
            x = x + dense(y, layer["out"])
        return dense(jax.nn.relu(dense(jax.nn.relu(total), weights["first"])), weights["second"])

    return language_model(parameters, batch, sequence, logits)
