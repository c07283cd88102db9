"""Lowering: from a nest to a `Kernel`, along its `TilePlan`."""

import math
from dataclasses import dataclass, field
from functools import cached_property

from irgym.core.target import Target
from irgym.envs.loops.codegen.kernel import Accumulator, Block, Fma, Kernel, Node, Repeat, Tile
from irgym.envs.loops.codegen.plan import TilePlan, plan
from irgym.envs.loops.contraction import Contraction
from irgym.envs.loops.nest import Nest

MAX_FMAS = 65_536
"""Greatest number of FMAs in the code of a kernel."""

Offsets = tuple[int, int, int]
Point = tuple[int, int, int, int]
"""Offsets from pointers A, B and C, and the lanes that take part."""


class CodeTooLarge(ValueError):
    """A back end cannot hold the code of a nest: a failed compile, not an error of the user."""


def lower(contraction: Contraction, nest: Nest, target: Target) -> Kernel:
    """Lower `nest` for `target`.

    Raises:
        CodeTooLarge: The code would be too long.
    """
    tiles = plan(contraction, nest, target)
    if tiles.emitted_fmas > MAX_FMAS:
        raise CodeTooLarge(
            f"the code of {nest.text()!r} would have {tiles.emitted_fmas} multiply-adds, at most {MAX_FMAS}"
            " are allowed"
        )
    return Kernel(
        body=tuple(_Lowering(contraction, tiles).nodes(0, contraction.sizes, (0, 0, 0), in_tile=False)),
        lanes=tiles.lanes,
        a_vector=tiles.a_vector,
        b_vector=tiles.b_vector,
        sum_lanes=tiles.sum_lanes,
        clear=math.prod(contraction.shapes[2]) if tiles.partial else 0,
    )


@dataclass(frozen=True)
class _Lowering:
    """The recursion over the loops of a plan, with the blocks made so far by the extents of their dims."""

    contraction: Contraction
    plan: TilePlan
    blocks: dict[tuple[int, ...], list[Fma]] = field(default_factory=dict[tuple[int, ...], list[Fma]])

    @cached_property
    def dims(self) -> tuple[list[str], list[str]]:
        """The dimensions of the block: the parallel ones, the reductions."""
        reductions = self.contraction.reductions
        dims = dict.fromkeys(loop.dim for loop in self.plan.order[self.plan.tile_start :])
        return [dim for dim in dims if dim not in reductions], [dim for dim in dims if dim in reductions]

    def nodes(self, place: int, extents: dict[str, int], offsets: Offsets, in_tile: bool) -> list[Node]:
        """Lower the loops from `place` inwards.

        Args:
            place: Place in the plan's order.
            extents: How much of each dimension is left to cover.
            offsets: From the pointers to the first element.
            in_tile: Whether the accumulators are in registers already.
        """
        tiles = self.plan
        if place == tiles.hoist and not in_tile:
            c0 = offsets[2]
            accumulators = tuple(
                Accumulator(c0 + c, 1 if tiles.sum_lanes else lanes)
                for _, _, c, lanes in self._points(self.dims[0], extents)
            )
            body = self.nodes(place, extents, offsets, in_tile=True)
            return [Tile(accumulators, tiles.partial, tuple(body))]
        if place == tiles.tile_start:
            fmas = self._block(extents)
            a0, b0, _ = offsets
            if a0 or b0:
                fmas = [Fma(index, a + a0, b + b0, lanes) for index, a, b, lanes in fmas]
            return [Block(tuple(fmas))]
        return self._loop(place, extents, offsets, in_tile)

    def _loop(self, place: int, extents: dict[str, int], offsets: Offsets, in_tile: bool) -> list[Node]:
        dim = self.plan.order[place].dim
        extent = extents[dim]
        step = min(self.plan.order[place].step, extent)
        trips, tail = divmod(extent, step)
        unroll = self.plan.unroll[place]
        sa, sb, sc = (strides[dim] for strides in self.contraction.strides)
        a, b, c = offsets
        inner = {**extents, dim: step}

        def copies(first: int, count: int) -> list[Node]:
            nodes: list[Node] = []
            for moved in range(first * step, (first + count) * step, step):
                at = (a + moved * sa, b + moved * sb, c + moved * sc)
                nodes.extend(self.nodes(place + 1, inner, at, in_tile))
            return _joined(nodes)

        if trips < 2 * unroll:
            nodes = copies(0, trips)
        else:
            times, rest = divmod(trips, unroll)
            length = step * unroll
            nodes: list[Node] = [
                Repeat(times, (sa * length, sb * length, sc * length), tuple(copies(0, unroll)))
            ]
            nodes.extend(copies(times * unroll, rest))
        if tail:
            moved = trips * step
            at = (a + moved * sa, b + moved * sb, c + moved * sc)
            nodes.extend(self.nodes(place + 1, {**extents, dim: tail}, at, in_tile))
        return _joined(nodes)

    def _block(self, extents: dict[str, int]) -> list[Fma]:
        """Return the FMAs for the extents, at offset 0."""
        key = tuple(extents.values())
        fmas = self.blocks.get(key)
        if fmas is None:
            parallel, reduced = (self._points(dims, extents) for dims in self.dims)
            fmas = _straight_line(parallel, reduced)
            self.blocks[key] = fmas
        return fmas

    def _points(self, dims: list[str], extents: dict[str, int]) -> list[Point]:
        """Return the points of the block over `dims`, in steps of a vector along the vectorised one."""
        lanes = self.plan.lanes
        points: list[Point] = [(0, 0, 0, lanes)]
        for dim in dims:
            sa, sb, sc = (strides[dim] for strides in self.contraction.strides)
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
    """Order the FMAs of a block: the input with fewer elements stays in registers, the other streams by."""
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
    """Join neighbouring blocks."""
    if len(nodes) < 2:
        return nodes
    joined: list[Node] = []
    fmas: list[Fma] = []
    for node in nodes:
        if isinstance(node, Block):
            fmas.extend(node.fmas)
            continue
        if fmas:
            joined.append(Block(tuple(fmas)))
            fmas = []
        joined.append(node)
    if fmas:
        joined.append(Block(tuple(fmas)))
    return joined
