"""Features of a scheduled program for a learned cost model, computed from loop bounds and accesses.

As in Ansor (arXiv 2006.06762): arithmetic, the innermost loops and how they move along the tensors, vectors,
and the memory that tiles touch at each level. Logarithms are to base 2, divided by 8, so that all features
are of the order of 1.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from irgym.envs.linalg.scheduling.operations import Access, Operation, OperationKind, Program
from irgym.envs.linalg.scheduling.transformations import TILES, Scheduled, as_matmul

HEAVIEST = 2
"""Number of operations with individual features, those with the most work; the others count in the mean."""

INNER = 3
"""Number of loops described inside the innermost tile, from the inside, and of those around it."""

PAGE = 1024
"""float32 elements in 4 KiB, the stride at which addresses map to the same set of a first-level cache."""

KINDS = tuple(OperationKind)

_LOOP = 5
_OPERATION = 25 + 2 * INNER * _LOOP

COST_FEATURES = 3 + (1 + HEAVIEST) * _OPERATION
"""Number of features."""


def cost_features(program: Program, states: Sequence[Scheduled]) -> NDArray[np.float64]:
    """Return the features of a scheduled program, shape [COST_FEATURES].

    They are the number of operations, work and memory; the mean over all operations, weighted by work; and
    the features of the `HEAVIEST` operations.
    """
    work = np.array([_work(operation) for operation in program.operations], dtype=np.float64)
    rows = np.array(
        [_described(original, state) for original, state in zip(program.operations, states, strict=True)]
    )
    heaviest = np.zeros((HEAVIEST, _OPERATION))
    order = np.argsort(-work, kind="stable")[:HEAVIEST]
    heaviest[: len(order)] = rows[order]
    touched = sum(_bytes(operation) for operation in program.operations)
    overall = (_log(len(rows)), _log(float(work.sum())), _log(touched))
    return np.concatenate([overall, work @ rows / work.sum(), heaviest.ravel()])


def _work(operation: Operation) -> int:
    """Return the arithmetic operations of an operation; a copied point counts as one."""
    return operation.points * max(1, sum(operation.arithmetic))


def _log(number: float) -> float:
    return math.log2(max(number, 1.0)) / 8.0


def _bytes(operation: Operation) -> int:
    """Return the bytes that the loops of an operation touch, at the size of its result's elements."""
    return operation.element_bytes * sum(
        math.prod(access.extents(operation.bounds)) for access in operation.accesses
    )


def _described(original: Operation, state: Scheduled) -> list[float]:
    """Return the features of one operation, shape [_OPERATION]."""
    tile = state.operation
    levels, copied = _levels(original, state)
    reduced = [bound for bound, parallel in zip(tile.bounds, tile.parallel, strict=True) if not parallel]
    lanes = _lanes(state)
    figures = [
        float(KINDS.index(original.kind)),
        _log(original.points),
        _log(
            math.prod(
                b for b, parallel in zip(original.bounds, original.parallel, strict=True) if not parallel
            )
        ),
        _log(_bytes(original)),
        _work(original) / _bytes(original) / 8.0,
        float(state.vectorised) + float(state.vectorised and state.steps[-1].numbers[0]),
        float(any(step.name == "img2col" for step in state.steps)),
        *copied,
        float(state.consumer >= 0),
        float(state.parallel),
        float(sum(step.name in TILES for step in state.steps)),
        float(any(step.name == "interchange" for step in state.steps)),
        _log(tile.points),
        _log(_bytes(tile)),
        _log(original.points / tile.points),
        _log(_bytes(levels[1])),
        _log(_bytes(levels[min(2, len(levels) - 1)])),
        _log(math.prod(reduced)),
        _log(tile.points / math.prod(reduced)),
        _log(lanes),
        math.gcd(lanes, 16) / 16.0,
    ]
    figures += alignments(levels[0])
    inner = [loop for loop, bound in enumerate(tile.bounds) if bound > 1]
    trips = [whole / part for whole, part in zip(levels[-2].bounds, tile.bounds, strict=True)]
    outer = [loop for loop, count in enumerate(trips) if count > 1]
    figures += _loops(tile, inner, [float(bound) for bound in tile.bounds])
    figures += _loops(tile, outer, trips)
    return figures


def _levels(original: Operation, state: Scheduled) -> tuple[list[Operation], list[float]]:
    """Return an operation as a whole and within each of its tiles, and the sizes of its packed operands.

    All levels have the loops in their current order. The last level is the operation as it is now: for a
    fused operation, the part that its consumer needs. The sizes are those of the packed copies of two
    operands, 0 for none.
    """
    levels, copied = [original], [0.0, 0.0]
    for step in state.steps:
        if step.name == "img2col":
            levels = [as_matmul(original)]
        elif step.name == "interchange":
            levels = [level.interchanged(step.numbers) for level in levels]
        elif step.name in TILES:
            levels.append(levels[-1].tiled(step.numbers))
        elif step.name == "pack":
            [operand] = step.numbers
            read = levels[-1].loads[operand].extents(levels[-1].bounds)
            copied[operand] = 1.0 + _log(math.prod(read))
    return [levels[0], *levels[1:-1], state.operation], copied


def _lanes(state: Scheduled) -> int:
    """Return the extent of the tile along the dimension of its vectors, or along the result's last one."""
    forms = state.operation.store.forms
    place = state.steps[-1].numbers[0] if state.vectorised else 0
    if place >= len(forms):
        return 1
    form = forms[-1 - place]
    return max(
        (bound for bound, coefficient in zip(state.operation.bounds, form, strict=True) if coefficient),
        default=1,
    )


def alignments(operation: Operation) -> list[float]:
    """Return the logarithm of the greatest power of two, up to `PAGE`, that divides each row's length.

    The rows are those of two loads and the store. Rows of whole pages evict each other, however few of them
    are in use.
    """

    def figure(access: Access) -> float:
        extents = access.extents(operation.bounds)
        return _log(math.gcd(extents[-1], PAGE)) if len(extents) > 1 else 0.0

    return _of_accesses(operation, figure)


def _of_accesses(operation: Operation, figure: Callable[[Access], float]) -> list[float]:
    """Return a feature of two loads and the store, shape [3]; 0 for a missing load."""
    figures = [figure(access) for access in (*operation.loads[:2], operation.store)]
    return [*figures[:-1], *[0.0] * (3 - len(figures)), figures[-1]]


def _loops(operation: Operation, loops: Sequence[int], extents: Sequence[float]) -> list[float]:
    """Return extent, kind and strides of the innermost of some loops, shape [INNER * _LOOP]."""
    figures: list[float] = []
    for loop in list(reversed(loops))[:INNER]:
        strides = _of_accesses(operation, partial(_stride, loop=loop))
        figures += [_log(extents[loop]), 1.0 + operation.parallel[loop], *strides]
    return figures + [0.0] * (INNER * _LOOP - len(figures))


def _stride(access: Access, loop: int) -> float:
    """Return how a loop moves along a tensor: 0 not at all, 1 contiguously, 2 with a stride."""
    moved = [form[loop] for form in access.forms]
    if not any(moved):
        return 0.0
    return 1.0 if abs(moved[-1]) == 1 and not any(moved[:-1]) else 2.0
