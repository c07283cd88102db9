"""What samples of several rules are made of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.node import Attribute

Operands = dict[str, Any]
Attributes = dict[str, Attribute]


def integers(rng: np.random.Generator, low: int, high: int, count: int) -> tuple[int, ...]:
    """Return random whole numbers, of which `high` is none."""
    return tuple(int(one) for one in rng.integers(low, high, count))


def convolution(
    rng: np.random.Generator,
    *,
    bias: bool | None = None,
    groups: tuple[int, ...] = (1, 1, 2),
    channels: tuple[int, int] = (1, 4),
    rank: int | None = None,
) -> tuple[Operands, Attributes]:
    """Return operands x, w and b of a random convolution, and its attributes.

    Args:
        rng: What to draw from.
        bias: Whether it has one, b; maybe if it is None.
        groups: Numbers of groups to draw from.
        channels: Least number of channels of a group, and one more than the greatest.
        rank: Spatial dimensions; 1 to 3, but mostly 2, if it is None.
    """
    group = int(rng.choice(groups))
    into, out = group * int(rng.integers(*channels)), group * int(rng.integers(*channels))
    dims = int(rng.choice([1, 2, 2, 2, 2, 3])) if rank is None else rank
    has_bias = bool(rng.integers(2)) if bias is None else bias
    operands: Operands = {
        "x": rng.standard_normal((int(rng.integers(1, 3)), into, *integers(rng, 5, 8, dims))),
        "w": rng.standard_normal((out, into // group, *integers(rng, 1, 4, dims))),
        "b": rng.standard_normal(out) if has_bias else None,
    }
    attributes: Attributes = {"group": group} if group > 1 or rng.integers(2) else {}
    for name, high, count in (("pads", 2, 2 * dims), ("strides", 3, dims), ("dilations", 3, dims)):
        if rng.integers(4):
            attributes[name] = integers(rng, high - 2, high, count)
    if rng.integers(2):
        attributes["kernel_shape"] = operands["w"].shape[2:]
    return operands, attributes


def shape_of(operands: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> tuple[int, ...]:
    """Return the shape of a convolution's result.

    Args:
        operands: With x and w.
        attributes: Its attributes; no auto_pad.
    """
    spatial, window = operands["x"].shape[2:], operands["w"].shape[2:]
    rank = len(spatial)
    pads = _integers(attributes, "pads", (0,) * 2 * rank)
    strides, dilations = (_integers(attributes, name, (1,) * rank) for name in ("strides", "dilations"))
    sizes = [
        (spatial[one] + pads[one] + pads[rank + one] - (window[one] - 1) * dilations[one] - 1) // strides[one]
        + 1
        for one in range(rank)
    ]
    return (operands["x"].shape[0], operands["w"].shape[0], *sizes)


def _integers(attributes: Mapping[str, Attribute], name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = attributes.get(name, default)
    return tuple(int(one) for one in value if isinstance(one, int)) if isinstance(value, tuple) else default
