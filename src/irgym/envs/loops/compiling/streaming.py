"""Prefetching of inputs that a nest streams through: each element is read once, from memory.

Hardware prefetchers stop at the end of a page, and find a row's next page only when it is read. Where rows
are read side by side, as in the product of a vector and a matrix, that happens often. On a Zen 4, prefetching
makes 1 x 4096 x 4096 1.1 times as fast. Where the input is in L2 or L3, or where the lanes of a vector are
added up (4096 x 1 x 4096), it makes nests slower by 1.1 to 1.3 times, so nothing is prefetched there.
"""

import math
from collections.abc import Sequence

from irgym.core.target import Target
from irgym.envs.loops.compiling.kernel import Fma, Prefetch
from irgym.envs.loops.compiling.packing import OPERANDS, direct
from irgym.envs.loops.compiling.plan import TilePlan
from irgym.envs.loops.programs.contraction import Contraction

SHARE = 0.5
"""Share of the last cache that an input must exceed to be read from memory."""

USES = 2
"""Greatest number of multiply-adds for each element of a block: more of them hide the latency of memory."""

NEAR_BYTES = 1 << 14
"""Bytes of the input that are read, at the least, between the prefetch of a line and its use."""

LINE_BYTES = 64
"""Bytes of a cache line."""


def distances(contraction: Contraction, tiles: TilePlan, target: Target) -> tuple[int, int]:
    """Return how many elements ahead each input is prefetched; 0 for one that is not.

    Args:
        contraction: The program.
        tiles: Execution of its nest.
        target: Target of the code.
    """
    a, b = (_ahead(contraction, tiles, target, operand) for operand in range(len(OPERANDS)))
    return a, b


def _ahead(contraction: Contraction, tiles: TilePlan, target: Target, operand: int) -> int:
    strides = contraction.strides[operand]
    copied = contraction.padded[operand] or any(OPERANDS[operand] in loop.packs for loop in tiles.order)
    if copied or tiles.sum_lanes or not (tiles.a_vector, tiles.b_vector)[operand]:
        return 0
    element, cached = contraction.elements.bytes, SHARE * target.cache(3)
    held = math.prod(contraction.layouts[operand])
    overlap = math.prod(size for dim, size in contraction.sizes.items() if strides[dim]) > held
    if overlap or element * held <= cached:
        return 0
    block = tiles.block
    if math.prod(extent for dim, extent in block.items() if not strides[dim]) > USES:
        return 0
    size = element * math.prod(extent for dim, extent in block.items() if strides[dim])
    steps, ahead = direct(tiles, strides).steps, 0
    # By iterations of the outermost loop that leaves room in L2; each reads `size` bytes of the input.
    for at in reversed(range(tiles.tile_start)):
        trips = tiles.trips(at)
        if steps[at]:
            iterations = max(1, math.ceil(NEAR_BYTES / size))
            if size <= target.cache(2) // 4 and iterations < trips:
                ahead = steps[at] * iterations
            size *= trips
        elif trips > USES and size <= cached:
            return 0  # a cache holds it when it is read again
    return ahead


def prefetches(fmas: Sequence[Fma], ahead: tuple[int, int], line: int) -> list[Prefetch]:
    """Return the prefetches of what a block reads later.

    Args:
        fmas: The block.
        ahead: As `distances` returns it.
        line: Elements of a cache line.
    """
    found: list[Prefetch] = []
    for operand, distance in enumerate(ahead):
        if distance:
            offsets = sorted({fma.b if operand else fma.a for fma in fmas})
            found.append(Prefetch(operand, tuple([at + distance for at in one_per_line(offsets, line)])))
    return found


def one_per_line(offsets: Sequence[int], line: int) -> list[int]:
    """Return an offset for each cache line, of offsets in order; `line` is its number of elements."""
    found: list[int] = []
    for offset in offsets:
        if not found or offset >= found[-1] + line:
            found.append(offset)
    return found
