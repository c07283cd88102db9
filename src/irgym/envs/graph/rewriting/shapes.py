"""Functions of shapes and orders of axes, for rules. An axis may count from the end."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Shape: TypeAlias = tuple[int, ...]


def front(axis: int, rank: int) -> int:
    """Return an axis, counted from the front."""
    return axis + rank if axis < 0 else axis


def inverse(order: Sequence[int]) -> Shape:
    """Return the order of axes that undoes another."""
    return tuple(int(axis) for axis in np.argsort(order))


def composed(first: Sequence[int], second: Sequence[int]) -> Shape:
    """Return the order of axes of two transpositions, one after the other."""
    return tuple(first[axis] for axis in second)


def permuted(shape: Sequence[int], order: Sequence[int]) -> Shape:
    """Return a shape whose axes are put in another order."""
    return tuple(shape[axis] for axis in order)


def without(order: Sequence[int], axes: Sequence[int]) -> Shape:
    """Return the order of the axes that are left when some are removed before the transposition."""
    left = [axis for axis in order if axis not in axes]
    return tuple(sorted(left).index(axis) for axis in left)


def swaps_last(order: Sequence[int]) -> bool:
    """Say whether a transposition exchanges the last two axes, and does nothing else."""
    rank = len(order)
    return rank >= 2 and tuple(order) == (*range(rank - 2), rank - 1, rank - 2)


def swapped(rank: int) -> Shape:
    """Return the order of axes that exchanges the last two."""
    return (*range(rank - 2), rank - 1, rank - 2)


def ones_moved(shape: Sequence[int], order: Sequence[int]) -> bool:
    """Say whether a transposition moves no axis past another but those of size 1."""
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def order_between(before: Shape, after: Shape) -> Shape:
    """Return the order of axes that makes one shape another by moving axes of size 1; empty: none."""
    if len(before) != len(after) or [n for n in before if n != 1] != [n for n in after if n != 1]:
        return ()
    ones = iter([axis for axis, size in enumerate(before) if size == 1])
    rest = iter([axis for axis, size in enumerate(before) if size != 1])
    return tuple(next(ones) if size == 1 else next(rest) for size in after)


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape of arrays of some shapes, broadcast together; they must fit."""
    return np.broadcast_shapes(*shapes)


def aligned(shape: Shape, rank: int) -> Shape:
    """Return a shape with sizes of 1 in front, so that it has some rank."""
    return (*(1,) * (rank - len(shape)), *shape)


def trails(small: Shape, *larger: Shape) -> bool:
    """Say whether an array is broadcast along the same last axes of all of some others."""
    if all(size == 1 for size in small):
        return all(len(small) <= len(shape) for shape in larger)
    rank = len(small)
    return all(
        len(shape) >= rank and shape[len(shape) - rank :] == larger[0][len(larger[0]) - rank :]
        for shape in larger
    )


def uniform(small: Shape, axis: int, rank: int) -> bool:
    """Say whether an array, broadcast to a rank, is the same all along an axis."""
    return len(small) <= rank and aligned(small, rank)[axis] == 1


def groups(before: Shape, after: Shape) -> list[tuple[Shape, Shape]]:
    """Return the smallest runs of axes that a reshape makes of each other, as pairs of axes before and after.

    Runs are those whose sizes have the same product. Axes of size 1 belong to none; no size may be 0.
    """
    lefts, rights = (iter([axis for axis, n in enumerate(shape) if n != 1]) for shape in (before, after))
    found: list[tuple[Shape, Shape]] = []
    for axis in lefts:
        left, right = [axis], [next(rights)]
        one, other = before[left[0]], after[right[0]]
        while one != other:
            if one < other:
                left.append(next(lefts))
                one *= before[left[-1]]
            else:
                right.append(next(rights))
                other *= after[right[-1]]
        found.append((tuple(left), tuple(right)))
    return found


def _followed(order: Sequence[int], runs: Sequence[Shape]) -> bool:
    """Say whether each run stands in an order as it is, with nothing between."""
    places = {axis: place for place, axis in enumerate(order)}
    return all(places[b] == places[a] + 1 for run in runs for a, b in pairwise(run))


def pulled(before: Shape, after: Shape, order: Sequence[int]) -> Shape:
    """Return the transposition before a reshape that replaces `order` after it; empty: none does."""
    parts = groups(before, after)
    filled = [axis for axis in order if after[axis] != 1]
    if not _followed(filled, [right for _, right in parts]):
        return ()
    of = {right[0]: left for left, right in parts}
    moved = tuple(axis for place in filled if place in of for axis in of[place])
    return (*moved, *(axis for axis, size in enumerate(before) if size == 1))


