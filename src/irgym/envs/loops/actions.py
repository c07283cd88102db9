"""The actions on a loop nest: move the cursor, reorder, split, merge, unroll, vectorise, pack, stop."""

from dataclasses import replace

from irgym.base.errors import ScheduleError
from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.core.target import Target
from irgym.envs.loops.compiling.packing import OPERANDS
from irgym.envs.loops.compiling.plan import can_unroll, vectorisable
from irgym.envs.loops.nest import Loop, Mark, Nest
from irgym.envs.loops.programs.contraction import Contraction

MAX_LOOPS = 12
"""Greatest number of loops of a nest: enough for a convolution with two levels of cache blocks around a
register tile. LoopTune has 10. A program with more dimensions keeps its loops, unsplit."""

FACTORS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
"""Factors of splits: LoopTune's powers of two and its 5, and factors between them that fill the registers:
tiles of 14 x 32 and 6 x 64 are faster than any whose sides are powers of two."""

UP, DOWN, SWAP_UP, SWAP_DOWN, SPLIT, MERGE, UNROLL, VECTORISE, PACK_A, PACK_B, STOP = range(11)

SPACE = ActionSpace(
    (
        ActionKind("up"),
        ActionKind("down"),
        ActionKind("swap_up"),
        ActionKind("swap_down"),
        ActionKind("split", (FACTORS,)),
        ActionKind("merge"),
        ActionKind("unroll"),
        ActionKind("vectorise"),
        ActionKind("pack_a"),
        ActionKind("pack_b"),
        ActionKind("stop", ends="episode"),
    )
)


def split_factors(contraction: Contraction, nest: Nest, place: int) -> list[bool]:
    """Say for each of `FACTORS` whether it can split the loop."""
    loop = nest.loops[place]
    if len(nest.loops) >= max(MAX_LOOPS, len(contraction.dims)) or loop.mark is not Mark.PLAIN:
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


def legal_kinds(
    contraction: Contraction, nest: Nest, cursor: int, target: Target
) -> tuple[list[bool], list[bool]]:
    """Return which kinds and which split factors apply to the loop under the cursor."""
    factors = split_factors(contraction, nest, cursor)
    kinds = [
        cursor > 0,
        cursor < len(nest.loops) - 1,
        can_swap(nest, cursor - 1),
        can_swap(nest, cursor),
        any(factors),
        can_merge(nest, cursor),
        can_unroll(contraction, nest, cursor, target),
        can_vectorise(contraction, nest, cursor),
        *(can_pack(contraction, nest, cursor, operand) for operand in OPERANDS),
        True,
    ]
    return kinds, factors


def apply(nest: Nest, cursor: int, kind: int, factor: int) -> tuple[Nest, int]:
    """Return the nest and cursor after a legal action; only splits use `factor`.

    Raises:
        ScheduleError: The kind does not change the nest, as `stop`.
    """
    if kind == UP:
        return nest, cursor - 1
    if kind == DOWN:
        return nest, cursor + 1
    loops = nest.loops
    if kind == SWAP_UP:
        return _swapped(loops, cursor - 1), cursor - 1
    if kind == SWAP_DOWN:
        return _swapped(loops, cursor), cursor + 1
    loop = loops[cursor]
    if kind == SPLIT:
        parts = (Loop(loop.dim, loop.step * factor, packs=loop.packs), replace(loop, packs=""))
        return Nest(loops[:cursor] + parts + loops[cursor + 1 :]), cursor
    if kind == MERGE:
        return Nest(loops[:cursor] + loops[cursor + 1 :]), cursor
    if kind in (UNROLL, VECTORISE):
        marked = replace(loop, mark=Mark.UNROLL if kind == UNROLL else Mark.VECTORISE)
        return Nest((*loops[:cursor], marked, *loops[cursor + 1 :])), cursor
    if kind in (PACK_A, PACK_B):
        packs = "".join(sorted(loop.packs + OPERANDS[kind - PACK_A]))
        return Nest((*loops[:cursor], replace(loop, packs=packs), *loops[cursor + 1 :])), cursor
    raise ScheduleError(f"{SPACE.kinds[kind].name} does not change the nest")


def _swapped(loops: tuple[Loop, ...], outer: int) -> Nest:
    return Nest((*loops[:outer], loops[outer + 1], loops[outer], *loops[outer + 2 :]))
