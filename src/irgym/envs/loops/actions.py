"""The actions on a loop nest: arrange it by the model, move the cursor, reorder, split, mark, pack, stop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.kinds import ActionKind
from irgym.core.target import Target
from irgym.envs.loops.blocked import WIDTHS
from irgym.envs.loops.compiling.packing import OPERANDS
from irgym.envs.loops.compiling.plan import can_unroll
from irgym.envs.loops.legality import FACTORS, can_merge, can_pack, can_swap, can_vectorise, split_factors
from irgym.envs.loops.modelling.analytical import PACKINGS, chosen, widths
from irgym.envs.loops.nest import Loop, Mark, Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction

FREE, UNPACKED = 0, "none"
"""Values of parameters of `analytical`: the choice is the model's, and no input is packed."""


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
        kind: Its name, and the values of its parameters.
        effect: Its effect, in words.
        condition: When it applies, in words.
        applies: Whether it applies to a loop, one answer for each value of each parameter; one answer without
            parameters.
        step: From a loop, and the values of the parameters, to the nest and the cursor.
    """

    kind: ActionKind
    effect: str
    condition: str
    applies: Callable[[Position], list[bool]]
    step: Callable[[Position, Sequence[int | str]], tuple[Nest, int]]


def _swapped(at: Position, outer: int) -> Nest:
    loops = at.nest.loops
    return Nest((*loops[:outer], loops[outer + 1], loops[outer], *loops[outer + 2 :]))


def _with(at: Position, *new: Loop) -> tuple[Nest, int]:
    """Return the nest with other loops, or none, in place of the one under the cursor, which stays."""
    loops = at.nest.loops
    return Nest((*loops[: at.place], *new, *loops[at.place + 1 :])), at.place


def _split(at: Position, values: Sequence[int | str]) -> tuple[Nest, int]:
    loop, factor = at.nest.loops[at.place], int(values[0])
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

    def step(at: Position, _: Sequence[int | str]) -> tuple[Nest, int]:
        loop = at.nest.loops[at.place]
        return _with(at, replace(loop, packs="".join(sorted(loop.packs + operand))))

    return Transformation(
        ActionKind(f"pack_{operand}"),
        f"copies the part of {operand.upper()} that the loop uses into a buffer, in order of use",
        "it is unpacked, and this loop or one inside indexes it",
        lambda at: [can_pack(at.contraction, at.nest, at.place, operand)],
        step,
    )


def arrangements(at: Position) -> list[bool]:
    """Say for each value of the parameters of `analytical` whether it can be chosen."""
    if at.nest != initial_nest(at.contraction):
        return [False] * (len(WIDTHS) + len(PACKINGS) + 2)
    fitting = {width for width, _ in widths(at.contraction, at.target)}
    packs = [
        all(can_pack(at.contraction, at.nest, 0, operand) for operand in packing) for packing in PACKINGS
    ]
    return [True, *(width in fitting for width in WIDTHS), True, *packs]


def _arranged(at: Position, values: Sequence[int | str]) -> tuple[Nest, int]:
    width, packs = values
    wanted = None if packs == FREE else str(packs).replace(UNPACKED, "")
    return chosen(at.contraction, at.target, int(width) or None, wanted), 0


TRANSFORMATIONS = (
    Transformation(
        ActionKind("analytical", ((FREE, *WIDTHS), (FREE, *(packs or UNPACKED for packs in PACKINGS))), FREE),
        "arranges the loops as an analytical model would, with a register tile of so many vectors and these "
        "inputs packed; 0 leaves the choice to the model",
        "on the unscheduled nest; tiles no wider than the program",
        arrangements,
        _arranged,
    ),
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

ANALYTICAL, UP, DOWN, SWAP_UP, SPLIT, UNROLL, VECTORISE = (
    [kind.name for kind in SPACE.kinds].index(name)
    for name in ("analytical", "up", "down", "swap_up", "split", "unroll", "vectorise")
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
    slots = transformation.kind.slots
    values = [choices[index] for choices, index in zip(slots, action.params, strict=True)]
    return transformation.step(at, values)
