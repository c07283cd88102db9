"""The actions on a loop nest: move the cursor, reorder, split, merge, unroll, vectorise, pack, stop."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from irgym.core.actions import Action, ActionSpace, Mask
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


class Position(NamedTuple):
    """A loop of a nest: the one under the cursor.

    Attributes:
        contraction: The program.
        nest: Its loops.
        place: Index of the loop, 0 for the outermost.
        target: Target of the code.
    """

    contraction: Contraction
    nest: Nest
    place: int
    target: Target


@dataclass(frozen=True)
class Transformation:
    """A kind of action, whole: to add one, add it to `TRANSFORMATIONS`.

    Attributes:
        kind: Its name, and the values of its parameter if it has one.
        effect: Its effect, in words.
        condition: When it applies, in words.
        applies: Whether it applies to a loop, one answer for each value of the parameter; one answer without
            a parameter.
        step: From a loop, and the value of the parameter (0 without one), to the nest and the cursor.
    """

    kind: ActionKind
    effect: str
    condition: str
    applies: Callable[[Position], list[bool]]
    step: Callable[[Position, int], tuple[Nest, int]]


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


def _swapped(at: Position, outer: int) -> Nest:
    loops = at.nest.loops
    return Nest((*loops[:outer], loops[outer + 1], loops[outer], *loops[outer + 2 :]))


def _with(at: Position, *new: Loop) -> tuple[Nest, int]:
    """Return the nest with other loops, or none, in place of the one under the cursor, which stays."""
    loops = at.nest.loops
    return Nest((*loops[: at.place], *new, *loops[at.place + 1 :])), at.place


def _split(at: Position, factor: int) -> tuple[Nest, int]:
    loop = at.nest.loops[at.place]
    return _with(at, Loop(loop.dim, loop.step * factor, packs=loop.packs), replace(loop, packs=""))


def _marking(
    name: str, mark: Mark, effect: str, condition: str, applies: Callable[[Position], bool]
) -> Transformation:
    """Return the kind that marks a loop."""
    return Transformation(
        ActionKind(name),
        effect,
        condition,
        lambda at: [applies(at)],
        lambda at, _: _with(at, replace(at.nest.loops[at.place], mark=mark)),
    )


def _packing(operand: str) -> Transformation:
    """Return the kind that packs an input."""

    def step(at: Position, value: int) -> tuple[Nest, int]:
        loop = at.nest.loops[at.place]
        return _with(at, replace(loop, packs="".join(sorted(loop.packs + operand))))

    return Transformation(
        ActionKind(f"pack_{operand}"),
        f"copies the part of {operand.upper()} that the loop uses into a buffer, in order of use",
        "it is unpacked, and this loop or one inside indexes it",
        lambda at: [can_pack(at.contraction, at.nest, at.place, operand)],
        step,
    )


TRANSFORMATIONS = (
    Transformation(
        ActionKind("up"),
        "moves the cursor to the next loop outside",
        "there is one",
        lambda at: [at.place > 0],
        lambda at, _: (at.nest, at.place - 1),
    ),
    Transformation(
        ActionKind("down"),
        "moves it to the next loop inside",
        "there is one",
        lambda at: [at.place < len(at.nest.loops) - 1],
        lambda at, _: (at.nest, at.place + 1),
    ),
    Transformation(
        ActionKind("swap_up"),
        "exchanges the loop with the next one outside; the cursor follows",
        "they run over different dimensions",
        lambda at: [can_swap(at.nest, at.place - 1)],
        lambda at, _: (_swapped(at, at.place - 1), at.place - 1),
    ),
    Transformation(
        ActionKind("swap_down"),
        "the same with the next one inside",
        "they run over different dimensions",
        lambda at: [can_swap(at.nest, at.place)],
        lambda at, _: (_swapped(at, at.place), at.place + 1),
    ),
    Transformation(
        ActionKind("split", (FACTORS,)),
        "splits the loop; the inner part gets that many iterations",
        "the factor is below the iterations; an inner loop only by a divisor",
        lambda at: split_factors(at.contraction, at.nest, at.place),
        _split,
    ),
    Transformation(
        ActionKind("merge"),
        "joins the loop with the next one inside",
        "both run over one dimension, unmarked",
        lambda at: [can_merge(at.nest, at.place)],
        lambda at, _: _with(at),
    ),
    _marking(
        "unroll",
        Mark.UNROLL,
        "repeats the body as straight-line code",
        "it changes the code and stays within the limits",
        lambda at: can_unroll(at.contraction, at.nest, at.place, at.target),
    ),
    _marking(
        "vectorise",
        Mark.VECTORISE,
        "executes the loop as vector instructions, innermost",
        "its step is 1, it is not innermost already, no other loop is vectorised; A and B move by 0 or 1 "
        "elements, and C by 1 or the loop is a sum",
        lambda at: can_vectorise(at.contraction, at.nest, at.place),
    ),
    *map(_packing, OPERANDS),
    Transformation(
        ActionKind("stop", ends="episode"),
        "ends the schedule",
        "always, once",
        lambda at: [True],
        lambda at, _: (at.nest, at.place),
    ),
)
"""The kinds of actions. After any change, train the policies again: they refuse other actions."""

SPACE = ActionSpace(tuple(transformation.kind for transformation in TRANSFORMATIONS))

UP, DOWN, SWAP_UP, SPLIT, UNROLL, VECTORISE = (
    [kind.name for kind in SPACE.kinds].index(name)
    for name in ("up", "down", "swap_up", "split", "unroll", "vectorise")
)
PACKS = {operand: [kind.name for kind in SPACE.kinds].index(f"pack_{operand}") for operand in OPERANDS}
"""The kinds that pack, by the input."""


def mask_at(at: Position) -> Mask:
    """Return which actions apply to a loop."""
    found = [transformation.applies(at) for transformation in TRANSFORMATIONS]
    params = [
        choice for kind, chosen in zip(SPACE.kinds, found, strict=True) if kind.slots for choice in chosen
    ]
    return SPACE.mask([any(chosen) for chosen in found], params)


def apply(at: Position, action: Action) -> tuple[Nest, int]:
    """Return the nest and the cursor after a legal action."""
    transformation = TRANSFORMATIONS[action.kind]
    value = int(transformation.kind.slots[0][action.params[0]]) if action.params else 0
    return transformation.step(at, value)
