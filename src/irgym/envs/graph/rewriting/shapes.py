"""Functions of shapes, orders of axes and windows, for conditions and replacements of rules.

Axes may be negative, counted from the end.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.sizes import broadcast_shapes

Shape: TypeAlias = tuple[int, ...]


def front(axis: int, rank: int) -> int:
    """Return an axis, counted from the front."""
    return axis + rank if axis < 0 else axis


def inverse(order: Sequence[int]) -> Shape:
    """Return the inverse of an order of axes."""
    return tuple(int(axis) for axis in np.argsort(order))


def composed(first: Sequence[int], second: Sequence[int]) -> Shape:
    """Return the order of axes of two consecutive transpositions."""
    return tuple(first[axis] for axis in second)


def permuted(shape: Sequence[int], order: Sequence[int]) -> Shape:
    """Return a shape with its axes in another order."""
    return tuple(shape[axis] for axis in order)


def without(order: Sequence[int], axes: Sequence[int]) -> Shape:
    """Return the order of the remaining axes, when some axes are removed before the transposition."""
    left = [axis for axis in order if axis not in axes]
    return tuple(sorted(left).index(axis) for axis in left)


def swaps_last(order: Sequence[int]) -> bool:
    """Say whether a transposition exchanges exactly the last two axes."""
    rank = len(order)
    return rank >= 2 and tuple(order) == (*range(rank - 2), rank - 1, rank - 2)


def swapped(rank: int) -> Shape:
    """Return the order of axes that exchanges the last two."""
    return (*range(rank - 2), rank - 1, rank - 2)


def ones_moved(shape: Sequence[int], order: Sequence[int]) -> bool:
    """Say whether a transposition moves only axes of size 1."""
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def order_between(before: Shape, after: Shape) -> Shape:
    """Return the order of axes that turns a shape into another by moving axes of size 1.

    Empty if there is none.
    """
    if len(before) != len(after) or [n for n in before if n != 1] != [n for n in after if n != 1]:
        return ()
    ones = iter([axis for axis, size in enumerate(before) if size == 1])
    rest = iter([axis for axis, size in enumerate(before) if size != 1])
    return tuple(next(ones) if size == 1 else next(rest) for size in after)


def broadcast(*shapes: Shape) -> Shape:
    """Return the common shape of arrays that are broadcast together; the shapes must fit."""
    return broadcast_shapes(*shapes)


def aligned(shape: Shape, rank: int) -> Shape:
    """Return a shape with sizes of 1 in front, up to a rank."""
    return (*(1,) * (rank - len(shape)), *shape)


def trails(small: Shape, *larger: Shape) -> bool:
    """Say whether an array is broadcast along the same last axes of all larger arrays."""
    if all(size == 1 for size in small):
        return all(len(small) <= len(shape) for shape in larger)
    rank = len(small)
    return all(
        len(shape) >= rank and shape[len(shape) - rank :] == larger[0][len(larger[0]) - rank :]
        for shape in larger
    )


def uniform(small: Shape, axis: int, rank: int) -> bool:
    """Say whether an array, broadcast to a rank, is constant along an axis."""
    return len(small) <= rank and aligned(small, rank)[axis] == 1


def groups(before: Shape, after: Shape) -> list[tuple[Shape, Shape]]:
    """Return the smallest groups of axes that a reshape turns into each other, as pairs of groups.

    The sizes of both groups have the same product. Axes of size 1 belong to no group; no size may be 0.
    """
    lefts, rights = (iter([axis for axis, n in enumerate(shape) if n != 1]) for shape in (before, after))
    found: list[tuple[Shape, Shape]] = []
    for axis in lefts:
        left, right = [axis], [next(rights)]
        left_size, right_size = before[left[0]], after[right[0]]
        while left_size != right_size:
            if left_size < right_size:
                left.append(next(lefts))
                left_size *= before[left[-1]]
            else:
                right.append(next(rights))
                right_size *= after[right[-1]]
        found.append((tuple(left), tuple(right)))
    return found


def _followed(order: Sequence[int], runs: Sequence[Shape]) -> bool:
    """Say whether an order keeps the axes of each run together and in order."""
    places = {axis: place for place, axis in enumerate(order)}
    return all(places[b] == places[a] + 1 for run in runs for a, b in pairwise(run))


def pulled(before: Shape, after: Shape, order: Sequence[int]) -> Shape:
    """Return the transposition that, before a reshape, replaces the transposition `order` after it.

    Empty if there is none.
    """
    parts = groups(before, after)
    filled = [axis for axis in order if after[axis] != 1]
    if not _followed(filled, [right for _, right in parts]):
        return ()
    of = {right[0]: left for left, right in parts}
    moved = tuple(axis for place in filled if place in of for axis in of[place])
    return (*moved, *(axis for axis, size in enumerate(before) if size == 1))


def pushed(shape: Shape, order: Sequence[int], after: Shape) -> tuple[Shape, Shape]:
    """Return a shape and an order: a reshape and a transposition equal to the transposition and the reshape.

    Both are empty if there are none.

    Args:
        shape: Shape of the array.
        order: The first transposition.
        after: Shape after the reshape that follows it.
    """
    parts = groups(permuted(shape, order), after)
    runs = {tuple(order[axis] for axis in left): right for left, right in parts}
    filled = [axis for axis, size in enumerate(shape) if size != 1]
    if not _followed(filled, list(runs)):
        return (), ()
    moved = [axis for run in sorted(runs) for axis in runs[run]]
    moved += [axis for axis, size in enumerate(after) if size == 1]
    return permuted(after, moved), inverse(moved)


def starts(sizes: Sequence[int]) -> list[int]:
    """Return the start of each of some consecutive parts, and the end of the last."""
    return [0, *accumulate(sizes)]


def cuts(first: Sequence[int], second: Sequence[int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the smallest runs of parts with equal total size, as ranges of indices into both lists."""
    left, right = starts(first), starts(second)
    common = [(left.index(place), right.index(place)) for place in left if place in right]
    return [((a, c), (b, d)) for (a, b), (c, d) in pairwise(common)] if all((*first, *second)) else []


