"""Sketches: schedules in the form that experts write, with random parameters.

Nearly all random schedules are slower than the original program: a good one needs a register tile, vectors,
and most loops unchanged, all at once. Searches therefore start from sketches, as Ansor's do
(arXiv 2006.06762), and may change them freely.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from irgym.core.actions import Action
from irgym.core.target import Target
from irgym.envs.linalg import actions
from irgym.envs.linalg.scheduling.operations import Operation
from irgym.envs.linalg.scheduling.transformations import VECTOR_POINTS, is_product, lanes_loop
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.transitions import Transitions

LONGEST = 256
"""Greatest number of elements along the lanes of an operation without accumulators."""


def sketch(task: Transitions, target: Target, rng: np.random.Generator) -> Sequence[Action]:
    """Return the actions of a random schedule that treats each operation according to its kind."""
    pen = _Pen(task, target, rng)
    while not task.terminal(pen.state):
        operation = pen.operation
        if is_product(operation):
            _product(pen)
        elif rng.random() < 0.8:
            _others(pen)
        pen.take(actions.NEXT)
    return pen.taken


class _Pen:
    """Collects actions in order, skipping those that do not apply."""

    def __init__(self, task: Transitions, target: Target, rng: np.random.Generator) -> None:
        self.task = task
        self.accumulators = target.accumulators
        self._width = 4 * target.lanes
        self.rng = rng
        self.state: LinalgState = task.initial()
        self.taken: list[Action] = []

    @property
    def operation(self) -> Operation:
        """The current operation, within its innermost tile."""
        return self.state.operations[self.task.at_hand(self.state)].operation

    @property
    def lanes(self) -> int:
        """Elements of a vector register."""
        return max(1, self._width // self.operation.element_bytes)

    def take(self, kind: int, choices: Sequence[int] = ()) -> bool:
        """Take an action if it applies, and say whether it did."""
        sizes = self.task.space.slot_sizes[kind]
        action = Action(kind, (*choices, *([0] * (len(sizes) - len(choices)))))
        applies = self.task.space.allows(self.task.mask(self.state), action)
        if applies:
            self.state = self.task.step(self.state, action)
            self.taken.append(action)
        return applies

    def tile(self, kind: int, sizes: Sequence[int]) -> bool:
        """Tile by sizes from `actions.SIZES`; a size as large as the loop's bound means no tile."""
        bounds = self.operation.bounds
        chosen = [size if size < bound else 0 for size, bound in zip(sizes, bounds, strict=True)]
        taken = [self.take(kind, params) for params in self.task.tiling.params(chosen)] if any(chosen) else []
        return any(taken)

    def chance(self, probability: float) -> bool:
        """Return true with the given probability."""
        return self.rng.random() < probability

    def size(self, bound: int, least: int, greatest: int, *, whole: bool = False) -> int:
        """Return a random tile size of a loop between two limits, or 1 if there is none.

        Args:
            bound: Iterations of the loop.
            least: Least size.
            greatest: Greatest size.
            whole: Whether the size has to divide the bound; otherwise it does so half of the time.
        """
        dividing = [size for size in actions.divisors(bound) if least <= size <= greatest]
        if not whole and not (dividing and self.chance(0.5)):
            dividing = [size for size in actions.SIZES if max(least, 1) <= size <= min(greatest, bound)]
        return int(self.rng.choice(dividing)) if dividing else 1


