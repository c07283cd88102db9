"""Random convolutions, for samples of rules."""

from collections.abc import Mapping
from typing import Any

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.samples.operands import Rng

Operands = dict[str, Any]
Attributes = dict[str, Attribute]


def integers(rng: Rng, low: int, high: int, count: int) -> tuple[int, ...]:
    """Return random integers from `low` to below `high`."""
    return tuple(int(number) for number in rng.integers(low, high, count))


def convolution(
    rng: Rng,
    *,
    bias: bool | None = None,
    groups: tuple[int, ...] = (1, 1, 2),
    channels: tuple[int, int] = (1, 4),
    rank: int | None = None,
) -> tuple[Operands, Attributes]:
    """Return the operands x, w and b of a random convolution, and its attributes.

    Args:
        rng: Random numbers.
        bias: Whether there is a bias b; random if None.
        groups: Numbers of groups to draw from.
        channels: Range of the channels of a group, the end excluded.
        rank: Number of spatial dimensions; if None, 1 to 3 and mostly 2.
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


def result_shape(operands: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> tuple[int, ...]:
    """Return the shape of the result of a convolution.

    Args:
        operands: Operands, with x and w.
        attributes: Attributes, without auto_pad.
    """
    spatial, window = operands["x"].shape[2:], operands["w"].shape[2:]
    rank = len(spatial)
    pads = _integers(attributes, "pads", (0,) * 2 * rank)
    strides, dilations = (_integers(attributes, name, (1,) * rank) for name in ("strides", "dilations"))
    sizes = [
        (spatial[axis] + pads[axis] + pads[rank + axis] - (window[axis] - 1) * dilations[axis] - 1)
        // strides[axis]
        + 1
        for axis in range(rank)
    ]
    return (operands["x"].shape[0], operands["w"].shape[0], *sizes)


def _integers(attributes: Mapping[str, Attribute], name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = attributes.get(name, default)
    return (
        tuple(int(number) for number in value if isinstance(number, int))
        if isinstance(value, tuple)
        else default
    )
