"""When the actions on a loop nest apply."""

from irgym.envs.loops.compiling.packing import OPERANDS
from irgym.envs.loops.compiling.plan import vectorisable
from irgym.envs.loops.nest import Mark, Nest
from irgym.envs.loops.programs.contraction import Contraction

MAX_LOOPS = 12
"""Greatest number of loops of a nest: enough for a convolution with two levels of cache blocks around a
register tile. LoopTune has 10. A program with more dimensions keeps its loops, unsplit."""

FACTORS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
"""Factors of splits: LoopTune's powers of two and its 5, and factors between them that fill the registers:
tiles of 14 x 32 and 6 x 64 are faster than any whose sides are powers of two."""


def has_room(contraction: Contraction, nest: Nest, more: int = 0) -> bool:
    """Say whether a nest may have its loops and some more."""
    return len(nest.loops) + more <= max(MAX_LOOPS, len(contraction.dims))


def split_factors(contraction: Contraction, nest: Nest, place: int) -> list[bool]:
    """Say for each of `FACTORS` whether it can split the loop."""
    loop = nest.loops[place]
    if not has_room(contraction, nest, 1) or loop.mark is not Mark.PLAIN:
        return [False] * len(FACTORS)
    span = nest.span(contraction, place)
    whole = nest.parents[place] is None
    return [loop.step * factor < span and (whole or span % (loop.step * factor) == 0) for factor in FACTORS]


def can_swap(nest: Nest, outer: int) -> bool:
    """Say whether the loop at `outer` and the next one inside may be exchanged.

    Any two loops of a contraction may, but exchanging two over the same dimension has no effect.
    """
    return 0 <= outer < len(nest.loops) - 1 and nest.loops[outer].dim != nest.loops[outer + 1].dim


def can_merge(nest: Nest, place: int) -> bool:
    """Say whether the loop and the next one inside can be joined.

    Both must run over the same dimension and be unmarked, and nothing may be packed between them.
    """
    if place + 1 >= len(nest.loops):
        return False
    outer, inner = nest.loops[place], nest.loops[place + 1]
    return outer.dim == inner.dim and outer.mark is inner.mark is Mark.PLAIN and not inner.packs


def can_vectorise(contraction: Contraction, nest: Nest, place: int) -> bool:
    """Say whether the loop can be vectorised; the innermost loop is vectorised by default."""
    loop = nest.loops[place]
    return (
        place + 1 < len(nest.loops)
        and loop.step == 1
        and all(other.mark is not Mark.VECTORISE for other in nest.loops)
        and loop.mark is Mark.PLAIN
        and vectorisable(contraction, loop.dim)
    )


def can_pack(contraction: Contraction, nest: Nest, place: int, operand: str) -> bool:
    """Say whether `operand` is still unpacked and some loop at or below `place` indexes it."""
    strides = contraction.strides[OPERANDS.index(operand)]
    return all(operand not in loop.packs for loop in nest.loops) and any(
        strides[loop.dim] for loop in nest.loops[place:]
    )
