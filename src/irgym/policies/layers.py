"""Layers of networks in numpy, those of N networks side by side along the first axis.

An ensemble's networks are small, and computed one after the other most of the time would not be spent on
numbers. One network alone is N = 1.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps rows of shape [R, inputs], or [N, R, inputs], to [N, R, outputs]."""

Weights: TypeAlias = Mapping[str, NDArray[Any]]
"""Those of one network, by torch's names."""

LIMIT = 10.0
"""Normalised inputs are clipped to this absolute value."""

ACTIVATIONS: Mapping[str, Rows] = {"tanh": np.tanh, "relu": lambda rows: np.maximum(rows, np.float32(0.0))}


class Linear:
    """A linear layer of each network.

    Args:
        networks: Their weights.
        name: Of the layer.
    """

    def __init__(self, networks: Sequence[Weights], name: str) -> None:
        weights = [network[f"{name}.weight"].T for network in networks]
        self._weights = np.ascontiguousarray(np.stack(weights))
        self._biases = np.stack([network[f"{name}.bias"][None] for network in networks])

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return its outputs, shape [N, R, outputs]."""
        return rows @ self._weights + self._biases


def hidden_layers(networks: Sequence[Weights], name: str, activation: str) -> Rows:
    """Return fully connected layers of a name, each with an activation behind; there may be none."""
    start = f"{name}."
    numbers = {int(key.removeprefix(start).partition(".")[0]) for key in networks[0] if key.startswith(start)}
    layers = [Linear(networks, f"{start}{number}") for number in sorted(numbers)]
    active = ACTIVATIONS[activation]
    if not layers:
        return lambda rows: np.broadcast_to(rows, (len(networks), *rows.shape[-2:]))
    return lambda rows: reduce(lambda found, layer: active(layer(found)), layers, rows)


def normalisation(networks: Sequence[Weights], name: str) -> Rows:
    """Return what brings inputs to mean 0 and deviation 1; where there are no statistics, as they are."""
    if f"{name}.centre" not in networks[0]:
        return lambda rows: np.broadcast_to(rows, (len(networks), *rows.shape))
    centres, scales = (
        np.stack([network[f"{name}.{what}"][None] for network in networks]) for what in ("centre", "scale")
    )
    limit = np.float32(LIMIT)
    return lambda rows: np.clip((rows - centres) * scales, -limit, limit)


def summaries(rows: FloatArray, counts: IntArray) -> FloatArray:
    """Return the mean and the greatest of each state's rows, 0 where it has none, shape [N, B, 2 H].

    Args:
        rows: Shape [N, M, H], those of the first state first.
        counts: Shape [B]; the number of rows of each state. They add up to M.
    """
    found = np.zeros((len(rows), len(counts), 2 * rows.shape[-1]), dtype=np.float32)
    some = counts > 0
    if some.any():
        begins = (counts.cumsum() - counts)[some]
        mean = np.add.reduceat(rows, begins, axis=1) / counts[some, None].astype(np.float32)
        found[:, some] = np.concatenate([mean, np.maximum.reduceat(rows, begins, axis=1)], axis=-1)
    return found


def side_by_side(parts: Sequence[FloatArray]) -> FloatArray:
    """Return features one behind the other; those that all networks share have the shape [1, R, features]."""
    count = max(map(len, parts))
    return np.concatenate([np.broadcast_to(part, (count, *part.shape[1:])) for part in parts], axis=-1)
