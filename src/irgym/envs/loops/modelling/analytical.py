"""The nest that the analytical model calls best, and those next to it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from irgym.core.target import Target
from irgym.envs.loops.blocked import WIDTHS, Blocking, Roles, blocked, heights_within, roles_of
from irgym.envs.loops.legality import FACTORS, has_room
from irgym.envs.loops.modelling.model import slots
from irgym.envs.loops.nest import Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction

HEIGHTS = 4
"""Greatest heights of a register tile that are compared for each width."""

PACKINGS = ("", "b", "a", "ab")
"""Choices of inputs to pack."""

ROUNDS = 3
"""Most rounds in which each parameter of a blocking is chosen again."""


@lru_cache(maxsize=256)
def ranked(contraction: Contraction, target: Target) -> Sequence[Nest]:
    """Return the nest that the model calls best, and those that differ from it in one parameter.

    They are in the order of their modelled times.
    """
    choice = _Choice(contraction, target, roles_of(contraction))
    best = choice.best()
    around = {
        choice.nest(changed): choice.slots(changed) for options in choice.options(best) for changed in options
    }
    around[choice.nest(best)] = 0.0  # the first, whatever is as good
    fitting = [nest for nest in around if has_room(contraction, nest)] or [initial_nest(contraction)]
    return sorted(fitting, key=lambda nest: around.get(nest, 0.0))


@lru_cache(maxsize=1 << 16)
def chosen(contraction: Contraction, target: Target, width: int | None, packs: str | None) -> Nest:
    """Return the nest that the model calls best among those with a width of the tile and packed inputs.

    Args:
        contraction: The program.
        target: The machine.
        width: Vectors along the lanes of the register tile, one of `widths`; None for any.
        packs: The inputs to pack, one of `PACKINGS`; None for any.
    """
    if width is None and packs is None:
        return ranked(contraction, target)[0]
    choice = _Choice(contraction, target, roles_of(contraction), width, packs)
    nest = choice.nest(choice.best())
    return nest if has_room(contraction, nest) else initial_nest(contraction)


def widths(contraction: Contraction, target: Target) -> Sequence[tuple[int, int]]:
    """Return the widths of register tiles, in vectors and in elements."""
    lanes = roles_of(contraction).lanes
    if lanes is None:
        return [(1, 1)]
    size, each = contraction.sizes[lanes], contraction.elements.lanes(target)
    if lanes in contraction.reductions:
        return [(1, size)]
    return [(width, min(size, width * each)) for width in WIDTHS if (width - 1) * each < size]


@dataclass(frozen=True)
class _Choice:
    """Choice of a blocking by the model.

    Attributes:
        contraction: The program.
        target: The machine.
        roles: Parts of the dimensions.
        width: Vectors along the lanes of the register tile; None for any.
        packs: The inputs to pack; None for any.
        known: Modelled times so far.
    """

    contraction: Contraction
    target: Target
    roles: Roles
    width: int | None = None
    packs: str | None = None
    known: dict[Nest, float] = field(default_factory=dict[Nest, float])

    def best(self) -> Blocking:
        """Return the best of several blockings, one for each choice of packed inputs to begin with."""
        return min((self._descended(packs) for packs in self._packings), key=self.slots)

    def _descended(self, packs: str) -> Blocking:
        """Choose each parameter in turn, the register tile first, until none changes."""
        best = min(self._tiles(Blocking({}, {}, packs=packs)), key=self.slots)
        for _ in range(ROUNDS):
            before = best
            for place in range(len(self.options(best))):
                best = min([best, *self.options(best)[place]], key=self.slots)
            if best == before:
                break
        return best

    def nest(self, blocking: Blocking) -> Nest:
        """Return the nest of a blocking."""
        return blocked(self.contraction, self.roles, blocking)

    def slots(self, blocking: Blocking) -> float:
        """Return the modelled time of a blocking; infinity if it has too many loops."""
        nest = self.nest(blocking)
        if nest not in self.known:
            fits = has_room(self.contraction, nest)
            self.known[nest] = slots(self.contraction, nest, self.target) if fits else math.inf
        return self.known[nest]

    def options(self, blocking: Blocking) -> Sequence[Iterator[Blocking]]:
        """Return for each parameter the blockings with other values of it."""
        packings = (replace(blocking, packs=packs) for packs in self._packings)
        orders = (replace(blocking, rows_inside=inside) for inside in (True, False))
        steps = (self._steps(blocking, dim) for dim in self._blocked)
        return [packings, *steps, orders, self._tiles(blocking)]

    def _tiles(self, blocking: Blocking) -> Iterator[Blocking]:
        """Yield blockings with other register tiles; blocks stay multiples of them."""
        lanes, rows, sizes = self.roles.lanes, self.roles.rows, self.contraction.sizes
        for width, along in self._widths:
            most = max(1, self.target.accumulators // width)
            for height in [1] if rows is None else heights_within(sizes[rows], most)[-HEIGHTS:]:
                sides = {rows: height, lanes: along}
                tile = {dim: side for dim, side in sides.items() if dim is not None}
                yield replace(blocking, tile=tile, blocks=self._kept(tile, blocking.blocks))

    @cached_property
    def _widths(self) -> Sequence[tuple[int, int]]:
        """The widths of register tiles, in vectors and in elements."""
        fitting = widths(self.contraction, self.target)
        return [pair for pair in fitting if self.width in (None, pair[0])]

    @property
    def _packings(self) -> Sequence[str]:
        """The choices of inputs to pack."""
        return PACKINGS if self.packs is None else (self.packs,)

    def _kept(self, tile: dict[str, int], blocks: dict[str, int]) -> dict[str, int]:
        """Return blocks as multiples of the sides of a tile, where a split can make them."""
        kept: dict[str, int] = {}
        for dim, step in blocks.items():
            side = tile.get(dim, 1)
            fitting = [side * factor for factor in FACTORS if side * factor <= max(step, 2 * side)]
            if fitting and fitting[-1] < self.contraction.sizes[dim]:
                kept[dim] = fitting[-1]
        return kept

    @cached_property
    def _blocked(self) -> Sequence[str]:
        """The dimensions that may be blocked, as in BLIS: the sum, the lanes for L3, the rows for L2."""
        lanes = None if self.roles.lanes in self.contraction.reductions else self.roles.lanes
        dims = (self.roles.longest(self.contraction), lanes, self.roles.rows)
        return [dim for dim in dims if dim is not None]

    def _steps(self, blocking: Blocking, dim: str) -> Iterator[Blocking]:
        """Yield the blockings with other steps of a dimension, and with none."""
        side = blocking.tile.get(dim, 1)
        steps = [side * factor for factor in FACTORS if side * factor < self.contraction.sizes[dim]]
        for step in (1, *steps):
            blocks = blocking.blocks | {dim: step}
            kept = {other: blocks[other] for other in self._blocked if blocks.get(other, 1) > 1}
            yield replace(blocking, blocks=kept)
