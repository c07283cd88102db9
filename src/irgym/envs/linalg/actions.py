"""The actions: transformations of the operation at hand, and going on to the one before it.

Operations are taken from the last consumer back to the first producer, as in MLIR RL (arXiv 2409.11068).
"""

from irgym.core.actions import ActionKind, ActionSpace

LOOPS = 12
"""Greatest number of loops of an operation that can be scheduled."""

SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 24, 28, 32, 48, 56, 64, 96, 128, 256)
"""Tile sizes; 0 leaves a loop whole. Those of MLIR RL, and the small divisors of image sizes."""

LANES = (0, 1)
"""What the lanes of a product's vectors run along: 0 the result's last dimension, 1 the one before it."""

NEXT, TILE, TILE_PARALLEL, FUSE, INTERCHANGE, IMG2COL, VECTORISE = range(7)

SPACE = ActionSpace(
    (
        ActionKind("next"),
        ActionKind("tile", (SIZES,) * LOOPS, omitted=0),
        ActionKind("tile-parallel", (SIZES,) * LOOPS, omitted=0),
        ActionKind("fuse", (SIZES,) * LOOPS, omitted=0),
        ActionKind("interchange", (tuple(range(LOOPS)),)),
        ActionKind("img2col"),
        ActionKind("vectorise", (LANES,)),
    )
)


def sizes_of(params: tuple[int, ...], loops: int) -> tuple[int, ...]:
    """Return the tile sizes that an action's choices stand for."""
    return tuple(SIZES[choice] for choice in params[:loops])
