"""Packing: layouts of copies of inputs for the inner loops, and the code that makes them.

A copy is in the order of use, as in GotoBLAS (Goto and van de Geijn, ACM TOMS 34(3), 2008): the elements read
by one run of the straight-line block are contiguous, followed by those of the next run. Vectors are padded
with zeros, so that the block needs no masks for the input.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from irgym.envs.loops.compiling.kernel import Copy, Move, Node, Prefetch, Repeat
from irgym.envs.loops.compiling.plan import TilePlan
from irgym.envs.loops.programs.contraction import Contraction

OPERANDS = "ab"
"""The inputs that can be packed, in the order of the kernel's pointers."""

UNROLLED_MOVES = 8
"""Approximate number of moves in the body of the innermost loop of a copy."""

LINE = 16
"""float32 elements of a cache line; copies are aligned to as many elements in the workspace."""

PREFETCHED = 1 << 18
"""Least number of elements of an input (1 MiB) for which the next part to be copied is prefetched.

The rows of a part are pages apart, beyond the reach of hardware prefetchers. On a Zen 4, prefetching gains 2
to 8 % on most schedules of 64 x 1024 x 1024, and nothing on average for inputs that fit L2.
"""


class Access(Protocol):
    """Map from loops to offsets into a tensor."""

    @property
    def block(self) -> Mapping[str, int]:
        """Stride in elements of each dimension, within the block."""
        ...

    def offset(self, place: int, iteration: int) -> int:
        """Return the offset of an iteration of a loop from the first one, in elements."""
        ...


@dataclass(frozen=True, eq=False)
class Direct:
    """Access to an unpacked tensor.

    Attributes:
        block: Stride in elements of each dimension.
        steps: Stride in elements of each loop of the plan.
    """

    block: Mapping[str, int]
    steps: tuple[int, ...]

    def offset(self, place: int, iteration: int) -> int:
        """Return the offset of an iteration of a loop from the first one, in elements."""
        return self.steps[place] * iteration


def direct(tiles: TilePlan, strides: Mapping[str, int]) -> Direct:
    """Return the access to a tensor with the given strides."""
    return Direct(strides, tuple(strides[loop.dim] * loop.step for loop in tiles.order))


@dataclass(frozen=True, eq=False)
class Packed:
    """Access to the copy of an input.

    Attributes:
        operand: The input: 0 for A, 1 for B.
        source: Access to the input itself.
        place: Position in the plan of the loop before which it is copied.
        start: Offset of the copy in the workspace.
        size: Elements of the copy.
        dims: Dimensions of the input.
        block: Stride in elements of each dimension, within the block.
        steps: Stride in elements of each loop; of a group of iterations for the loop at `grouped`.
        row: Dimension along which both the input and the copy are contiguous; empty if there is none.
        width: Elements of a row of the copy.
        fill: Whether rows are padded to whole vectors.
        grouped: Position of the loop of which `width` iterations are contiguous; None if `row` is in the
            block.
        following: Offset of the data of the next copy in the input; 0 for no prefetching.
    """

    operand: int
    source: Direct
    place: int
    start: int
    size: int
    dims: frozenset[str]
    block: Mapping[str, int]
    steps: tuple[int, ...]
    row: str
    width: int
    fill: bool
    grouped: int | None
    following: int

    def offset(self, place: int, iteration: int) -> int:
        """Return the offset of an iteration of a loop from the first one, in elements."""
        if place == self.grouped:
            group, rest = divmod(iteration, self.width)
            return self.steps[place] * group + rest
        return self.steps[place] * iteration


