"""Copies between buffers, as loops over vectors. Imported in a child only.

MLIR would call a library function for a strided copy. LLVM cannot prove that source and target do not
overlap, so a plain loop would move single elements.
"""

from collections.abc import Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir, linalg, vector
from irgym.envs.linalg.compiling.rows import index, loop, pieces

UNROLLED = 256
"""Greatest number of bytes of a row copied without a loop."""

CHUNK = 64
"""Bytes of the vectors that copy longer rows: a cache line."""


def copy_as_loops(copy: Any) -> None:
    """Replace a `memref.copy` by loops."""
    source, target = copy.operands
    with ir.InsertionPoint(copy):
        if _by_rows(source.type) and _by_rows(target.type) and not (_dense(source) and _dense(target)):
            _copy_rows(source, target)
        else:
            linalg.copy(source, outs=[target])
    copy.erase()


def _by_rows(buffer: Any) -> bool:
    """Say whether the elements of a row are contiguous and have whole bytes."""
    kind = buffer.element_type
    whole = isinstance(kind, ir.FloatType) or (isinstance(kind, ir.IntegerType) and kind.width % 8 == 0)
    return (
        whole and buffer.rank > 0 and buffer.has_static_shape and buffer.get_strides_and_offset()[0][-1] == 1
    )


def _dense(buffer: Any) -> bool:
    """Say whether a buffer has no gaps: LLVM turns a copy of it into one `memcpy`."""
    strides, _ = buffer.type.get_strides_and_offset()
    steps = [1]
    for bound in reversed(buffer.type.shape[1:]):
        steps.append(steps[-1] * bound)
    return strides == steps[::-1]


def _copy_rows(source: Any, target: Any) -> None:
    shape, kind = source.type.shape, source.type.element_type

    def move(indices: Sequence[Any], lanes: int) -> None:
        moved = vector.load(ir.VectorType.get([lanes], kind), source, indices)
        vector.store(moved, target, indices)

    def row(outer: Sequence[Any]) -> None:
        begin, end = 0, shape[-1]
        widest = max(1, CHUNK * 8 // kind.width)
        if end * kind.width > UNROLLED * 8:
            begin = end - end % widest
            loop(begin, widest, lambda place: move([*outer, place], widest))
        for place, lanes in pieces(begin, end, widest):
            move([*outer, index(place)], lanes)

    def nest(outer: Sequence[Any]) -> None:
        if len(outer) == len(shape) - 1:
            row(outer)
        else:
            loop(shape[len(outer)], 1, lambda place: nest([*outer, place]))

    nest([])
