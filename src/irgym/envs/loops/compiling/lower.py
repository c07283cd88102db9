"""Lowering: from a nest to a `Kernel`, along its `TilePlan`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from irgym.core.target import Target
from irgym.envs.loops.compiling.kernel import (
    Accumulator,
    Block,
    Fma,
    Kernel,
    Node,
    Pack,
    Prefetch,
    Repeat,
    Tile,
)
from irgym.envs.loops.compiling.packing import OPERANDS, Access, Copying, Packed, direct, layouts
from irgym.envs.loops.compiling.padding import padded_size, padding_copy
from irgym.envs.loops.compiling.plan import TilePlan, plan
from irgym.envs.loops.compiling.streaming import LINE_BYTES, distances, one_per_line, prefetches
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction

MAX_FMAS = 65_536
"""Greatest number of FMAs in the code of a kernel."""

MAX_WORKSPACE = 1 << 24
"""Greatest number of elements of the workspace."""

LARGE_OUTPUT = 1 << 16
"""Least number of elements of C (256 KiB of float32) for which the lines of a tile are prefetched.

The rows of a tile are too short and too far apart for hardware prefetchers. On a Zen 4, nests whose sums are
in parts gain up to 40 % where C does not fit L2, and 0 to 3 % otherwise.
"""

LONG = 32
"""Least number of terms that a tile adds up meanwhile."""

Offsets = tuple[int, int, int]
Accesses = tuple[Access, Access, Access]
"""Accesses to A, B and C."""
Point = tuple[int, int, int, int]
"""Offsets from pointers A, B and C, and the number of active lanes."""


class CodeTooLarge(ValueError):
    """The code of a nest is too long for a back end: a failed compilation, not a user error."""


def lower(
    contraction: Contraction, nest: Nest, target: Target, part: Mapping[str, int] | None = None
) -> Kernel:
    """Lower `nest` for `target`.

    Args:
        contraction: The program.
        nest: Its schedule.
        target: Target of the code.
        part: How much of dimensions to compute, from their first index: all where not named.

    Raises:
        CodeTooLarge: The code would be too long.
    """
    tiles = plan(contraction, nest, target)
    if tiles.emitted_fmas > MAX_FMAS:
        raise CodeTooLarge(
            f"the code of {nest.text()!r} would have {tiles.emitted_fmas} multiply-adds, at most {MAX_FMAS}"
            " are allowed"
        )
    packed, size = layouts(contraction, tiles)
    workspace = size + sum(padded_size(contraction, operand) for operand in range(len(OPERANDS)))
    if workspace > MAX_WORKSPACE:
        raise CodeTooLarge(
            f"the packed and padded inputs of {nest.text()!r} would have {workspace} elements, at most "
            f"{MAX_WORKSPACE} are allowed"
        )
    a, b, c = (direct(tiles, strides) for strides in contraction.strides)
    lowering = _Lowering(contraction, tiles, packed, distances(contraction, tiles, target))
    sizes, elements = {**contraction.sizes, **(part or {})}, math.prod(contraction.shapes[2])
    if (dim := rows_of(contraction)) is not None:
        elements = elements // contraction.sizes[dim] * sizes[dim]
    body = tuple(lowering.nodes(0, sizes, contraction.origins, (a, b, c), in_tile=False))
    for operand in range(len(OPERANDS)):
        if contraction.padded[operand]:
            copy = padding_copy(contraction, operand, tiles.lanes)
            body = (Pack(operand, size, copy, body, pads=True),)
            size += padded_size(contraction, operand)
    return Kernel(
        body=body,
        lanes=tiles.lanes,
        a_vector=tiles.a_vector,
        b_vector=tiles.b_vector,
        sum_lanes=tiles.sum_lanes,
        clear=elements if tiles.partial else 0,
        workspace=workspace,
        elements=contraction.elements,
        inputs=contraction.inputs,
    )


def rows_of(contraction: Contraction) -> str | None:
    """Return the dimension of the rows of C: the first of a size greater than 1, else the first, if any."""
    dims = [axis.terms[0][0] for axis in contraction.c]
    return next((dim for dim in dims if contraction.sizes[dim] > 1), next(iter(dims), None))


@dataclass(frozen=True)
class _Lowering:
    """Recursion over the loops of a plan, with a cache of blocks by extents and accesses."""

    contraction: Contraction
    plan: TilePlan
    packed: dict[tuple[int, int], Packed]
    ahead: tuple[int, int]
    blocks: dict[tuple[object, ...], list[Fma]] = field(default_factory=dict[tuple[object, ...], list[Fma]])

    @cached_property
    def dims(self) -> tuple[list[str], list[str]]:
        """Dimensions of the block: the parallel ones, and the reductions."""
        reductions = self.contraction.reductions
        dims = dict.fromkeys(loop.dim for loop in self.plan.order[self.plan.tile_start :])
        return [dim for dim in dims if dim not in reductions], [dim for dim in dims if dim in reductions]

    def nodes(
        self, place: int, extents: dict[str, int], offsets: Offsets, accesses: Accesses, in_tile: bool
    ) -> list[Node]:
        """Lower the loops from `place` inwards.

        Args:
            place: Position in the plan's order.
            extents: Extent of each dimension left to cover.
            offsets: Offsets of the first elements from the pointers.
            accesses: Accesses to the other elements.
            in_tile: Whether the loops are inside a tile.
        """
        tiles = self.plan
        if place < len(tiles.order):
            for name in tiles.order[place].packs:
                packed = self.packed[place, OPERANDS.index(name)]
                if accesses[packed.operand] is not packed:
                    return [self._pack(packed, extents, offsets, accesses)]
        if place == tiles.hoist and not in_tile:
            c0 = offsets[2]
            accumulators = tuple(
                Accumulator(c0 + c, 1 if tiles.sum_lanes else lanes)
                for _, _, c, lanes in self._points(self.dims[0], extents, accesses)
            )
            body = self.nodes(place, extents, offsets, accesses, in_tile=True)
            written = self._written(accumulators, extents)
            return [Tile(accumulators, tiles.partial, (*written, *body))]
        if place == tiles.tile_start:
            fmas = self._block(extents, accesses)
            a0, b0, _ = offsets
            if a0 or b0:
                fmas = [Fma(index, a + a0, b + b0, lanes) for index, a, b, lanes in fmas]
            line = LINE_BYTES // self.contraction.elements.bytes
            return [*prefetches(fmas, self.ahead, line), Block(tuple(fmas))]
        return self._loop(place, extents, offsets, accesses, in_tile)

    def _written(self, accumulators: Sequence[Accumulator], extents: Mapping[str, int]) -> list[Prefetch]:
        """Return a prefetch of the lines of C that a tile writes, if they are worth it."""
        terms = math.prod(extents[dim] for dim in self.contraction.reductions)
        if terms < LONG or math.prod(self.contraction.shapes[2]) < LARGE_OUTPUT:
            return []
        line = LINE_BYTES // self.contraction.elements.sum_bytes
        return [Prefetch(2, tuple(one_per_line(sorted(each.c for each in accumulators), line)))]

    def _pack(self, packed: Packed, extents: dict[str, int], offsets: Offsets, accesses: Accesses) -> Pack:
        copy = Copying(self.plan, packed).nodes(extents, offsets[packed.operand])
        moved, changed = list(offsets), list(accesses)
        moved[packed.operand], changed[packed.operand] = 0, packed
        (a, b, c), (of_a, of_b, of_c) = moved, changed
        body = self.nodes(packed.place, extents, (a, b, c), (of_a, of_b, of_c), in_tile=False)
        return Pack(packed.operand, packed.start, copy, tuple(body))

    def _loop(
        self, place: int, extents: dict[str, int], offsets: Offsets, accesses: Accesses, in_tile: bool
    ) -> list[Node]:
        dim = self.plan.order[place].dim
        extent = extents[dim]
        step = min(self.plan.order[place].step, extent)
        trips, tail = divmod(extent, step)
        unroll = self.plan.unroll[place]
        of_a, of_b, of_c = accesses
        a, b, c = offsets

        def iteration(count: int, length: int) -> list[Node]:
            at = (
                a + of_a.offset(place, count),
                b + of_b.offset(place, count),
                c + of_c.offset(place, count),
            )
            return self.nodes(place + 1, {**extents, dim: length}, at, accesses, in_tile)

        def copies(first: int, count: int) -> list[Node]:
            return _joined([node for each in range(first, first + count) for node in iteration(each, step)])

        if trips < 2 * unroll:
            nodes = copies(0, trips)
        else:
            times, rest = divmod(trips, unroll)
            strides = (of_a.offset(place, unroll), of_b.offset(place, unroll), of_c.offset(place, unroll))
            nodes: list[Node] = [Repeat(times, strides, tuple(copies(0, unroll)))]
            nodes.extend(copies(times * unroll, rest))
        if tail:
            nodes.extend(iteration(trips, tail))
        return _joined(nodes)

    def _block(self, extents: dict[str, int], accesses: Accesses) -> list[Fma]:
        """Return the FMAs for the extents, at offset 0."""
        key = (*extents.values(), *accesses)
        fmas = self.blocks.get(key)
        if fmas is None:
            parallel, reduced = (self._points(dims, extents, accesses) for dims in self.dims)
            fmas = _straight_line(parallel, reduced)
            if self._filled(accesses):
                fmas = [Fma(index, a, b, self.plan.lanes) for index, a, b, _ in fmas]
            self.blocks[key] = fmas
        return fmas

    def _filled(self, accesses: Accesses) -> bool:
        """Say whether the block may use whole vectors at the end of the vectorised dimension.

        It may if all vectors come from packed inputs, which are padded with zeros. In sums over lanes, both
        inputs must be vectors, as a broadcast infinity times zero would spoil the sum.
        """
        tiles = self.plan
        packed = [isinstance(access, Packed) for access in accesses[:2]]
        vectors = [tiles.a_vector, tiles.b_vector]
        filled = all(padded for padded, vector in zip(packed, vectors, strict=True) if vector)
        return filled and any(vectors) and (not tiles.sum_lanes or all(vectors))

    def _points(self, dims: list[str], extents: dict[str, int], accesses: Accesses) -> list[Point]:
        """Return the points of the block over `dims`, in steps of a vector along the vectorised dimension."""
        lanes = self.plan.lanes
        points: list[Point] = [(0, 0, 0, lanes)]
        for dim in dims:
            sa, sb, sc = (access.block[dim] for access in accesses)
            extent = extents[dim]
            if dim == self.plan.vector_dim:
                points = [
                    (a + at * sa, b + at * sb, c + at * sc, min(lanes, extent - at))
                    for a, b, c, _ in points
                    for at in range(0, extent, lanes)
                ]
            else:
                points = [
                    (a + at * sa, b + at * sb, c + at * sc, width)
                    for a, b, c, width in points
                    for at in range(extent)
                ]
        return points


def _straight_line(parallel: list[Point], reduced: list[Point]) -> list[Fma]:
    """Return the FMAs of a block in an order that keeps the input with fewer elements in registers."""
    group = [(index, a, b, lanes) for index, (a, b, _, lanes) in enumerate(parallel)]
    if len({a for _, a, _, _ in group}) >= len({b for _, _, b, _ in group}):
        group.sort(key=lambda fma: (fma[1], fma[2]))
    else:
        group.sort(key=lambda fma: (fma[2], fma[1]))
    return [
        Fma(index, a + a0, b + b0, lanes if lanes < width else width)
        for a0, b0, _, width in reduced
        for index, a, b, lanes in group
    ]


def _joined(nodes: list[Node]) -> list[Node]:
    """Merge adjacent blocks, also across prefetches, which then run before the merged block."""
    if len(nodes) < 2:
        return nodes
    joined: list[Node] = []
    fmas: list[Fma] = []
    for node in nodes:
        if isinstance(node, Block):
            fmas.extend(node.fmas)
            continue
        if isinstance(node, Prefetch):
            joined.append(node)
            continue
        if fmas:
            joined.append(Block(tuple(fmas)))
            fmas = []
        joined.append(node)
    if fmas:
        joined.append(Block(tuple(fmas)))
    return joined
