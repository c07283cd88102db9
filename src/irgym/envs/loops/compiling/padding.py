"""Padding: copies of whole inputs with zeros around them, made in each run before all loops.

All other code then works on the copy, whose accesses stay inside of it.
"""

import math
from collections.abc import Iterator

from irgym.envs.loops.compiling.kernel import Copy, Move, Node, Repeat
from irgym.envs.loops.compiling.packing import LINE
from irgym.envs.loops.programs.contraction import Contraction

UNROLLED_MOVES = 8
"""Vectors in the body of the innermost loop of the copy."""


def padded_size(contraction: Contraction, operand: int) -> int:
    """Return the elements of the workspace for the padded copy of an input; 0 if it has no padding."""
    if not contraction.padded[operand]:
        return 0
    return -(-math.prod(contraction.layouts[operand]) // LINE) * LINE


def padding_copy(contraction: Contraction, operand: int, lanes: int) -> tuple[Node, ...]:
    """Return the code that copies an input (0 for A, 1 for B) into its padded form, `lanes` at once."""
    shape, padding = contraction.shapes[operand], contraction.padding[operand]
    # Axes inside the last one with padding are contiguous with it.
    last = max(place for place, ends in enumerate(padding) if any(ends))
    return tuple(_axis(list(shape), list(padding), 0, last, operand, lanes))


def _axis(
    shape: list[int], padding: list[tuple[int, int]], place: int, last: int, operand: int, lanes: int
) -> Iterator[Node]:
    """Yield the copy of an axis and those inside of it, with zeros before and after."""
    source = math.prod(shape[place + 1 :])
    pitch = math.prod(
        extent + sum(ends) for extent, ends in zip(shape[place + 1 :], padding[place + 1 :], strict=True)
    )
    low, high = (count * pitch for count in padding[place])
    size = shape[place]
    yield from _run(low, None, 0, operand, lanes)
    if place == last:
        yield from _run(size * source, 0, low, operand, lanes)
    elif size == 1:
        yield from _moved(_axis(shape, padding, place + 1, last, operand, lanes), low)
    else:
        inside = _axis(shape, padding, place + 1, last, operand, lanes)
        yield Repeat(size, _strides(operand, source, pitch), tuple(_moved(inside, low)))
    yield from _run(high, None, low + size * pitch, operand, lanes)


def _strides(operand: int, source: int, destination: int) -> tuple[int, int, int]:
    return (source, 0, destination) if operand == 0 else (0, source, destination)


def _run(count: int, source: int | None, destination: int, operand: int, lanes: int) -> Iterator[Node]:
    """Yield the copy of `count` contiguous elements from an offset, or zeros if `source` is None."""

    def moves(first: int, length: int) -> tuple[Move, ...]:
        return tuple(
            Move(
                0 if source is None else source + at,
                destination + at,
                0 if source is None else min(lanes, first + length - at),
                min(lanes, first + length - at),
            )
            for at in range(first, first + length, lanes)
        )

    group = UNROLLED_MOVES * lanes
    repeats = count // group
    done = repeats * group if repeats > 1 else 0
    if done:
        strides = _strides(operand, 0 if source is None else group, group)
        yield Repeat(repeats, strides, (Copy(operand, moves(0, group)),))
    if count > done:
        yield Copy(operand, moves(done, count - done))


def _moved(nodes: Iterator[Node], distance: int) -> Iterator[Node]:
    """Yield nodes of a copy with all their destinations moved."""
    for node in nodes:
        if isinstance(node, Copy):
            yield Copy(
                node.operand,
                tuple(move._replace(destination=move.destination + distance) for move in node.moves),
            )
        elif isinstance(node, Repeat):
            yield Repeat(node.count, node.strides, tuple(_moved(iter(node.body), distance)))
        else:
            raise TypeError(f"{type(node).__name__} is no part of a copy")
