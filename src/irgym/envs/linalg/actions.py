"""The actions: transformations of the current operation, and `next`, which moves on to the one before it.

Operations are visited from the last consumer back to the first producer, as in MLIR RL (arXiv 2409.11068).
Interchanges have the encodings of that paper: level pointers, enumerated candidates, and scores of loops.
A tiling chooses the sizes of all loops at once, or, where all actions are to be listed, of one loop.
"""

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Protocol

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind

LOOPS = 12
"""Greatest number of loops of an operation that can be scheduled."""

SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 24, 28, 32, 48, 56, 64, 96, 128, 256)
"""Tile sizes, of which 0 leaves a loop untiled: those of MLIR RL, and small divisors of image sizes."""

LANES = (0, 1)
"""Dimensions that vector lanes of a product run along: 0 the result's last dimension, 1 the one before it."""

SWAPPED = tuple((outer, inner) for outer in range(LOOPS) for inner in range(outer + 1, min(outer + 4, LOOPS)))
"""Pairs of loops at a distance of at most 3: 3 N - 6 pairs for N loops, N at least 3."""

TILED = tuple((loop, size) for loop in range(LOOPS) for size in SIZES if size)
"""Pairs of a loop and the size of its tiles."""

INPUTS = (0, 1)
"""The inputs of a product that can be packed."""

NEXT, TILE, TILE_PARALLEL, FUSE, INTERCHANGE, IMG2COL, VECTORISE, PACK = range(8)


