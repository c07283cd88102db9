"""Rules that recognise the cells of unrolled LSTMs and GRUs, and turn them into layers.

A cell, in the form of PyTorch's exporter, becomes a layer of one step; `layers` appends the following steps,
and `stacking` removes the rest of the unrolling.

In the first step the state is zero, so the exporter folds its product into a constant: only the bias remains,
repeated for each element of the batch, and the weights of the state are gone. They do not matter for a single
step; where more steps follow, theirs are used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, array, either, pick, sample

_SOURCE = "cuDNN's and others' recurrent layers; ONNX's LSTM and GRU"

_GEMM = "transA=0, transB=1, alpha=1.0, beta=1.0"
_OF_INPUT = f"Gemm(x, w, b, {_GEMM})"
_OF_STATE = f"Gemm(s, r, e, {_GEMM})"
"""Products of input and state with weights of shape (gates * hidden, inputs) and (gates * hidden, hidden)."""

# Order of gates in PyTorch: input, forget, cell, output; in ONNX: input, output, forget, cell.
_LSTM = f"""
h = Mul(Sigmoid(o), Tanh(d)); d = Add(Mul(Sigmoid(f), c), Mul(Sigmoid(i), Tanh(g)))
i, f, g, o = (p := Split(z, [n], axis=k)); z = Add({{}}, {_OF_INPUT})
"""
_LSTM_ORDER = (0, 3, 1, 2)
_LSTM_FITS = (
    "w.constant and b.constant and d.solid and x.shape[0] == d.shape[0] and front(k, z.rank) == 1"
    " and c.shape == d.shape == i.shape == f.shape == g.shape == o.shape and b.shape == (4 * d.shape[1],)"
)

# Order of gates in PyTorch: reset, update, new; in ONNX: update, reset, hidden.
_GRU = f"""
h = Add(Mul(Sub(s, n), Sigmoid(Add(sz, xz))), n); n = Tanh(Add(xn, Mul(sn, Sigmoid(Add(sr, xr)))))
sr, sz, sn = (p := Split({{}}, [l], axis=k)); xr, xz, xn = (q := Split({_OF_INPUT}, [m], axis=j))
"""
_GRU_ORDER = (1, 0, 2)
_GRU_FITS = (
    "w.constant and b.constant and h.solid and x.shape[0] == h.shape[0] and front(k, 2) == front(j, 2) == 1"
    " and h.shape == s.shape == sr.shape == sz.shape == sn.shape == xr.shape == xz.shape == xn.shape"
    " and b.shape == (3 * h.shape[1],)"
)

_STATE = " and r.constant and e.constant and s.shape == {0}.shape and e.shape == b.shape"
_ZERO = " and t.repeated and t.shape[-1] == b.shape[0]"

_WEIGHTS = """
size = {0}.shape[1]
weights = reshape(gates(w, {1}), (1, *w.shape))
biases = reshape(concat(0, gates(b, {1}), gates({2}, {1})), (1, 2 * b.shape[0]))
"""
_STATE_WEIGHTS = """
state_weights = reshape(gates(r, {0}), (1, *r.shape))
state = None if s.zero else Unsqueeze(s, whole(0))
"""
_ZERO_WEIGHTS = """
state_weights = zeros(w, (1, w.shape[0], size))
state = None
"""
_LSTM_LAYER = """
memory = None if c.zero else Unsqueeze(c, whole(0))
made = LSTM(
    Unsqueeze(x, whole(0)), weights, state_weights, biases, None, state, memory, hidden_size=size, outputs={}
)
h = Squeeze(made[0], whole(0, 1))
"""
_GRU_LAYER = """
made = GRU(
    Unsqueeze(x, whole(0)), weights, state_weights, biases, None, state,
    hidden_size=size, linear_before_reset=1,
)
h = Squeeze(made, whole(0, 1))
"""


def _cell_of(rng: Rng, gates: int, first: bool) -> tuple[dict[str, Any], str, int]:
    """Return the operands of a cell, the names of its weights, and the size of the state."""
    batch, inputs, hidden = (int(size) for size in rng.integers(1, 5, 3))
    rows = gates * hidden
    values = {"x": array(rng, batch, inputs), "w": array(rng, rows, inputs), "b": array(rng, rows)}
    if first:
        return {**values, "t": np.tile(array(rng, rows), (batch, 1))}, "w b t", hidden
    state = {"s": array(rng, batch, hidden), "r": array(rng, rows, hidden), "e": array(rng, rows)}
    return {**values, **state}, "w b r e", hidden


def _cut(rng: Rng, count: int, size: int) -> tuple[list[int] | None, dict[str, Any]]:
    """Return sizes and attributes of a Split into equal parts, which either of them defines."""
    return pick(rng, ([size] * count, {}), (None, {"num_outputs": count}))


def _lstm_cell(first: bool) -> Callable[[Rng], Sample]:
    def sampled(rng: Rng) -> Sample:
        values, weights, hidden = _cell_of(rng, 4, first)
        sizes, attributes = _cut(rng, 4, hidden)
        memory = array(rng, len(values["x"]), hidden) * pick(rng, 0, 1)
        values |= {"c": memory, "n": sizes}
        return sample(
            values,
            f"{weights} n{'' if memory.any() else ' c'}",
            attributes={"k": either(rng, 1, 2)},
            nodes={"p": attributes},
        )

    return sampled


def _gru_cell(first: bool) -> Callable[[Rng], Sample]:
    def sampled(rng: Rng) -> Sample:
        values, weights, hidden = _cell_of(rng, 3, first)
        (sizes, attributes), (others, more) = _cut(rng, 3, hidden), _cut(rng, 3, hidden)
        values |= {"l": sizes, "m": others}
        if first:
            values, weights = {**values, "s": np.zeros((len(values["x"]), hidden))}, f"{weights} s"
        axes = {"k": either(rng, 1, 2), "j": either(rng, 1, 2)}
        return sample(values, f"{weights} l m", attributes=axes, nodes={"p": attributes, "q": more})

    return sampled


def _lstm(name: str, first: bool, last: bool) -> Rule:
    """Return a rule for LSTM cells.

    Args:
        name: Name of the rule.
        first: Whether the cell is the first step.
        last: Whether no other node needs the memory of the cell.
    """
    weights = _WEIGHTS.format("d", _LSTM_ORDER, "row(t)" if first else "e")
    state = _ZERO_WEIGHTS if first else _STATE_WEIGHTS.format(_LSTM_ORDER)
    layer = _LSTM_LAYER.format(1 if last else 3)
    return Rule(
        name,
        before=_LSTM.format("t" if first else _OF_STATE),
        where=_LSTM_FITS + (_ZERO if first else _STATE.format("d")),
        after=weights + state + layer + ("" if last else "d = Squeeze(made[2], whole(0))\n"),
        sample=_lstm_cell(first),
        source=_SOURCE,
    )


def _gru(name: str, first: bool) -> Rule:
    """Return the rule for GRU cells: for the first step, or for later ones."""
    weights = _WEIGHTS.format("h", _GRU_ORDER, "row(t)" if first else "e")
    state = _ZERO_WEIGHTS if first else _STATE_WEIGHTS.format(_GRU_ORDER)
    return Rule(
        name,
        before=_GRU.format("t" if first else _OF_STATE),
        where=_GRU_FITS + (_ZERO + " and s.zero" if first else _STATE.format("h")),
        after=weights + state + _GRU_LAYER,
        sample=_gru_cell(first),
        source=_SOURCE,
    )


RULES = (
    _lstm("lstm-cell", first=False, last=False),
    _lstm("lstm-cell-last", first=False, last=True),
    _lstm("lstm-cell-first", first=True, last=False),
    _lstm("lstm-cell-alone", first=True, last=True),
    _gru("gru-cell", first=False),
    _gru("gru-cell-first", first=True),
)
"""Rules for recurrent cells."""
