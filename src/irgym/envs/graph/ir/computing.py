"""Construction of computed weights in a short form, which does not depend on the way there."""

from collections.abc import Sequence
from typing import cast

from irgym.envs.graph.ir.functions import FUNCTIONS
from irgym.envs.graph.ir.sizes import Undecided
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Literal, Plain, Sizes, Stored, Weight


def computed(function: str, *arguments: Weight | Plain) -> Weight:
    """Return the result of a function as a weight, with the element type of its first weight.

    Concatenations, parts, transpositions and reshapings are simplified. Otherwise rules that do and undo them
    in turn would make ever longer descriptions of the same array, and no two states would be equal.

    Raises:
        Undecided: An argument holds open sizes.
    """
    if any(isinstance(argument, Sizes) for argument in arguments):
        raise Undecided(f"{function} of open sizes")
    if function == "concat":
        axis, *parts = arguments
        joined = _joined(axis, [part for argument in parts for part in _parts(argument, axis)])
        return joined[0] if len(joined) == 1 else _made(function, (axis, *joined))
    if function == "part":
        return _cut(*cast(tuple[Weight, int, int, int], arguments))
    if function == "transpose":
        return _transposed(*cast(tuple[Weight, tuple[int, ...]], arguments))
    if function == "reshape":
        return _reshaped(*cast(tuple[Weight, tuple[int, ...]], arguments))
    return _made(function, arguments)


def _made(function: str, arguments: tuple[Weight | Plain, ...]) -> Computed:
    weights = [argument for argument in arguments if isinstance(argument, Stored | Literal | Computed)]
    given = [
        argument.type.shape if isinstance(argument, Stored | Literal | Computed) else argument
        for argument in arguments
    ]
    shape = FUNCTIONS[function].shape(*given)
    return Computed(function, arguments, TensorType(weights[0].type.dtype, shape))


def _transposed(weight: Weight, order: tuple[int, ...]) -> Weight:
    """Return a weight with its axes in another order."""
    if isinstance(weight, Computed) and weight.function == "transpose":
        inner, first = cast(tuple[Weight, tuple[int, ...]], weight.arguments)
        return _transposed(inner, tuple(first[axis] for axis in order))
    if tuple(order) == tuple(range(len(order))):
        return weight
    return _made("transpose", (weight, order))


def _reshaped(weight: Weight, shape: tuple[int, ...]) -> Weight:
    """Return a weight in another shape."""
    if isinstance(weight, Computed) and weight.function == "reshape":
        return _reshaped(cast(Weight, weight.arguments[0]), shape)
    return weight if weight.type.shape == tuple(shape) else _made("reshape", (weight, shape))


def _parts(weight: Weight | Plain, axis: Weight | Plain) -> tuple[Weight, ...]:
    """Return the parts that a weight is a concatenation of along an axis: at least the weight."""
    if isinstance(weight, Computed) and weight.function == "concat" and weight.arguments[0] == axis:
        return cast(tuple[Weight, ...], weight.arguments[1:])
    return (cast(Weight, weight),)


def _joined(axis: Weight | Plain, parts: Sequence[Weight]) -> list[Weight]:
    """Return the parts of a concatenation, with adjacent parts of the same weight merged."""
    found: list[Weight] = []
    for part in parts:
        last = _cut_from(found[-1], axis) if found else None
        this = _cut_from(part, axis)
        if last and this and last[0].digest == this[0].digest and last[2] == this[1]:
            found[-1] = _cut(last[0], cast(int, axis), last[1], this[2])
        else:
            found.append(part)
    return found


def _cut_from(weight: Weight, axis: Weight | Plain) -> tuple[Weight, int, int] | None:
    """Return the weight that `weight` is a part of along an axis, and the part's start and stop."""
    if not isinstance(weight, Computed) or weight.function != "part" or weight.arguments[1] != axis:
        return None
    return cast(tuple[Weight, int, int], (weight.arguments[0], *weight.arguments[2:]))


def _cut(whole: Weight, axis: int, start: int, stop: int) -> Weight:
    """Return the part of a weight from `start` to `stop` along an axis."""
    if (start, stop) == (0, whole.type.shape[axis]):
        return whole
    cut = _cut_from(whole, axis)
    if cut is not None:
        return _cut(cut[0], axis, cut[1] + start, cut[1] + stop)
    found: list[Weight] = []
    place = 0
    parts = _parts(whole, axis)
    for part in parts if len(parts) > 1 else ():
        size = part.type.shape[axis]
        first, last = max(start - place, 0), min(stop - place, size)
        if first < last:
            found.append(_cut(part, axis, first, last))
        place += size
    return computed("concat", axis, *found) if found else _made("part", (whole, axis, start, stop))
