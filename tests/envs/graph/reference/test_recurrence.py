import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate

# ONNX Runtime has both in float32 alone.
GATES = {"LSTM": 4, "GRU": 3}


def floats(rng, *sizes):
    return rng.uniform(-1, 1, sizes).astype(np.float32)


def operands(rng, operator, index, count=1):
    """Return operands of a layer; bias and states are there or not, as bits of the index say."""
    length, batch, inputs, hidden = (int(size) for size in rng.integers(1, 5, 4))
    rows = GATES[operator] * hidden
    x, w, r = (
        floats(rng, length, batch, inputs),
        floats(rng, count, rows, inputs),
        floats(rng, count, rows, hidden),
    )
    bias = floats(rng, count, 2 * rows) if index & 1 else None
    states = [floats(rng, count, batch, hidden) if index & bit else None for bit in (2, 4)]
    return [x, w, r, bias, None, *states[: 2 if operator == "LSTM" else 1]], {"hidden_size": hidden}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm(oracle, rng, direction):
    for index in range(24):
        given, attributes = operands(rng, "LSTM", index, 1 + (direction == "bidirectional"))
        oracle.agrees("LSTM", given, {**attributes, "direction": direction}, 3, doubles=False)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("before", [0, 1])
def test_gru(oracle, rng, direction, before):
    for index in range(24):
        given, attributes = operands(rng, "GRU", index, 1 + (direction == "bidirectional"))
        attributes |= {"direction": direction, "linear_before_reset": before}
        oracle.agrees("GRU", given, attributes, 2, doubles=False)


def test_default_attributes(oracle, rng):
    for index in range(20):
        given, attributes = operands(rng, "LSTM", index)
        oracle.agrees(
            "LSTM", given, {**attributes, "activations": ("Sigmoid", "Tanh", "Tanh")}, 3, doubles=False
        )
        given, attributes = operands(rng, "GRU", index)
        oracle.agrees("GRU", given, attributes, 2, doubles=False)


@pytest.mark.parametrize(
    ("attributes", "what"),
    [
        ({"clip": 1.0}, "clip"),
        ({"layout": 1}, "layout=1"),
        ({"input_forget": 1}, "input_forget=1"),
        ({"activations": ("Sigmoid", "Relu", "Tanh")}, "activations Sigmoid, Relu, Tanh"),
        ({"direction": "sideways"}, "direction sideways"),
    ],
)
def test_unsupported_attributes_are_refused(rng, attributes, what):
    given, own = operands(rng, "LSTM", 7)
    with pytest.raises(OperatorError, match=what):
        evaluate("LSTM", given, {**own, **attributes})


def test_lengths_and_peepholes_are_refused(rng):
    given, own = operands(rng, "LSTM", 7)
    x, hidden = given[0], own["hidden_size"]
    lengths = np.ones(x.shape[1], np.int32)
    with pytest.raises(OperatorError, match="sequence_lens"):
        evaluate("LSTM", [*given[:4], lengths], own)
    with pytest.raises(OperatorError, match="peepholes"):
        evaluate("LSTM", [*given, floats(rng, 1, 3 * hidden)], own)
