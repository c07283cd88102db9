"""Register tiling: the execution of a nest, derived from the list of loops alone (as in LoopTune's LoopNest).

From the innermost loop outwards, loops are absorbed into straight-line code while its accumulators fit into
registers. The accumulators stay in registers across the reduction loops that directly enclose the block.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from irgym.core.target import Target
from irgym.envs.loops.nest import Loop, Mark, Nest
from irgym.envs.loops.programs.contraction import Contraction

MAX_UNROLLED_FMAS = 256
"""Greatest number of FMAs of the straight-line block with a loop marked UNROLL."""

MAX_COPIED_FMAS = 1024
"""Greatest number of FMAs of a kernel in which a loop marked UNROLL is emitted as copies of its body. With
the loads, this is about the capacity of a 32 KiB instruction cache."""

MAX_REDUCTION_UNROLL = 8
"""Greatest unroll factor of the reduction loop just outside the block."""

REDUCTION_UNROLL_FMAS = 4
"""FMAs of the unrolled body of that loop, as a multiple of the registers for accumulators."""

STRIP_VECTORS = 4
"""Vectors in a strip of an innermost loop that is too long for the registers."""

STRIP_SCALARS = 8
"""Elements in a strip of such a loop that is not vectorised."""


@dataclass(frozen=True, slots=True)
class TilePlan:
    """Execution of a nest.

    Attributes:
        order: Loops in the order of execution: the vectorised one innermost, strip-mined if necessary.
        spans: Extent of its dimension that each of them covers.
        unroll: Unroll factor of each of them; 1 within the block.
        tile_start: Position in `order` of the outermost loop in the straight-line block.
        hoist: Position in `order` where tiles begin: accumulators stay in registers across the loops inside.
        lanes: Lanes of a vector; 1 for scalar code.
        vector_dim: Dimension whose unit steps are the lanes; None for scalar code.
        a_vector: Whether lanes step through A.
        b_vector: Whether lanes step through B.
        sum_lanes: Whether the lanes run over a reduction and are added up at the end.
        partial: Whether a tile computes only part of its sums, so that it is added to C.
        accumulators: Vector registers that hold accumulators in a full tile.
        fmas: FMAs of the full block, without unrolling of the reduction loop around it.
        emitted_fmas: FMAs in the code of the whole kernel, including tails and unrolled copies.
        grouped: The inputs in whose copies the unrolled iterations of the loop just outside the block are
            contiguous.
    """

    order: tuple[Loop, ...]
    spans: tuple[int, ...]
    unroll: tuple[int, ...]
    tile_start: int
    hoist: int
    lanes: int
    vector_dim: str | None
    a_vector: bool
    b_vector: bool
    sum_lanes: bool
    partial: bool
    accumulators: int
    fmas: int
    emitted_fmas: int
    grouped: str

    @property
    def block(self) -> dict[str, int]:
        """Extent of each dimension within the straight-line block."""
        extents: dict[str, int] = {}
        for loop, span in zip(self.order[self.tile_start :], self.spans[self.tile_start :], strict=True):
            extents[loop.dim] = max(extents.get(loop.dim, 1), span)
        return extents

    def trips(self, place: int) -> int:
        """Return how often the loop at a position of `order` runs, with a tail."""
        return -(-self.spans[place] // self.order[place].step)


def vectorisable(contraction: Contraction, dim: str) -> bool:
    """Say whether unit steps of `dim` can be vector lanes.

    A and B must be read with stride 0 (broadcast) or 1, and C must be written with stride 1 or the lanes be
    summed at the end.
    """
    a, b, c = contraction.strides
    if a[dim] not in (0, 1) or b[dim] not in (0, 1):
        return False
    return dim in contraction.reductions or c[dim] == 1


def plan(contraction: Contraction, nest: Nest, target: Target) -> TilePlan:
    """Return the execution of `nest` on `target`."""
    loops, vector_dim = _vector_innermost(contraction, nest.loops)
    lanes = 1 if vector_dim is None else contraction.elements.lanes(target)
    loops = _strip_mine(contraction, loops, lanes, target)
    spans = _spans(contraction, loops)
    start, accumulators, fmas = _absorb(contraction, loops, spans, lanes, target)
    reductions = contraction.reductions
    hoist = start
    while (
        hoist > 0
        and not _packs_before(loops, hoist)
        and (loops[hoist - 1].dim in reductions or spans[hoist - 1] <= loops[hoist - 1].step)
    ):
        hoist -= 1
    partial = any(
        loop.dim in reductions and span > loop.step
        for loop, span in zip(loops[:hoist], spans[:hoist], strict=True)
    )
    grouped = _grouped(contraction, loops, spans, start, vector_dim)
    unroll, emitted = _unroll(contraction, loops, spans, start, lanes, fmas, bool(grouped), target)
    a, b, _ = contraction.strides
    return TilePlan(
        order=loops,
        spans=spans,
        unroll=unroll,
        tile_start=start,
        hoist=hoist,
        lanes=lanes,
        vector_dim=vector_dim,
        a_vector=vector_dim is not None and a[vector_dim] == 1,
        b_vector=vector_dim is not None and b[vector_dim] == 1,
        sum_lanes=vector_dim in reductions,
        partial=partial,
        accumulators=accumulators,
        fmas=fmas,
        emitted_fmas=emitted,
        grouped=grouped,
    )


def can_unroll(contraction: Contraction, nest: Nest, place: int, target: Target) -> bool:
    """Say whether marking the loop at `place` UNROLL changes the code and stays within the limits."""
    loop = nest.loops[place]
    if loop.mark is not Mark.PLAIN:
        return False
    marked = (*nest.loops[:place], replace(loop, mark=Mark.UNROLL), *nest.loops[place + 1 :])
    before, after = plan(contraction, nest, target), plan(contraction, Nest(marked), target)
    return _code(contraction, before) != _code(contraction, after)


def _code(contraction: Contraction, tiles: TilePlan) -> tuple[object, ...]:
    """Return a key of the code: it ignores marks, and whether the block or copies unroll a loop."""
    full = [span // loop.step for loop, span in zip(tiles.order, tiles.spans, strict=True)]
    repeated = [trips >= 2 * count for trips, count in zip(full, tiles.unroll, strict=True)]
    start = tiles.tile_start
    while start > 0 and not repeated[start - 1] and not _packs_before(tiles.order, start):
        loop, span = tiles.order[start - 1], tiles.spans[start - 1]
        if loop.dim not in contraction.reductions and span > loop.step:
            break
        start -= 1
    unroll = [tiles.unroll[place] if repeated[place] else 0 for place in range(start)]
    order = [(loop.dim, loop.step, loop.packs) for loop in tiles.order]
    parts = any(_lies_in_parts(contraction, tiles, operand) for operand in tiles.grouped)
    return order, start, tiles.hoist, unroll, tiles.unroll[tiles.tile_start - 1] if parts else 0


def _lies_in_parts(contraction: Contraction, tiles: TilePlan, operand: str) -> bool:
    """Say whether the layout of a copy depends on the unrolling of the loop just outside the block."""
    outside = tiles.tile_start - 1
    strides = contraction.strides["ab".index(operand)]
    copied = next(place for place, loop in enumerate(tiles.order) if operand in loop.packs)
    others = (place for place in range(copied, len(tiles.order)) if place != outside)
    moves = any(
        strides[tiles.order[place].dim] and tiles.spans[place] > tiles.order[place].step for place in others
    )
    return moves and tiles.unroll[outside] < tiles.spans[outside]


def _packs_before(loops: Sequence[Loop], place: int) -> bool:
    """Say whether inputs are packed before a loop; `place` may be one past the last."""
    return place < len(loops) and bool(loops[place].packs)


def _vector_innermost(
    contraction: Contraction, loops: tuple[Loop, ...]
) -> tuple[tuple[Loop, ...], str | None]:
    """Move the loop to vectorise innermost; return the loops, and its dimension or None.

    Without a mark, this is the innermost loop of a dimension larger than 1.
    """
    chosen = next((place for place, loop in enumerate(loops) if loop.mark is Mark.VECTORISE), None)
    if chosen is None:
        chosen = len(loops) - 1
        while chosen > 0 and contraction.sizes[loops[chosen].dim] == 1:
            chosen -= 1
    loop = loops[chosen]
    if not vectorisable(contraction, loop.dim):
        return loops, None
    return (*loops[:chosen], *loops[chosen + 1 :], loop), loop.dim


def _spans(contraction: Contraction, loops: Sequence[Loop]) -> tuple[int, ...]:
    left = dict(contraction.sizes)
    spans: list[int] = []
    for loop in loops:
        span = left[loop.dim]
        spans.append(span)
        left[loop.dim] = min(span, loop.step)
    return tuple(spans)


def _strip_mine(
    contraction: Contraction, loops: tuple[Loop, ...], lanes: int, target: Target
) -> tuple[Loop, ...]:
    """Split the innermost loop if it does not fit into the block."""
    loop = loops[-1]
    span = min((other.step for other in loops[:-1] if other.dim == loop.dim), default=math.inf)
    vectors = -(-min(span, contraction.sizes[loop.dim]) // lanes)
    if loop.dim not in contraction.reductions:
        limit = target.accumulators
        strip = STRIP_VECTORS * lanes if lanes > 1 else STRIP_SCALARS
    elif lanes > 1:
        limit = _budget(loop, target)
        strip = lanes
    else:
        return loops
    if vectors <= limit:
        return loops
    mark = Mark.UNROLL if loop.mark is Mark.UNROLL else Mark.PLAIN
    return (*loops[:-1], Loop(loop.dim, strip, mark, loop.packs), replace(loop, packs=""))


def _budget(loop: Loop, target: Target) -> int:
    """Return the greatest number of FMAs of a block with `loop`."""
    return MAX_UNROLLED_FMAS if loop.mark is Mark.UNROLL else target.accumulators


def _absorb(
    contraction: Contraction, loops: tuple[Loop, ...], spans: tuple[int, ...], lanes: int, target: Target
) -> tuple[int, int, int]:
    """Return the position of the outermost absorbed loop, and the accumulators and FMAs of the block."""
    reductions = contraction.reductions
    vector_dim = loops[-1].dim
    accumulators = fmas = 1
    vectors: dict[str, int] = {}
    start = len(loops)
    while start > 0 and not _packs_before(loops, start):
        loop, span = loops[start - 1], spans[start - 1]
        if span > loop.step or loop.dim not in vectors:
            count = -(-span // lanes) if loop.dim == vector_dim else span
            before = vectors.get(loop.dim, 1)
            growth = fmas // before * count
            wider = accumulators if loop.dim in reductions else accumulators // before * count
            if wider > target.accumulators or (growth > _budget(loop, target) and count > before):
                break
            accumulators, fmas, vectors[loop.dim] = wider, growth, count
        start -= 1
    return start, accumulators, fmas


def _unroll(
    contraction: Contraction,
    loops: tuple[Loop, ...],
    spans: tuple[int, ...],
    start: int,
    lanes: int,
    fmas: int,
    grouped: bool,
    target: Target,
) -> tuple[tuple[int, ...], int]:
    """Return the unroll factor of each loop and the resulting number of FMAs of the kernel."""
    unroll = [1] * len(loops)
    if start > 0 and loops[start - 1].dim in contraction.reductions:
        trips = -(-spans[start - 1] // loops[start - 1].step)
        unroll[start - 1] = (
            min(trips, MAX_REDUCTION_UNROLL)
            if grouped
            else _reduction_unroll(trips, REDUCTION_UNROLL_FMAS * target.accumulators // fmas)
        )
    emitted = _emitted(contraction, loops, unroll, start, lanes)
    for place in reversed(range(start)):
        if loops[place].mark is Mark.UNROLL:
            before = unroll[place]
            unroll[place] = -(-spans[place] // loops[place].step)
            copied = _emitted(contraction, loops, unroll, start, lanes)
            if copied <= MAX_COPIED_FMAS:
                emitted = copied
            else:
                unroll[place] = before
    return tuple(unroll), emitted


def _grouped(
    contraction: Contraction,
    loops: Sequence[Loop],
    spans: Sequence[int],
    start: int,
    vector_dim: str | None,
) -> str:
    """Return the packed inputs that are contiguous along the loop just outside the block, but not within it.

    In their copies, the unrolled iterations of that loop are contiguous, so that whole vectors are copied.
    """
    if start == 0 or loops[start - 1].step > 1 or loops[start - 1].dim not in contraction.reductions:
        return ""
    packed = {name for loop in loops[:start] for name in loop.packs}
    block = [loop.dim for loop, span in zip(loops[start:], spans[start:], strict=True) if span > loop.step]
    return "".join(
        name
        for name, strides in zip("ab", contraction.strides, strict=False)
        if name in packed
        and strides[loops[start - 1].dim] == 1
        and not (vector_dim is not None and strides[vector_dim] == 1)
        and not any(strides[dim] == 1 for dim in block)
    )


def _reduction_unroll(trips: int, most: int) -> int:
    """Return the unroll factor: a divisor of the trip count if one is close to the greatest allowed."""
    most = max(1, min(most, MAX_REDUCTION_UNROLL, trips))
    return next((count for count in range(most, most // 2, -1) if trips % count == 0), most)


def _emitted(
    contraction: Contraction, loops: tuple[Loop, ...], unroll: Sequence[int], start: int, lanes: int
) -> int:
    """Count the FMAs of the code: a product over the dimensions, since each loop affects only one."""
    chains: dict[str, list[tuple[int, int]]] = {dim: [] for dim in contraction.sizes}
    for loop, copies in zip(loops[:start], unroll, strict=False):
        chains[loop.dim].append((loop.step, copies))
    vector_dim = loops[-1].dim
    total = 1
    for dim, size in contraction.sizes.items():
        total *= _emitted_along(chains[dim], 0, size, lanes if dim == vector_dim else 1)
    return total


def _emitted_along(chain: list[tuple[int, int]], level: int, extent: int, lanes: int) -> int:
    """Count the vectors emitted for an extent by the loops of a dimension from `level` inwards."""
    if level == len(chain):
        return -(-extent // lanes)
    step, unroll = chain[level]
    step = min(step, extent)
    full, tail = divmod(extent, step)
    copies = full if full < 2 * unroll else unroll + full % unroll
    total = copies * _emitted_along(chain, level + 1, step, lanes)
    return total + _emitted_along(chain, level + 1, tail, lanes) if tail else total