class Interchange(Protocol):
    """An encoding of the order of an operation's loops, by the parameters of actions.

    `placed` holds the loops placed so far, the outermost first; once it holds all loops, it is the order.

    Attributes:
        kind: The kind of action.
        whole: Whether one interchange reaches every order, so that a second one in a row is useless.
    """

    kind: ClassVar[ActionKind]
    whole: ClassVar[bool]

    def choices(self, placed: tuple[int, ...], loops: int) -> list[list[bool]]:
        """Return the mask of each parameter's values, for an operation with `loops` loops."""
        ...

    def place(self, placed: tuple[int, ...], params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Return the loops placed after an action with these parameters."""
        ...


class LevelPointers:
    """One loop at a time, the outermost first; the last loop takes the remaining place."""

    kind: ClassVar[ActionKind] = ActionKind("interchange", (tuple(range(LOOPS)),))
    whole: ClassVar[bool] = True

    def choices(self, placed: tuple[int, ...], loops: int) -> list[list[bool]]:
        """Allow the loops that are not placed yet."""
        return [[loop < loops and loop not in placed for loop in range(LOOPS)]]

    def place(self, placed: tuple[int, ...], params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Place the chosen loop inside the loops placed so far."""
        placed = (*placed, *params)
        left = [loop for loop in range(loops) if loop not in placed]
        return (*placed, *left) if len(left) == 1 else placed


class Swaps:
    """One of the enumerated candidates: two loops, at most three apart, change places."""

    kind: ClassVar[ActionKind] = ActionKind("swap", (tuple(f"{outer}-{inner}" for outer, inner in SWAPPED),))
    whole: ClassVar[bool] = False

    def choices(self, placed: tuple[int, ...], loops: int) -> list[list[bool]]:
        """Allow the pairs of loops that the operation has."""
        return [[not placed and inner < loops for _, inner in SWAPPED]]

    def place(self, placed: tuple[int, ...], params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Return the order of the loops after the swap."""
        order = list(range(loops))
        outer, inner = SWAPPED[params[0]]
        order[outer], order[inner] = inner, outer
        return (*placed, *order)


class Scores:
    """A score for each loop at once; the order is that of ascending scores, and of the loops where equal.

    MLIR RL's continuous interchange draws each score from a normal distribution. Here it is one of `LOOPS`
    levels, whose probabilities a policy is free to shape; these suffice for every order.
    """

    kind: ClassVar[ActionKind] = ActionKind("order", (tuple(range(LOOPS)),) * LOOPS, omitted=0)
    whole: ClassVar[bool] = True

    def choices(self, placed: tuple[int, ...], loops: int) -> list[list[bool]]:
        """Allow any score for the loops that the operation has."""
        return [
            [not placed and (score == 0 or loop < loops) for score in range(LOOPS)] for loop in range(LOOPS)
        ]

    def place(self, placed: tuple[int, ...], params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Return the loops sorted by their scores."""
        return (*placed, *sorted(range(loops), key=lambda loop: params[loop]))


INTERCHANGES: dict[str, Interchange] = {way.kind.name: way for way in (LevelPointers(), Swaps(), Scores())}
"""The encodings of an interchange, by the names of their actions."""


class Tiling(Protocol):
    """An encoding of tile sizes by the parameters of an action.

    Attributes:
        slots: The parameter slots of `tile`, `tile-parallel` and `fuse`.
        omitted: The value that stands for no parameter; None where there is none.
    """

    slots: ClassVar[tuple[tuple[int | str, ...], ...]]
    omitted: ClassVar[int | None]

    def choices(self, allowed: list[list[bool]]) -> list[bool]:
        """Return the mask of all slots; `allowed` says for each of `LOOPS` which of `SIZES` it may have."""
        ...

    def sizes(self, params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Return the tile size of each loop that an action with these parameters stands for."""
        ...

    def params(self, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the parameters of the actions that together tile loops by these sizes."""
        ...


class AllLoops:
    """A size for each loop, 0 for none."""

    slots: ClassVar[tuple[tuple[int | str, ...], ...]] = (SIZES,) * LOOPS
    omitted: ClassVar[int | None] = 0

    def choices(self, allowed: list[list[bool]]) -> list[bool]:
        """Allow each loop its sizes."""
        return [size for sizes in allowed for size in sizes]

    def sizes(self, params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Return the chosen sizes."""
        return tuple(SIZES[choice] for choice in params[:loops])

    def params(self, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the parameters of one action."""
        return [(*map(SIZES.index, sizes), *[0] * (LOOPS - len(sizes)))]


class OneLoop:
    """A loop and its size; several loops take as many actions."""

    slots: ClassVar[tuple[tuple[int | str, ...], ...]] = (tuple(f"{loop}-{size}" for loop, size in TILED),)
    omitted: ClassVar[int | None] = None

    def choices(self, allowed: list[list[bool]]) -> list[bool]:
        """Allow each loop its sizes, of which the first leaves it untiled."""
        return [size for sizes in allowed for size in sizes[1:]]

    def sizes(self, params: tuple[int, ...], loops: int) -> tuple[int, ...]:
        """Return the chosen loop's size, 0 for the others."""
        tiled, size = TILED[params[0]]
        return tuple(size if loop == tiled else 0 for loop in range(loops))

    def params(self, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the parameters of an action for each loop that is tiled, the outermost first."""
        return [(TILED.index((loop, size)),) for loop, size in enumerate(sizes) if size]


TILINGS: dict[int, Tiling] = {len(way.slots): way for way in (AllLoops(), OneLoop())}
"""The encodings of tile sizes, by the number of their slots."""


def space_with(interchange: str, tiling: Tiling) -> ActionSpace:
    """Return the action space with one of `INTERCHANGES` and one of `TILINGS`."""
    return ActionSpace(
        (
            ActionKind("next", ends="turn"),
            ActionKind("tile", tiling.slots, omitted=tiling.omitted),
            ActionKind("tile-parallel", tiling.slots, omitted=tiling.omitted),
            ActionKind("fuse", tiling.slots, omitted=tiling.omitted),
            INTERCHANGES[interchange].kind,
            ActionKind("img2col"),
            ActionKind("vectorise", (LANES,)),
            ActionKind("pack", (INPUTS,)),
        )
    )


SPACE = space_with("interchange", AllLoops())
"""The actions of `linalg`."""

SWAP_SPACE = space_with("swap", AllLoops())
"""The actions of `linalg-swaps`."""

SCORE_SPACE = space_with("order", AllLoops())
"""The actions of `linalg-scores`."""

FLAT_SPACE = space_with("swap", OneLoop())
"""The actions of `linalg-flat`, few enough to be listed."""


@cache
def divisors(bound: int) -> tuple[int, ...]:
    """Return the tile sizes that divide a loop's bound, ascending."""
    return tuple(size for size in SIZES if size and bound % size == 0)