Window: TypeAlias = dict[int, tuple[int, int, int]]


def window(shape: Shape, given: Sequence[Any]) -> Window | None:
    """Return start, end and step of a Slice by axis; None if unknown, empty, or with a negative step.

    Args:
        shape: Shape of the sliced array.
        given: Operands of the Slice after the first.
    """
    if any(operand is not None and not operand.elements for operand in given):
        return None
    lists = [None if operand is None else operand.elements for operand in given]
    lists += [None] * (4 - len(lists))
    first, last, axes, steps = lists
    axes = axes if axes is not None else tuple(range(len(first or ())))
    steps = steps if steps is not None else (1,) * len(axes)
    found: Window = {}
    for start, end, axis, step in zip(first or (), last or (), axes, steps, strict=True):
        if step < 1:
            return None
        place = front(axis, len(shape))
        size = shape[place]
        low, high = (min(max(edge + size if edge < 0 else edge, 0), size) for edge in (start, end))
        if low >= high:
            return None
        found[place] = (low, high, step)
    return found


def windows_merged(first: Window, second: Window) -> Window:
    """Return the window equal to a second window inside a first one."""
    merged = dict(first)
    for axis, (low, high, step) in second.items():
        start, _, stride = first.get(axis, (0, 0, 1))
        merged[axis] = (start + low * stride, start + (high - 1) * stride + 1, step * stride)
    return merged


def inside(cut: Window | None, axis: int, start: int, size: int) -> bool:
    """Say whether a window along an axis lies within the part that begins at `start`."""
    return cut is not None and axis in cut and start <= cut[axis][0] and cut[axis][1] <= start + size


def shifted(cut: Window, axis: int, by: int) -> Window:
    """Return a window shifted along an axis."""
    return {
        at: (low + by, high + by, step) if at == axis else (low, high, step)
        for at, (low, high, step) in cut.items()
    }


def columns(cut: Window) -> tuple[Shape, Shape, Shape, Shape]:
    """Return the starts, ends, axes and steps of a window."""
    axes = tuple(sorted(cut))
    lows, highs, steps = (tuple(cut[axis][place] for axis in axes) for place in range(3))
    return lows, highs, axes, steps


def shaped(numbers: Sequence[int], shape: Shape) -> NDArray[Any]:
    """Return an array of objects filled with numbers row by row."""
    return np.reshape(np.asarray(numbers, object), shape)


def stacked(shape: Shape, axis: int, after: Shape, place: int) -> Shape:
    """Return the order of axes that turns a tensor into the stack of its slices; empty if there is none.

    Slices have size 1. They may gain or lose other axes of size 1, which a reshape does afterwards.

    Args:
        shape: Shape of the tensor.
        axis: The axis along which it is cut.
        after: Shape of the stack.
        place: The axis along which the slices are stacked.
    """
    rest = [other for other in range(len(shape)) if other != axis]
    filled = [other for other in rest if shape[other] != 1]
    before = [size for size in after[:place] if size != 1]
    sizes = [*before, *(size for size in after[place + 1 :] if size != 1)]
    if shape[axis] != after[place] or [shape[other] for other in filled] != sizes:
        return ()
    found = rest.index(filled[len(before)]) if len(before) < len(filled) else len(rest)
    return (*rest[:found], axis, *rest[found:])


def stepping(cuts: Sequence[Window | None]) -> tuple[int, int, int] | None:
    """Return axis, start and end of consecutive windows of size 1; None if they are not consecutive.

    Args:
        cuts: The windows, in order, each along one axis.
    """
    found = [next(iter(cut.items())) for cut in cuts if cut is not None and len(cut) == 1]
    axis, (start, _, _) = found[0] if found else (0, (0, 0, 0))
    expected = [(axis, (start + place, start + place + 1)) for place in range(len(cuts))]
    return (
        (axis, start, start + len(cuts)) if [(along, cut[:2]) for along, cut in found] == expected else None
    )


MAP_COST = 3
"""Time of a product in Winograd's maps, data movement included, relative to one in a convolution."""

READ_COST = 4
"""Time to read a weight, in products."""


def winograd_share(results: int, weights: Shape, made: Shape) -> float:
    """Estimate the time of Winograd's convolution, relative to the plain convolution.

    Args:
        results: Results of a tile in one dimension.
        weights: Shape of the weights, (filters, channels, window, window).
        made: Shape of the result, (images, filters, height, width); no strides.
    """
    filters, channels, window, _ = weights
    images, _, height, width = made
    size = (results + window - 1) ** 2
    tiles = images * -(-height // results) * -(-width // results)
    both = filters * channels
    maps = MAP_COST * (size * channels + results**2 * filters)
    return size * (tiles * (both + maps) + READ_COST * both) / (window**2 * both * images * height * width)


SHAPES: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        aligned,
        broadcast,
        columns,
        composed,
        cuts,
        front,
        inside,
        inverse,
        ones_moved,
        order_between,
        permuted,
        pulled,
        pushed,
        shaped,
        shifted,
        stacked,
        starts,
        stepping,
        swapped,
        swaps_last,
        trails,
        uniform,
        window,
        windows_merged,
        winograd_share,
        without,
    )
}
"""Functions that rules may call, by name."""