def _product(pen: _Pen) -> None:
    """Sketch a product of two tensors: perhaps img2col and cache tiles, then a register tile and vectors."""
    operation = pen.operation
    strided = any(stride > 1 for stride in operation.strides)
    window = [bound for loop, bound in enumerate(operation.bounds) if not operation.parallel[loop]][1:]
    if pen.chance(0.85 if strided or all(bound == 1 for bound in window) else 0.3):
        pen.take(actions.IMG2COL)
    if pen.chance(0.15):
        _outer(pen, actions.FUSE if pen.chance(0.5) else actions.TILE_PARALLEL, 1)
    if pen.chance(0.1):
        _outer(pen, actions.TILE, 8)
    if pen.chance(0.05):
        _interchanged(pen)
    operation, width = pen.operation, pen.lanes
    lanes, rows = _two_loops(operation, pen.rng)
    sizes = [1 if bound > 1 else 0 for bound in operation.bounds]
    if lanes is not None:
        # Mostly two registers wide: then loads take fewer slots than multiply-adds.
        wide = 2 * width
        fits = wide <= operation.bounds[lanes] and pen.chance(0.6)
        sizes[lanes] = wide if fits else _lanes(pen, operation.bounds[lanes], 4 * width)
    if rows is not None and lanes is not None:
        room = max(1, pen.accumulators // -(-sizes[lanes] // width))
        # Mostly as many rows as registers allow: fewer loads for each multiply-add.
        least = min(room, operation.bounds[rows]) if pen.chance(0.6) else min(4, room)
        sizes[rows] = pen.size(operation.bounds[rows], least, room)
    reductions = [
        loop for loop, bound in enumerate(operation.bounds) if bound > 1 and not operation.parallel[loop]
    ]
    if lanes is not None and reductions and pen.chance(0.85 if _shared(operation, lanes, rows) else 0.1):
        _panel(pen, lanes, rows, sizes[lanes], reductions)
    elif reductions and pen.chance(0.3):
        loop = int(pen.rng.choice(reductions))
        room = VECTOR_POINTS // prod(filter(None, sizes))
        sizes[loop] = pen.size(operation.bounds[loop], 2, min(16, room), whole=True)
    _vectorised(pen, sizes, turned=_turned(operation, lanes, rows) != pen.chance(0.05))


def _panel(pen: _Pen, lanes: int, rows: int | None, size: int, reductions: Sequence[int]) -> None:
    """Tile for caches, then for a panel as wide as the register tile that all rows share.

    Mostly the panel, or a block of several panels, is packed. These are the loops of GotoBLAS, for one matrix
    of a batch at a time. A block of a direct convolution is some rows of the image and some channels.
    """
    operation = pen.operation
    bounds = operation.bounds
    longest = max(reductions, key=lambda loop: bounds[loop])
    blocks, panel = [[0] * len(bounds) for _ in range(2)], [0] * len(bounds)
    panel[lanes] = size
    if pen.chance(0.5):
        blocks[0][longest] = pen.size(bounds[longest], 16, 256)
    for loop in range(len(bounds)):
        if not operation.parallel[loop] or loop in (lanes, rows) or bounds[loop] == 1:
            continue
        if all(any(form[loop] for form in load.forms) for load in operation.loads):
            blocks[0][loop] = 1
        elif pen.chance(0.5):
            blocks[0][loop] = pen.size(bounds[loop], 1, 16)
    if pen.chance(0.5):
        blocks[1][lanes] = pen.size(bounds[lanes], 4 * size, 256)
    blocks[1] = [block if block > size else 0 for block in blocks[1]]
    along = [place for place, load in enumerate(operation.loads) if any(form[lanes] for form in load.forms)]
    early = False
    for block in blocks:
        early = pen.tile(actions.TILE, block) or early
    packs = pen.chance(0.75)
    early = early and pen.chance(0.35)
    if packs and early:
        pen.take(actions.PACK, along[:1])
    pen.tile(actions.TILE, panel)
    if packs and not early:
        pen.take(actions.PACK, along[:1])


def _others(pen: _Pen) -> None:
    """Sketch an operation without accumulators: perhaps fused or tiled, then vectors along a loop."""
    if pen.chance(0.5):
        _outer(pen, actions.FUSE if pen.chance(0.7) else actions.TILE_PARALLEL, 1)
    if pen.chance(0.2):
        _outer(pen, actions.TILE, 4)
    if not all(pen.operation.parallel) and pen.chance(0.3):
        _interchanged(pen)
    operation = pen.operation
    sizes = [1 if bound > 1 else 0 for bound in operation.bounds]
    lanes = [loop for loop, bound in enumerate(operation.bounds) if bound > 1 and operation.parallel[loop]]
    if lanes:
        last = lanes[-1] if pen.chance(0.8) else int(pen.rng.choice(lanes))
        sizes[last] = _lanes(pen, operation.bounds[last], LONGEST)
        if last != lanes[0] and pen.chance(0.3):
            sizes[lanes[0]] = pen.size(operation.bounds[lanes[0]], 2, 8)
    _vectorised(pen, sizes, turned=False)


def _outer(pen: _Pen, kind: int, least: int) -> None:
    """Tile each loop with probability one half, by random sizes."""
    operation = pen.operation
    sizes = [0] * operation.loops
    for loop, bound in enumerate(operation.bounds):
        if bound > 1 and (operation.parallel[loop] or kind == actions.TILE) and pen.chance(0.5):
            size = pen.size(bound, least, bound, whole=kind != actions.TILE)
            sizes[loop] = size if size >= least and size < bound else 0
    if not pen.tile(kind, sizes) and kind == actions.FUSE:
        pen.tile(actions.TILE_PARALLEL, sizes)


def _interchanged(pen: _Pen) -> None:
    """Interchange loops at random, in as many actions as the action space needs."""
    while (mask := pen.task.mask(pen.state)).kinds[actions.INTERCHANGE]:
        slots = pen.task.space.choices(mask, actions.INTERCHANGE)
        pen.take(actions.INTERCHANGE, tuple(int(pen.rng.choice(choices)) for choices in slots))
        if not pen.state.placed:
            return


def _two_loops(operation: Operation, rng: np.random.Generator) -> tuple[int | None, int | None]:
    """Return a loop for the lanes of a product and one for its rows, from different tensors if possible.

    Mostly the lanes run along the last dimension of the result, whose elements are contiguous.
    """
    first, second = (
        {
            loop
            for loop, bound in enumerate(operation.bounds)
            if bound > 1 and operation.parallel[loop] and any(form[loop] for form in load.forms)
        }
        for load in operation.loads
    )
    last = lanes_loop(operation, turned=False)
    unshared = [first - second, second - first]
    if last in unshared[0] and not unshared[1]:
        # A window for each channel: rows are those of the image.
        rows = sorted(unshared[0] - {last})
        return last, int(rng.choice(rows)) if rows else None
    if rng.random() < 0.85 and any(last in loops for loops in unshared):
        rows = sorted(next(loops for loops in unshared if last not in loops))
        return last, int(rng.choice(rows)) if rows else None
    loops = [int(rng.choice(sorted(choices))) if choices else None for choices in unshared]
    if rng.random() < 0.5:
        loops.reverse()
    return (loops[0], loops[1]) if loops[0] is not None else (loops[1], loops[0])


def _shared(operation: Operation, lanes: int, rows: int | None) -> bool:
    """Say whether all rows use the same panel: some load depends on the lanes, and not on the rows."""
    return rows is not None and any(
        any(form[lanes] for form in load.forms) and not any(form[rows] for form in load.forms)
        for load in operation.loads
    )


def _turned(operation: Operation, lanes: int | None, rows: int | None) -> bool:
    """Say whether the lanes run along a dimension of the result before that of the rows."""
    places = [
        next(
            (place for place, form in enumerate(operation.store.forms) if loop is not None and form[loop]), -1
        )
        for loop in (lanes, rows)
    ]
    return places[0] < places[1]


def _lanes(pen: _Pen, bound: int, greatest: int) -> int:
    """Return a random tile size of 1, 2, 4, ... registers, or a smaller one for a short loop."""
    lanes = pen.lanes
    fitting = [size for size in actions.SIZES if lanes <= size <= min(bound, greatest)]
    powers = [size for size in fitting if size.bit_count() == 1]
    return int(pen.rng.choice(powers)) if powers else pen.size(bound, min(4, bound), bound)


def _vectorised(pen: _Pen, sizes: Sequence[int], turned: bool) -> None:
    """Tile and vectorise; do neither where the tile cannot be vectorised."""
    state, count = pen.state, len(pen.taken)
    pen.tile(actions.TILE, sizes)
    if not (pen.take(actions.VECTORISE, (int(turned),)) or pen.take(actions.VECTORISE, (0,))):
        pen.state = state
        del pen.taken[count:]
