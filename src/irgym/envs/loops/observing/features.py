"""Feature vector of irgym's policies: the facts that an expert would consider before the next action."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from irgym.core.target import NUMBERS, Target
from irgym.envs.loops import actions
from irgym.envs.loops.compiling.plan import TilePlan, plan
from irgym.envs.loops.legality import FACTORS, MAX_LOOPS
from irgym.envs.loops.nest import Mark, Nest
from irgym.envs.loops.programs.contraction import Contraction

LOOP_FEATURES = 28
"""Number of features of each loop."""

GLOBAL_FEATURES = 12 + NUMBERS + len(FACTORS) + len(actions.SPACE.kinds)
"""Number of features of the nest, the target, the splits of the loop under the cursor, the last action."""

FEATURES = MAX_LOOPS * LOOP_FEATURES + GLOBAL_FEATURES
"""Length of the feature vector."""

PAGES = 64
"""Approximate number of pages in a first-level translation look-aside buffer."""

_LOG2 = [0.0, *(math.log2(number) / 8 for number in range(1, 4097))]


def _log(number: int) -> float:
    """Return the logarithm of a positive size, scaled to the order of 1."""
    return _LOG2[number] if number <= 4096 else math.log2(number) / 8


def _block_extents(contraction: Contraction, tiles: TilePlan) -> dict[str, int]:
    """Return the extent of the straight-line block along each dimension."""
    extents = dict.fromkeys(contraction.sizes, 1)
    for loop, span in zip(tiles.order[tiles.tile_start :], tiles.spans[tiles.tile_start :], strict=True):
        extents[loop.dim] = max(extents[loop.dim], span)
    return extents


def footprints(contraction: Contraction, tiles: TilePlan, target: Target) -> list[tuple[float, ...]]:
    """Return the memory touched by a run of each loop of a plan, relative to the target, shape [loops, 5].

    Columns: bytes of A, B and C relative to L1; bytes of all three relative to L2; rows of A and B (runs of
    contiguous elements) relative to `PAGES`. All are logarithms, near 0 at the capacity.
    """
    inside = dict.fromkeys(contraction.sizes, 1)
    rows: list[tuple[float, ...]] = []
    for loop, span in zip(reversed(tiles.order), reversed(tiles.spans), strict=True):
        inside[loop.dim] = max(inside[loop.dim], span)
        bytes_of, apart = list(contraction.elements.sizes), 1
        for operand, strides in enumerate(contraction.strides):
            reached = 1
            for dim, extent in inside.items():
                if strides[dim]:
                    bytes_of[operand] *= extent
                    if abs(strides[dim]) > 1:
                        reached *= extent
            apart += reached if operand < 2 else 0
        first = [math.log2(size / target.cache(1)) / 8 for size in bytes_of]
        rows.append((*first, math.log2(sum(bytes_of) / target.cache(2)) / 8, math.log2(apart / PAGES) / 8))
    return rows[::-1]


def _loop_rows(
    contraction: Contraction, nest: Nest, cursor: int, tiles: TilePlan, target: Target
) -> list[float]:
    a, b, c = contraction.strides
    extents = _block_extents(contraction, tiles)
    # Strip-mining splits the innermost loop, and inputs packed before it move to the outer part.
    places = {(loop.dim, loop.step): place for place, loop in enumerate(tiles.order)}
    sizes = footprints(contraction, tiles, target)
    packed = ""
    here = nest.loops[cursor].dim
    rows: list[float] = []
    for place, loop in enumerate(nest.loops[:MAX_LOOPS]):
        span = nest.span(contraction, place)
        step = min(loop.step, span)
        order = places[loop.dim, loop.step]
        dim = loop.dim
        packed += loop.packs
        rows += (
            1.0,
            float(place == cursor),
            float(dim == here),
            float(dim in contraction.reductions),
            float(loop.mark is Mark.UNROLL),
            float(loop.mark is Mark.VECTORISE),
            float(dim == tiles.vector_dim),
            _log(contraction.sizes[dim]),
            _log(span),
            _log(-(-span // step)),
            _log(step),
            span % step / step,
            _log(extents[dim]),
            float(order >= tiles.tile_start),
            float(order >= tiles.hoist),
            _log(1 + abs(a[dim]) * step),
            _log(1 + abs(b[dim]) * step),
            _log(1 + c[dim] * step),
            float(a[dim] == 1 or b[dim] == 1 or c[dim] == 1),
            float("a" in loop.packs),
            float("b" in loop.packs),
            float("a" in packed),
            float("b" in packed),
            *sizes[order],
        )
    rows += [0.0] * (LOOP_FEATURES * MAX_LOOPS - len(rows))
    return rows


def _loads_per_fma(contraction: Contraction, tiles: TilePlan) -> float:
    """Return the loads of elements or vectors of A and B in the block for each FMA."""
    extents = _block_extents(contraction, tiles)
    loads = 0
    for strides in contraction.strides[:2]:
        count = 1
        for dim, extent in extents.items():
            if strides[dim]:
                count *= -(-extent // tiles.lanes) if dim == tiles.vector_dim else extent
        loads += count
    return loads / tiles.fmas


def _wasted_lanes(contraction: Contraction, tiles: TilePlan) -> float:
    """Return the share of idle lanes, over the whole vectorised dimension."""
    if tiles.vector_dim is None:
        return 1.0
    size = contraction.sizes[tiles.vector_dim]
    extent = min(_block_extents(contraction, tiles)[tiles.vector_dim], size)
    full, tail = divmod(size, extent)
    vectors = full * -(-extent // tiles.lanes) + -(-tail // tiles.lanes)
    return 1.0 - size / (vectors * tiles.lanes)


def _factor_tails(contraction: Contraction, nest: Nest, cursor: int) -> list[float]:
    """Return, for each factor, the length of the last block relative to the others after a split by it."""
    span, step = nest.span(contraction, cursor), nest.loops[cursor].step
    return [span % (step * factor) / (step * factor) for factor in FACTORS]


def features(
    contraction: Contraction, nest: Nest, cursor: int, previous: tuple[int, ...], target: Target
) -> NDArray[np.float32]:
    """Return the feature vector, shape [FEATURES]; all numbers are of the order of 1.

    Args:
        contraction: The program.
        nest: Its loops.
        cursor: Position of the loop to which actions apply.
        previous: Indices of the last actions in the flat action space, the latest last.
        target: Target of the code.
    """
    tiles = plan(contraction, nest, target)
    values = _loop_rows(contraction, nest, cursor, tiles, target)
    lanes = contraction.elements.lanes(target)
    values += (target if lanes == target.lanes else replace(target, vector_bits=32 * lanes)).numbers
    values += (
        cursor / MAX_LOOPS,
        len(nest.loops) / MAX_LOOPS,
        float(tiles.lanes > 1),
        float(tiles.sum_lanes),
        float(tiles.partial),
        tiles.accumulators / target.accumulators,
        tiles.fmas / target.accumulators,
        _loads_per_fma(contraction, tiles),
        _wasted_lanes(contraction, tiles),
        (tiles.tile_start - tiles.hoist) / 4,
        math.log2(tiles.emitted_fmas) / 8,
        math.log2(contraction.flops) / 32,
    )
    values += _factor_tails(contraction, nest, cursor)
    last = [0.0] * len(actions.SPACE.kinds)
    if previous:
        last[actions.SPACE.flat[previous[-1]].kind] = 1.0
    return np.array(values + last, dtype=np.float32)
