"""Recurrent layers: LSTM and GRU, with ONNX's default activations."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator

Step: TypeAlias = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]
"""A function from the inputs of a step, shape (batch, inputs), and the states before it to those after it."""

DIRECTIONS: Mapping[str, tuple[bool, ...]] = {
    "forward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}
"""Whether each direction of a layer begins with the last step, by value of the attribute."""

_LSTM = ("Sigmoid", "Tanh", "Tanh")
_GRU = ("Sigmoid", "Tanh")


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _directions(call: Call) -> tuple[bool, ...]:
    direction = call.text("direction", "forward")
    if direction not in DIRECTIONS:
        raise call.refusal(f"direction {direction}")
    return DIRECTIONS[direction]


def _refuse(call: Call, activations: tuple[str, ...], lengths: object, peepholes: object = None) -> None:
    """Check that a call has only supported attributes and inputs.

    Raises:
        OperatorError: An attribute or an input is not supported.
    """
    expected = activations * len(_directions(call))
    given = tuple(str(name) for name in call.attributes.get("activations", expected))
    if given != expected:
        raise call.refusal(f"activations {', '.join(given)}")
    for name in ("activation_alpha", "activation_beta", "clip"):
        if name in call.attributes:
            raise call.refusal(name)
    for name in ("layout", "input_forget"):
        if call.integer(name, 0):
            raise call.refusal(f"{name}={call.integer(name)}")
    for given_input, name in ((lengths, "sequence_lens"), (peepholes, "peepholes")):
        if given_input is not None:
            raise call.refusal(name)


def _run(step: Step, x: Array, states: tuple[Array, ...], backwards: bool) -> tuple[Array, tuple[Array, ...]]:
    """Return the first state after each step, shape (steps, batch, hidden), and all states after the last."""
    outputs: list[Array] = []
    for inputs in x[::-1] if backwards else x:
        states = step(inputs, states)
        outputs.append(states[0])
    return np.stack(outputs[::-1] if backwards else outputs), states


def _layer(
    call: Call,
    x: Array,
    steps: list[Step],
    starts: tuple[Array | None, ...],
    hidden: int,
) -> list[Array]:
    """Return the states after each step, and those after the last.

    Args:
        call: With `direction`.
        x: Shape (steps, batch, inputs).
        steps: Step function of each direction.
        starts: Initial states, each of shape (directions, batch, hidden); None for zeros.
        hidden: Size of the states.

    Returns:
        Shape (steps, directions, batch, hidden); then (directions, batch, hidden) for each state.
    """
    zeros = np.zeros((len(steps), x.shape[1], hidden), x.dtype)
    given = [zeros if start is None else start for start in starts]
    runs = [
        _run(step, x, tuple(start[place] for start in given), backwards)
        for place, (step, backwards) in enumerate(zip(steps, _directions(call), strict=True))
    ]
    last = [np.stack([states[place] for _, states in runs]) for place in range(len(starts))]
    return [np.stack([outputs for outputs, _ in runs], 1), *last]


def _lstm_step(w: Array, r: Array, b: Array | None) -> Step:
    """Return a step of LSTM; gates in order: input, output, forget, cell."""

    def step(x: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        state, memory = states
        total = x @ w.T + state @ r.T
        if b is not None:
            total = total + sum(np.split(b, 2))
        enter, leave, keep, new = np.split(total, 4, -1)
        memory = _sigmoid(keep) * memory + _sigmoid(enter) * np.tanh(new)
        return _sigmoid(leave) * np.tanh(memory), memory

    return step


def _lstm(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    state: Array | None = None,
    memory: Array | None = None,
    peepholes: Array | None = None,
) -> list[Array]:
    _refuse(call, _LSTM, lengths, peepholes)
    steps = [_lstm_step(w[place], r[place], None if b is None else b[place]) for place in range(len(w))]
    return _layer(call, x, steps, (state, memory), r.shape[-1])


def _gru_step(w: Array, r: Array, b: Array | None, before: bool) -> Step:
    """Return a step of GRU; gates in order: update, reset, hidden.

    Args:
        w: Weights of inputs, shape (3 hidden, inputs).
        r: Weights of the state, shape (3 hidden, hidden).
        b: Biases of both, shape (6 hidden,).
        before: Whether the state is multiplied by its weights before the reset gate applies.
    """
    hidden = r.shape[-1]
    of_input, of_state = (np.zeros(3 * hidden, w.dtype),) * 2 if b is None else np.split(b, 2)

    def step(x: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        (state,) = states
        update, reset, new = np.split(x @ w.T + of_input, 3, -1)
        by_state, last = r[: 2 * hidden], r[2 * hidden :]
        of_update, of_reset = np.split(state @ by_state.T + of_state[: 2 * hidden], 2, -1)
        update, reset = _sigmoid(update + of_update), _sigmoid(reset + of_reset)
        bias = of_state[2 * hidden :]
        inner = reset * (state @ last.T + bias) if before else (reset * state) @ last.T + bias
        return ((1 - update) * np.tanh(new + inner) + update * state,)

    return step


def _gru(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    state: Array | None = None,
) -> list[Array]:
    _refuse(call, _GRU, lengths)
    before = bool(call.integer("linear_before_reset", 0))
    steps = [
        _gru_step(w[place], r[place], None if b is None else b[place], before) for place in range(len(w))
    ]
    return _layer(call, x, steps, (state,), r.shape[-1])


def _types(states: int, activations: tuple[str, ...]) -> Callable[..., list[TensorType]]:
    """Return the type rule of a layer with a number of states."""

    def rule(
        call: Call,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType | None = None,
        lengths: TensorType | None = None,
        *others: TensorType | None,
    ) -> list[TensorType]:
        _refuse(call, activations, lengths, *others[states:])
        length, batch, _ = x.shape
        shape = (len(_directions(call)), batch, r.shape[-1])
        return [TensorType(x.dtype, (length, *shape)), *[TensorType(x.dtype, shape)] * states]

    return rule


OPERATORS: Mapping[str, Operator] = {
    "GRU": Operator(_gru, _types(1, _GRU)),
    "LSTM": Operator(_lstm, _types(2, _LSTM)),
}