def pushed(shape: Shape, order: Sequence[int], after: Shape) -> tuple[Shape, Shape]:
    """Return a reshape and a transposition that replace a transposition and a reshape to `after`.

    Both are empty where there are none.
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
    """Return where parts of some sizes begin, and where the last ends."""
    return [0, *accumulate(sizes)]


def cuts(one: Sequence[int], other: Sequence[int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the smallest runs of parts of equal total size, as ranges of places in two lists of sizes."""
    left, right = starts(one), starts(other)
    common = [(left.index(place), right.index(place)) for place in left if place in right]
    return [((a, c), (b, d)) for (a, b), (c, d) in pairwise(common)] if all((*one, *other)) else []


Window: TypeAlias = dict[int, tuple[int, int, int]]


def window(shape: Shape, given: Sequence[Any]) -> Window | None:
    """Return start, end and step by axis that a Slice takes; None: not known, or a step goes back.

    Args:
        shape: Shape of what is cut.
        given: Slice's operands but the first.
    """
    if any(one is not None and not one.elements for one in given):
        return None
    lists = [None if one is None else one.elements for one in given]
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
        low, high = (min(max(one + size if one < 0 else one, 0), size) for one in (start, end))
        if low >= high:
            return None
        found[place] = (low, high, step)
    return found


def windows_merged(first: Window, second: Window) -> Window:
    """Return the window of one window in another."""
    merged = dict(first)
    for axis, (low, high, step) in second.items():
        start, _, stride = first.get(axis, (0, 0, 1))
        merged[axis] = (start + low * stride, start + (high - 1) * stride + 1, step * stride)
    return merged


def inside(cut: Window | None, axis: int, start: int, size: int) -> bool:
    """Say whether a window takes, along an axis, only elements of a part that begins at `start`."""
    return cut is not None and axis in cut and start <= cut[axis][0] and cut[axis][1] <= start + size


def shifted(cut: Window, axis: int, by: int) -> Window:
    """Return a window that begins and ends elsewhere along an axis."""
    return {own: (a + by, b + by, step) if own == axis else (a, b, step) for own, (a, b, step) in cut.items()}


def columns(cut: Window) -> tuple[Shape, Shape, Shape, Shape]:
    """Return starts, ends, axes and steps of a window."""
    axes = tuple(sorted(cut))
    lows, highs, steps = (tuple(cut[axis][place] for axis in axes) for place in range(3))
    return lows, highs, axes, steps


def shaped(numbers: Sequence[int], shape: Shape) -> NDArray[np.int64]:
    """Return an array of numbers, row by row."""
    return np.reshape(np.asarray(numbers, np.int64), shape)


def stacked(shape: Shape, axis: int, after: Shape, place: int) -> Shape:
    """Return the order of axes that makes a tensor the stack of its own parts; empty: none does.

    The parts are of size 1. They may have got and lost other axes of size 1: a reshape does that afterwards.

    Args:
        shape: Shape of the tensor.
        axis: The axis along which it is cut into parts.
        after: Shape of the stack.
        place: The axis along which the parts are stacked.
    """
    rest = [one for one in range(len(shape)) if one != axis]
    filled = [one for one in rest if shape[one] != 1]
    before = [size for size in after[:place] if size != 1]
    sizes = [*before, *(size for size in after[place + 1 :] if size != 1)]
    if shape[axis] != after[place] or [shape[one] for one in filled] != sizes:
        return ()
    found = rest.index(filled[len(before)]) if len(before) < len(filled) else len(rest)
    return (*rest[:found], axis, *rest[found:])


def stepping(cuts: Sequence[Window | None]) -> tuple[int, int, int] | None:
    """Return the axis along which windows of size 1 follow each other, their first place, and the one after.

    Args:
        cuts: The windows, in order.

    Returns:
        None: they do not, or cut along other axes too.
    """
    found = [next(iter(cut.items())) for cut in cuts if cut is not None and len(cut) == 1]
    axis, (start, _, _) = found[0] if found else (0, (0, 0, 0))
    wanted = [(axis, (start + place, start + place + 1)) for place in range(len(cuts))]
    return (axis, start, start + len(cuts)) if [(one, cut[:2]) for one, cut in found] == wanted else None


MOVED = 3
"""How many times as long as a convolution's products those of Winograd's maps take, moving included."""

READ = 4
"""Products that take as long as reading a weight."""


def winograd_share(results: int, weights: Shape, made: Shape) -> float:
    """Return a rough estimate of how long Winograd's convolution takes, as a share of the plain one's time.

    Args:
        results: Results of a tile in one dimension.
        weights: Shape of the weights, (filters, channels, window, window).
        made: Shape of what the convolution makes, (images, filters, height, width); no strides.
    """
    filters, channels, window, _ = weights
    images, _, height, width = made
    size = (results + window - 1) ** 2
    tiles = images * -(-height // results) * -(-width // results)
    both = filters * channels
    maps = MOVED * (size * channels + results**2 * filters)
    return size * (tiles * (both + maps) + READ * both) / (window**2 * both * images * height * width)


SHAPES: Mapping[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
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
"""By the names that rules call them by."""
