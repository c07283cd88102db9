"""Transpositions, moved to where their result is packed, and done by blocks. Imported in a child only.

torch stores a layer's weights in rows along the input, and a matrix product reads columns along it. MLIR
would transpose all weights first, element by element.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir, linalg, vector
from irgym.envs.linalg.compiling.rows import index, loop, pieces
from irgym.envs.linalg.compiling.slices import erase_unused, packed_slices, sliced, total

TRANSPOSE = "linalg.transpose"

SIDE = 8
"""Rows and columns of a block that is transposed in registers."""

COLUMNS = 16
"""Columns that are read in a row: a cache line."""


def transpose_where_packed(transpose: Any) -> None:
    """Replace copies of slices of a transposed tensor by transpositions of slices, on tensors."""
    source, order = transpose.operands[0], list(transpose.attributes["permutation"])
    places = [order.index(dimension) for dimension in range(len(order))]
    for copy, offsets in packed_slices(transpose.results[0]):
        cut, target = copy.operands
        with ir.InsertionPoint(copy):
            begins = [total(offsets[place]) for place in places]
            read = sliced(source, begins, [target.type.shape[place] for place in places])
            turned = linalg.transpose(read, outs=[target], permutation=order)
        copy.results[0].replace_all_uses_with(turned.results[0])
        copy.erase()
        erase_unused(cut)
    if not list(transpose.results[0].uses):
        transpose.erase()


def transpose_by_blocks(transpose: Any) -> None:
    """Replace a transposition of float rows to columns by loops over blocks, on buffers."""
    source, target = transpose.operands
    order = tuple(transpose.attributes["permutation"])
    last = len(order) - 1
    floats = isinstance(source.type.element_type, ir.F32Type)
    if floats and order[last] != last and _has_rows(source) and _has_rows(target):
        with ir.InsertionPoint(transpose):
            _Transposition(source, target, order).write()
        transpose.erase()


def _has_rows(buffer: Any) -> bool:
    """Say whether the elements of a row are contiguous."""
    return buffer.type.has_static_shape and buffer.type.get_strides_and_offset()[0][-1] == 1


Place = dict[int, Any]
"""Indices into the source, by dimension."""


@dataclass(frozen=True)
class _Transposition:
    """A transposition of buffers.

    Attributes:
        source: The buffer that is read.
        target: The buffer that is written.
        order: For each dimension of the target, the dimension of the source.
    """

    source: Any
    target: Any
    order: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The dimension of the source that becomes the last one."""
        return self.order[-1]

    @property
    def columns(self) -> int:
        """The last dimension of the source."""
        return len(self.order) - 1

    def write(self) -> None:
        """Write loops over all dimensions, with those of a block innermost."""
        outer = [dimension for dimension in range(self.columns) if dimension != self.rows]
        steps = [*((dimension, 1) for dimension in outer), (self.columns, COLUMNS), (self.rows, SIDE)]
        self._along(steps, {}, {})

    def _along(self, steps: Sequence[tuple[int, int]], place: Place, sizes: Mapping[int, int]) -> None:
        """Write loops over the remaining dimensions, each with a remainder after its whole steps.

        Args:
            steps: The remaining dimensions and their steps.
            place: Indices of the outer loops.
            sizes: Extents of the block along the dimensions of the outer loops.
        """
        if not steps:
            self._blocks(place, sizes)
            return
        (dimension, step), *others = steps
        bound = self.source.type.shape[dimension]
        whole = bound - bound % step

        def at(begin: Any, size: int) -> None:
            self._along(others, {**place, dimension: begin}, {**sizes, dimension: size})

        if whole:
            loop(whole, step, lambda begin: at(begin, step))
        if whole < bound:
            at(index(whole), bound - whole)

    def _blocks(self, place: Place, sizes: Mapping[int, int]) -> None:
        """Transpose a part of the source, block by block."""
        rows, columns = self.rows, self.columns
        for down, height in pieces(0, sizes[rows], SIDE):
            for right, width in pieces(0, sizes[columns], SIDE):
                begin = {**place, rows: _after(place[rows], down), columns: _after(place[columns], right)}
                self._block(begin, height, width)

    def _block(self, place: Place, height: int, width: int) -> None:
        """Transpose the block of `height` rows and `width` columns at a place."""
        rows, columns = self.rows, self.columns
        kind = ir.VectorType.get([width], self.source.type.element_type)
        read = [
            vector.load(kind, self.source, _ordered({**place, rows: _after(place[rows], row)}))
            for row in range(height)
        ]
        for column, values in enumerate(_turned(read)):
            at = _ordered({**place, columns: _after(place[columns], column)})
            vector.store(values, self.target, [at[dimension] for dimension in self.order])


def _turned(rows: Sequence[Any]) -> list[Any]:
    """Return the columns of a block of rows; the numbers of rows and columns are powers of two.

    Interleaving each row of the first half with the matching row of the second half, log2(width) times,
    transposes a square (perfect shuffles). Other blocks are moved element by element.
    """
    height, width = len(rows), rows[0].type.shape[0]
    if height != width:
        kind = ir.VectorType.get([height], rows[0].type.element_type)
        return [
            vector.from_elements(kind, [vector.extract(row, [], [column]) for row in rows])
            for column in range(width)
        ]
    low = [lane // 2 + (lane % 2) * width for lane in range(width)]
    held = list(rows)
    for _ in range(width.bit_length() - 1):
        pairs = zip(held[: width // 2], held[width // 2 :], strict=True)
        masks = (low, [lane + width // 2 for lane in low])
        held = [vector.shuffle(upper, lower, mask) for upper, lower in pairs for mask in masks]
    return held


def _after(value: Any, distance: int) -> Any:
    return arith.addi(value, index(distance)) if distance else value


def _ordered(place: Place) -> list[Any]:
    return [place[dimension] for dimension in range(len(place))]
