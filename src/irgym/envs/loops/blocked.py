"""Nests of the form of GotoBLAS and BLIS: a register tile, cache blocks around it, packed inputs.

Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008; Low et al.,
ACM TOMS 43(2), 2016. `sketches` draws the sizes at random, `modelling.analytical` reasons about them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from irgym.envs.loops import legality
from irgym.envs.loops.compiling.plan import vectorisable
from irgym.envs.loops.nest import Loop, Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction

WIDTHS = (1, 2, 3, 4, 6)
"""Vectors along the lanes of a register tile."""


@dataclass(frozen=True)
class Roles:
    """The parts that the dimensions of a contraction have in the form.

    Attributes:
        lanes: The one along vectors; None if none can be.
        rows: The other one of the register tile; None if there is none.
        outer: Parallel dimensions that are not in the tile.
        reductions: Dimensions of summation, in the program's order, without `lanes`.
    """

    lanes: str | None
    rows: str | None
    outer: tuple[str, ...]
    reductions: tuple[str, ...]

    @property
    def tile(self) -> tuple[str, ...]:
        """The dimensions of the register tile, the rows first."""
        return tuple(dim for dim in (self.rows, self.lanes) if dim is not None)

    def longest(self, contraction: Contraction) -> str | None:
        """Return the dimension of summation that may be blocked: the longest, unless it is that of lanes."""
        dims = [*self.reductions, *(dim for dim in self.tile if dim in contraction.reductions)]
        found = max(dims, key=lambda dim: contraction.sizes[dim], default=None)
        return found if found in self.reductions else None


@dataclass(frozen=True)
class Blocking:
    """Sizes and order of a nest of the form.

    Attributes:
        tile: Sides of the register tile, by dimension.
        blocks: Steps of the loops over cache blocks, by dimension, the outermost first.
        rows_inside: Whether the loop over tiles along the lanes is outside the one along the rows.
        packs: The inputs that are packed.
    """

    tile: dict[str, int]
    blocks: dict[str, int]
    rows_inside: bool = True
    packs: str = ""


def roles_of(contraction: Contraction) -> Roles:
    """Return the parts of the dimensions: lanes along the longest one that vectors can run along."""
    sizes = contraction.sizes
    dims = [loop.dim for loop in initial_nest(contraction).loops]
    reductions = [dim for dim in dims if dim in contraction.reductions]
    parallel = [dim for dim in dims if dim not in reductions]

    def longest(among: Sequence[str]) -> str | None:
        return max(reversed(among), key=lambda dim: sizes[dim], default=None)

    lanes = longest([dim for dim in parallel if vectorisable(contraction, dim)])
    if lanes is None:
        lanes = longest([dim for dim in dims if vectorisable(contraction, dim)])
    others = [dim for dim in parallel if dim != lanes]
    # Rows that the input with the lanes lacks: so it is loaded once for all of them.
    along = [table for table in contraction.strides[:2] if lanes is not None and table[lanes]]
    rows = longest([dim for dim in others if not any(table[dim] for table in along)] or others)
    return Roles(
        lanes,
        rows,
        tuple(dim for dim in others if dim != rows),
        tuple(dim for dim in reductions if dim != lanes),
    )


def heights_within(rows: int, most: int) -> Sequence[int]:
    """Return the heights of a register tile that a split can make, up to some number of rows, ascending."""
    fitting = [step for step in (1, *legality.FACTORS) if step <= min(most, rows)]
    return [*fitting, rows] if rows <= most else fitting


def blocked(contraction: Contraction, roles: Roles, blocking: Blocking) -> Nest:
    """Return the nest of a blocking: outer loops, blocks, tiles, sums, and the loops inside the tile."""
    loops, tiled, sums = arranged(contraction, roles, blocking)
    for operand in blocking.packs:
        places = packing_places(contraction, loops, tiled, sums, operand)
        loops = packed(contraction, loops, places[0], operand)
    return Nest(tuple(loops))


def arranged(contraction: Contraction, roles: Roles, blocking: Blocking) -> tuple[list[Loop], int, int]:
    """Return the loops of a blocking, how many surround the tile, and how many are blocks of reductions."""
    sizes, tile = contraction.sizes, blocking.tile
    around = [
        Loop(dim, step) for dim, step in blocking.blocks.items() if tile.get(dim, 1) < step < sizes[dim]
    ]
    # Blocks of reductions come first, so that each part of an input is packed at most once.
    sums = [loop for loop in around if loop.dim in contraction.reductions]
    tiles = [Loop(dim, tile[dim]) for dim in roles.tile if 1 < tile[dim] < sizes[dim]]
    if blocking.rows_inside:
        tiles.reverse()
    whole = [dim for dim in roles.tile if tile[dim] == 1 and dim != roles.lanes]
    outside = [
        *sums,
        *(Loop(dim, 1) for dim in roles.outer),
        *(loop for loop in around if loop not in sums),
        *tiles,
        *(Loop(dim, 1) for dim in whole),
        *(Loop(dim, 1) for dim in roles.reductions),
    ]
    inside = [Loop(dim, 1) for dim in roles.tile if dim not in whole]
    return [*outside, *inside], len(outside), len(sums)


def packing_places(
    contraction: Contraction, loops: Sequence[Loop], tiled: int, sums: int, operand: str
) -> Sequence[int]:
    """Return the loops before which an input may be packed: those that use it again, the outermost first.

    The best place is usually before the outermost loop that does not index it, after blocks of reductions.
    """
    strides = contraction.strides["ab".index(operand)]
    again = [place for place in range(sums, tiled) if not strides[loops[place].dim]]
    return again or [max(0, min(sums, tiled - 1))]


def packed(contraction: Contraction, loops: Sequence[Loop], place: int, operand: str) -> list[Loop]:
    """Return the loops with an input packed before one of them, where it can be."""
    changed = list(loops)
    if legality.can_pack(contraction, Nest(tuple(loops)), place, operand):
        loop = loops[place]
        changed[place] = Loop(loop.dim, loop.step, loop.mark, "".join(sorted(loop.packs + operand)))
    return changed
