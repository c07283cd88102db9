"""Sketches: random schedules in the form of expert ones.

The form is that of `blocked`. The sizes are drawn close to the capacity of the target's registers and caches,
or the analytical model chooses all of them but for one or two. Searches may change any part of a sketch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from irgym.core.actions import Action
from irgym.core.target import Target
from irgym.envs.loops import actions
from irgym.envs.loops.blocked import (
    WIDTHS,
    Blocking,
    Roles,
    arranged,
    heights_within,
    packed,
    packing_places,
    roles_of,
)
from irgym.envs.loops.legality import FACTORS
from irgym.envs.loops.modelling.analytical import ranked
from irgym.envs.loops.nest import Loop, Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction

NEAR = 0.25
"""Share of sketches that differ in one parameter from what the analytical model chooses."""

RANK = 0.1
"""Odds of each of these after the ones that the model calls better."""

ARRANGED = 0.25
"""Share of sketches that are a random action `analytical`."""


def sketch(contraction: Contraction, target: Target, rng: np.random.Generator) -> Sequence[Action]:
    """Return the actions of a random schedule: a register tile, usually with blocks and packed inputs."""
    drawn = rng.random()
    if drawn < ARRANGED:
        return [_arrangement(contraction, target, rng)]
    near = ranked(contraction, target)[1:] if drawn < ARRANGED + NEAR else ()
    nest = near[min(int(rng.geometric(RANK)), len(near)) - 1] if near else draw(contraction, target, rng)
    return list(route(contraction, nest, target))


def _arrangement(contraction: Contraction, target: Target, rng: np.random.Generator) -> Action:
    """Return an action `analytical` with random parameters among those that apply."""
    at = actions.Position(contraction, initial_nest(contraction), 0, target)
    legal = iter(actions.arrangements(at))
    slots = actions.SPACE.slot_sizes[actions.ANALYTICAL]
    fitting = [[choice for choice in range(size) if next(legal)] for size in slots]
    return Action(actions.ANALYTICAL, tuple(int(rng.choice(choices)) for choices in fitting))


def draw(contraction: Contraction, target: Target, rng: np.random.Generator) -> Nest:
    """Return a random nest in this form; splits can produce all of its steps."""
    return _Sketch(contraction, target, rng).nest()


@dataclass(frozen=True)
class _Sketch:
    """Draw of one nest.

    Attributes:
        contraction: The program.
        target: Target of the code.
        rng: Source of random numbers.
    """

    contraction: Contraction
    target: Target
    rng: np.random.Generator

    def nest(self) -> Nest:
        """Draw the sizes of the form, then the inputs to pack and where."""
        roles = roles_of(self.contraction)
        tile = self._tile(roles)
        blocks = self._blocks(roles, tile)
        blocking = Blocking(tile, blocks, rows_inside=self.rng.random() < 0.5)
        loops, tiled, sums = arranged(self.contraction, roles, blocking)
        for operand, odds in (("b", 0.7), ("a", 0.4)):
            if self.rng.random() < odds:
                places = packing_places(self.contraction, loops, tiled, sums, operand)
                outermost = operand == "b" or self.rng.random() < 0.5
                place = places[0] if outermost else int(self.rng.choice(places))
                loops = packed(self.contraction, loops, place, operand)
        return Nest(tuple(loops))

    def _tile(self, roles: Roles) -> dict[str, int]:
        """Draw the sides of the register tile, whose accumulators nearly fill the registers."""
        target, sizes, lanes = self.target, self.contraction.sizes, roles.lanes
        if lanes is None or lanes in self.contraction.reductions:
            return {dim: min(sizes[dim], 4 if dim != lanes else sizes[dim]) for dim in roles.tile}
        each = self.contraction.elements.lanes(target)
        vectors = -(-sizes[lanes] // each)
        widths = [count for count in WIDTHS if count <= vectors]
        heights = [max(1, target.accumulators // count) for count in widths]
        # Prefer few loads for each multiply-add, but not always: other things matter too.
        loads = np.array([1 / count + 1 / height for count, height in zip(widths, heights, strict=True)])
        odds = np.exp(-4 * loads)
        drawn = int(self.rng.choice(len(widths), p=odds / odds.sum()))
        width, most = widths[drawn], heights[drawn]
        chosen: dict[str, int] = {lanes: min(sizes[lanes], width * each)}
        if roles.rows is not None:
            fitting = heights_within(sizes[roles.rows], most)
            # Mostly the largest that fits, for few loads for each multiply-add.
            place = max(0, len(fitting) - 1 - int(self.rng.geometric(0.6)) + 1)
            chosen[roles.rows] = fitting[place]
        return chosen

    def _blocks(self, roles: Roles, tile: dict[str, int]) -> dict[str, int]:
        """Draw cache blocks, outermost first: a reduction for L1, the rows for L2, the lanes for L3."""
        of, each = self.contraction.sizes, self.contraction.elements.bytes
        blocks: dict[str, int] = {}
        longest = roles.longest(self.contraction)
        depth = prod(of[dim] for dim in self.contraction.reductions)
        if longest is not None and self.rng.random() < 0.6:
            others = depth // of[longest]
            widest = max(tile.values(), default=1)
            fitting = self.target.cache(1) / each / widest / others
            blocks[longest] = self._near(
                fitting * float(self.rng.choice((0.25, 0.5, 0.75, 1.0))), of[longest]
            )
            depth = others * min(blocks[longest], of[longest])
        for dim, level in ((dim, 2 if dim != roles.lanes else 3) for dim in roles.tile):
            if self.rng.random() < 0.4:
                fitting = self.target.cache(level) / each / depth * float(self.rng.choice((0.25, 0.5, 0.75)))
                unit = tile[dim]
                blocks[dim] = unit * self._near(fitting / unit, -(-of[dim] // unit))
        return blocks

    def _near(self, wanted: float, size: int) -> int:
        """Return the greatest split factor up to `wanted` and below `size`; 1 if there is none."""
        fitting = [step for step in FACTORS if step <= wanted and step < size]
        return fitting[-1] if fitting else 1


def route(contraction: Contraction, nest: Nest, target: Target) -> Iterator[Action]:
    """Yield actions that lead from the unscheduled program to a nest, or as near to it as possible.

    They place one loop at a time, the outermost first. Steps that no split can produce are skipped; the first
    action that does not apply ends the route.
    """
    here, cursor = initial_nest(contraction), 0
    for place, loop in enumerate(nest.loops):
        for action in _place(nest, here, cursor, place, loop):
            at = actions.Position(contraction, here, cursor, target)
            if not actions.SPACE.allows(actions.mask_at(at), action):
                return
            here, cursor = actions.apply(at, action)
            yield action


def _place(nest: Nest, here: Nest, cursor: int, place: int, loop: Loop) -> Iterator[Action]:
    """Yield the actions that move a loop to its place."""
    at = next((at for at in range(place, len(here.loops)) if here.loops[at].dim == loop.dim), None)
    if at is None:
        return
    yield from [Action(actions.DOWN)] * (at - cursor)
    yield from [Action(actions.UP)] * (cursor - at)
    present = here.loops[at].step
    if loop.step > present:
        inner = [other.step for other in nest.loops[place + 1 :] if other.dim == loop.dim]
        for factor in _factors(loop.step, present, inner):
            yield Action(actions.SPLIT, (FACTORS.index(factor),))
    yield from [Action(actions.SWAP_UP)] * (at - place)
    yield from (Action(kind) for operand, kind in actions.PACKS.items() if operand in loop.packs)
    if loop.mark.value:
        yield Action(actions.UNROLL if loop.mark.value == "u" else actions.VECTORISE)


def _factors(step: int, present: int, inner: Sequence[int]) -> Sequence[int]:
    """Return the factors of splits that produce a step, via the steps of inner loops if necessary."""
    if step // present in FACTORS:
        return [step // present]
    through = [other for other in inner if present < other < step]
    if not through or step % through[0] or step // through[0] not in FACTORS:
        return []
    inside = _factors(through[0], present, through[1:])
    return [*inside, step // through[0]] if inside else []
