"""Sketches: random schedules in the form of expert ones.

The form is that of GotoBLAS and BLIS (Low et al., ACM TOMS 43(2), 2016): a register tile, blocks whose
panels stay in L1 and L2, and inputs packed before the loops that reuse them. The sizes are drawn close to the
capacity of the target's registers and caches. Searches may change any part of a sketch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from irgym.core.actions import Action
from irgym.core.target import Target
from irgym.envs.loops import actions
from irgym.envs.loops.compiling.plan import vectorisable
from irgym.envs.loops.nest import Loop, Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction


def sketch(contraction: Contraction, target: Target, rng: np.random.Generator) -> Sequence[Action]:
    """Return the actions of a random schedule: a register tile, usually with blocks and packed inputs."""
    nest = draw(contraction, target, rng)
    return list(route(contraction, nest, target))


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
        """Draw the loops: outer loops, blocks, the tile, reductions, and the loops inside the tile."""
        dims = [loop.dim for loop in initial_nest(self.contraction).loops]
        reductions = [dim for dim in dims if dim in self.contraction.reductions]
        parallel = [dim for dim in dims if dim not in reductions]
        lanes = self._of([dim for dim in parallel if vectorisable(self.contraction, dim)])
        if lanes is None:
            lanes = self._of([dim for dim in dims if vectorisable(self.contraction, dim)])
        tile = [dim for dim in (self._rows(parallel, lanes), lanes) if dim is not None]
        sizes = self._tile(tile, lanes)
        outer = [dim for dim in parallel if dim not in tile]
        blocks = self._blocks(tile, lanes, reductions, sizes)
        blocks = {dim: step for dim, step in blocks.items() if step < self.contraction.sizes[dim]}
        order = [Loop(dim, 1) for dim in outer]
        around = [Loop(dim, step) for dim, step in blocks.items()]
        # Blocks of reductions come first, so that each part of an input is packed at most once.
        sums = [loop for loop in around if loop.dim in reductions]
        order = [*sums, *order, *(loop for loop in around if loop not in sums)]
        tiles = [Loop(dim, sizes[dim]) for dim in tile if 1 < sizes[dim] < self.contraction.sizes[dim]]
        if self.rng.random() < 0.5:
            tiles.reverse()
        whole = [dim for dim in tile if sizes[dim] == 1 and dim != lanes]
        inside = [Loop(dim, 1) for dim in tile if dim not in whole]
        order += [
            *tiles,
            *(Loop(dim, 1) for dim in whole),
            *(Loop(dim, 1) for dim in reductions if dim != lanes),
        ]
        loops = [*order, *inside]
        return Nest(tuple(self._packed(loops, len(loops) - len(inside), len(sums))))

    def _of(self, dims: Sequence[str]) -> str | None:
        """Return the longest of some dimensions, the last one among equals; None if there are none."""
        return max(reversed(dims), key=lambda dim: self.contraction.sizes[dim], default=None)

    def _rows(self, parallel: Sequence[str], lanes: str | None) -> str | None:
        """Return the tile's dimension besides the lanes: one that the input with the lanes lacks, if any."""
        a, b, _ = self.contraction.strides
        along = [table for table in (a, b) if lanes is not None and table[lanes]]
        rows = [dim for dim in parallel if dim != lanes and not any(table[dim] for table in along)]
        return self._of(rows or [dim for dim in parallel if dim != lanes])

    def _tile(self, tile: Sequence[str], lanes: str | None) -> dict[str, int]:
        """Draw the sides of the register tile, whose accumulators nearly fill the registers."""
        target, sizes = self.target, self.contraction.sizes
        if lanes is None or lanes in self.contraction.reductions:
            return {dim: min(sizes[dim], 4 if dim != lanes else sizes[dim]) for dim in tile}
        each = self.contraction.elements.lanes(target)
        vectors = -(-sizes[lanes] // each)
        widths = [count for count in (1, 2, 3, 4, 6) if count <= vectors]
        heights = [max(1, target.accumulators // count) for count in widths]
        # Prefer few loads for each multiply-add, but not always: other things matter too.
        loads = np.array([1 / count + 1 / height for count, height in zip(widths, heights, strict=True)])
        odds = np.exp(-4 * loads)
        drawn = int(self.rng.choice(len(widths), p=odds / odds.sum()))
        width, most = widths[drawn], heights[drawn]
        chosen: dict[str, int] = {lanes: min(sizes[lanes], width * each)}
        for dim in tile:
            if dim != lanes:
                fitting = [step for step in (1, *actions.FACTORS) if step <= min(most, sizes[dim])]
                if sizes[dim] <= most:
                    fitting.append(sizes[dim])
                # Mostly the largest that fits, for few loads for each multiply-add.
                place = max(0, len(fitting) - 1 - int(self.rng.geometric(0.6)) + 1)
                chosen[dim] = fitting[place]
        return chosen

    def _blocks(
        self, tile: Sequence[str], lanes: str | None, reductions: Sequence[str], sizes: dict[str, int]
    ) -> dict[str, int]:
        """Draw cache blocks, outermost first: a reduction for L1, the rows for L2, the lanes for L3."""
        of, each = self.contraction.sizes, self.contraction.elements.bytes
        blocks: dict[str, int] = {}
        longest = self._of(reductions)
        depth = prod(of[dim] for dim in reductions)
        if longest is not None and longest != lanes and self.rng.random() < 0.6:
            others = depth // of[longest]
            widest = max((sizes[dim] for dim in tile), default=1)
            fitting = self.target.cache(1) / each / widest / others
            blocks[longest] = self._near(
                fitting * float(self.rng.choice((0.25, 0.5, 0.75, 1.0))), of[longest]
            )
            depth = others * min(blocks[longest], of[longest])
        for dim, level in ((dim, 2 if dim != lanes else 3) for dim in tile):
            if self.rng.random() < 0.4:
                fitting = self.target.cache(level) / each / depth * float(self.rng.choice((0.25, 0.5, 0.75)))
                unit = sizes[dim]
                blocks[dim] = unit * self._near(fitting / unit, -(-of[dim] // unit))
        return {dim: step for dim, step in blocks.items() if step > sizes.get(dim, 1)}

    def _near(self, wanted: float, size: int) -> int:
        """Return the greatest split factor up to `wanted` and below `size`; 1 if there is none."""
        fitting = [step for step in actions.FACTORS if step <= wanted and step < size]
        return fitting[-1] if fitting else 1

    def _packed(self, loops: list[Loop], most: int, sums: int) -> list[Loop]:
        """Draw the inputs to pack, and the loops outside the block before which to pack them.

        The best place to pack an input is usually before the outermost loop that reuses it, that is, does not
        index it, after the blocks of reductions.
        """
        packed = list(loops)
        for place, operand in enumerate("ba"):
            strides = self.contraction.strides["ab".index(operand)]
            if self.rng.random() >= (0.7 if operand == "b" else 0.4):
                continue
            again = [at for at in range(most) if not strides[loops[at].dim]]
            places = [at for at in again if at >= sums] or [min(sums, most - 1)]
            at = places[0] if place == 0 or self.rng.random() < 0.5 else int(self.rng.choice(places))
            if actions.can_pack(self.contraction, Nest(tuple(packed)), at, operand):
                loop = packed[at]
                packed[at] = Loop(loop.dim, loop.step, loop.mark, "".join(sorted(loop.packs + operand)))
        return packed


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
            yield Action(actions.SPLIT, (actions.FACTORS.index(factor),))
    yield from [Action(actions.SWAP_UP)] * (at - place)
    yield from (Action(kind) for operand, kind in actions.PACKS.items() if operand in loop.packs)
    if loop.mark.value:
        yield Action(actions.UNROLL if loop.mark.value == "u" else actions.VECTORISE)


def _factors(step: int, present: int, inner: Sequence[int]) -> Sequence[int]:
    """Return the factors of splits that produce a step, via the steps of inner loops if necessary."""
    if step // present in actions.FACTORS:
        return [step // present]
    through = [other for other in inner if present < other < step]
    if not through or step % through[0] or step // through[0] not in actions.FACTORS:
        return []
    inside = _factors(through[0], present, through[1:])
    return [*inside, step // through[0]] if inside else []