def layouts(contraction: Contraction, tiles: TilePlan) -> tuple[dict[tuple[int, int], Packed], int]:
    """Return the copies by loop and input, and the number of elements of the workspace."""
    found: dict[tuple[int, int], Packed] = {}
    start = 0
    for place, loop in enumerate(tiles.order):
        for name in loop.packs:
            operand = OPERANDS.index(name)
            packed = _layout(contraction, tiles, place, operand, start)
            found[place, operand] = packed
            start += -(-packed.size // LINE) * LINE
    return found, start


def _layout(contraction: Contraction, tiles: TilePlan, place: int, operand: int, start: int) -> Packed:
    strides = contraction.strides[operand]
    dims = frozenset(dim for dim, stride in strides.items() if stride)
    block = {dim: extent for dim, extent in tiles.block.items() if dim in dims}
    fill = (tiles.a_vector, tiles.b_vector)[operand]
    row, width, grouped = "", 1, None
    if fill and tiles.vector_dim is not None:
        row = tiles.vector_dim
        width = -(-block[row] // tiles.lanes) * tiles.lanes
    elif contiguous := [dim for dim, extent in block.items() if strides[dim] == 1 and extent > 1]:
        row, width = contiguous[0], block[contiguous[0]]
    elif OPERANDS[operand] in tiles.grouped:
        grouped = tiles.tile_start - 1
        row, width = tiles.order[grouped].dim, tiles.unroll[grouped]
    size = width
    inside = dict.fromkeys(contraction.sizes, 0)
    if row in block:
        inside[row] = 1
    for dim in reversed(block):
        if dim != row:
            inside[dim] = size
            size *= block[dim]
    steps = [0] * len(tiles.order)
    for at in reversed(range(place, tiles.tile_start)):
        loop = tiles.order[at]
        if loop.dim in dims:
            steps[at] = size
            trips = tiles.trips(at)
            size *= -(-trips // width) if at == grouped else trips
    source = direct(tiles, strides)
    large = math.prod(contraction.layouts[operand]) >= PREFETCHED
    return Packed(
        operand=operand,
        source=source,
        place=place,
        start=start,
        size=size,
        dims=dims,
        block=inside,
        steps=tuple(steps),
        row=row,
        width=width,
        fill=fill,
        grouped=grouped,
        following=source.steps[place - 1] if large and place else 0,
    )


@dataclass(frozen=True)
class Copying:
    """Recursion over the loops of a copy."""

    tiles: TilePlan
    packed: Packed

    def nodes(self, extents: Mapping[str, int], offset: int) -> tuple[Node, ...]:
        """Return the code that copies the part of the input used by the loops from `packed.place` inwards.

        Args:
            extents: Extent of each dimension left to cover.
            offset: Offset of the first element from the pointer of the input.
        """
        return self._gathered(self._parts(self.packed.place, extents, offset, 0))

    def _parts(
        self, place: int, extents: Mapping[str, int], source: int, destination: int
    ) -> list[Node | Move]:
        tiles, packed = self.tiles, self.packed
        while place < tiles.tile_start and tiles.order[place].dim not in packed.dims:
            place += 1
        if place == tiles.tile_start:
            return list(self._rows(extents, source, destination))
        loop = tiles.order[place]
        extent = extents[loop.dim]
        step = min(packed.width if place == packed.grouped else loop.step, extent)
        times, tail = divmod(extent, step)
        # Iterations of the loop for each iteration of the copying loop.
        each = step if place == packed.grouped else 1

        def copied(iteration: int, length: int) -> list[Node | Move]:
            at = (packed.source.offset(place, iteration), packed.offset(place, iteration))
            return self._parts(place + 1, {**extents, loop.dim: length}, source + at[0], destination + at[1])

        first = copied(0, step)

        def copies(begin: int, end: int) -> list[Node | Move]:
            later = [part for turn in range(max(begin, 1), end) for part in copied(turn * each, step)]
            return later if begin else first + later

        parts: list[Node | Move] = []
        # The innermost loop is unrolled to about `UNROLLED_MOVES` moves.
        unroll = max(1, UNROLLED_MOVES // len(first)) if all(isinstance(part, Move) for part in first) else 1
        repeats = times // unroll
        if repeats < 2:
            parts += copies(0, times)
        else:
            moved = [0, 0, packed.offset(place, unroll * each)]
            moved[packed.operand] = packed.source.offset(place, unroll * each)
            parts.append(Repeat(repeats, (moved[0], moved[1], moved[2]), self._gathered(copies(0, unroll))))
            parts += copies(repeats * unroll, times)
        if tail:
            parts += copied(times * each, tail)
        return parts

    def _rows(self, extents: Mapping[str, int], source: int, destination: int) -> Sequence[Move]:
        """Return the moves of a block."""
        packed, lanes = self.packed, self.tiles.lanes
        points = [(source, destination)]
        for dim, stride in packed.block.items():
            if stride and dim != packed.row:
                step = packed.source.block[dim]
                points = [(s + at * step, d + at * stride) for s, d in points for at in range(extents[dim])]
        length = extents[packed.row] if packed.row else 1
        room = -(-length // lanes) * lanes if packed.fill else packed.width
        return [
            Move(s + at, d + at, min(lanes, length - at), min(lanes, room - at))
            for s, d in points
            for at in range(0, length, lanes)
        ]

    def _prefetched(self, moves: Sequence[Move]) -> Iterator[int]:
        """Yield the offsets of the rows of the next copy, once for each cache line."""
        last = -LINE
        for source, _, lanes, _ in moves if self.packed.following else ():
            if 2 * lanes >= LINE and not 0 <= source - last < LINE:
                last = source
                yield source + self.packed.following

    def _gathered(self, parts: Sequence[Node | Move]) -> tuple[Node, ...]:
        """Gather adjacent moves into `Copy` nodes."""
        nodes: list[Node] = []
        for moving, group in groupby(parts, lambda part: isinstance(part, Move)):
            if moving:
                moves = tuple(part for part in group if isinstance(part, Move))
                if ahead := tuple(self._prefetched(moves)):
                    nodes.append(Prefetch(self.packed.operand, ahead))
                nodes.append(Copy(self.packed.operand, moves))
            else:
                nodes.extend(part for part in group if not isinstance(part, Move))
        return tuple(nodes)
