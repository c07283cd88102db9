"""Transpositions: made where their result is packed, and by blocks of vectors. Imported in a child only.

torch keeps the weights of a layer in rows of what the layer reads, and a product reads columns of them. MLIR
would transpose all weights first, element by element.
"""

from collections.abc import Callable, Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir, linalg, scf, tensor, ub, vector
from irgym.envs.linalg.compiling.rows import index, pieces
from irgym.envs.linalg.compiling.slices import erase_unused, packed_slices, total

TRANSPOSE = "linalg.transpose"

SIDE = 8
"""Rows and columns of a block: so many vectors of AVX2 turn in registers."""

COLUMNS = 16
"""Columns that are read one after the other: those of a cache line."""


Place = dict[int, Any]
"""Indices by dimensions of what is transposed."""


def transpose_where_packed(transpose: Any) -> None:
    """Replace the copies of slices of a transposed tensor by transpositions of slices, on tensors."""
    source, order = transpose.operands[0], list(transpose.attributes["permutation"])
    for copy, offsets in packed_slices(transpose.results[0]):
        cut, target = copy.operands
        places = [order.index(dimension) for dimension in range(len(order))]
        sizes = [target.type.shape[place] for place in places]
        with ir.InsertionPoint(copy):
            unknown = ir.ShapedType.get_dynamic_stride_or_offset()
            begins = [total(offsets[place]) for place in places]
            read = tensor.extract_slice(
                ir.RankedTensorType.get(sizes, source.type.element_type),
                *(source, begins, [], []),
                *([unknown] * len(sizes), sizes, [1] * len(sizes)),
            )
            turned = linalg.transpose(read, outs=[target], permutation=order)
        copy.results[0].replace_all_uses_with(_only(turned))
        copy.erase()
        erase_unused(cut)
    if not list(transpose.results[0].uses):
        transpose.erase()


def _only(made: Any) -> Any:
    """Return the result of an operation, which some builders return themselves."""
    return made if isinstance(made, ir.Value) else made.results[0]


def transpose_by_blocks(transpose: Any) -> None:
    """Replace a transposition of floats that turns rows into columns by loops over blocks, on buffers."""
    source, target = transpose.operands
    order, kind = list(transpose.attributes["permutation"]), source.type.element_type
    last = len(order) - 1
    if not isinstance(kind, ir.F32Type) or order[last] == last or not all(map(_has_rows, (source, target))):
        return
    rows, columns = order[last], last
    outer = [dimension for dimension in range(last + 1) if dimension not in (rows, columns)]
    shape = source.type.shape

    def block(place: Place, height: int, width: int) -> None:
        """Turn a block of the source that begins at a place of it."""
        matrix = ub.poison(ir.VectorType.get([height, width], kind))
        for row in range(height):
            at = {**place, rows: arith.addi(place[rows], index(row))}
            read = vector.load(ir.VectorType.get([width], kind), source, _ordered(at, range(last + 1)))
            matrix = vector.insert(read, matrix, [], [row])
        turned = vector.transpose(ir.VectorType.get([width, height], kind), matrix, [1, 0])
        for column in range(width):
            at = {**place, columns: arith.addi(place[columns], index(column))}
            vector.store(vector.extract(turned, [], [column]), target, _ordered(at, order))

    def along(dimension: int, step: int, place: Place, body: Callable[[Place, int], None]) -> None:
        """Go along a dimension by steps, then along what is left of it."""
        whole = shape[dimension] - shape[dimension] % step
        if whole:
            loop = scf.ForOp(index(0), index(whole), index(step))
            with ir.InsertionPoint(loop.body):
                body({**place, dimension: loop.induction_variable}, step)
                scf.yield_([])
        if whole < shape[dimension]:
            body({**place, dimension: index(whole)}, shape[dimension] - whole)

    def strip(place: Place, width: int) -> None:
        def blocks(place: Place, height: int) -> None:
            for down, high in pieces(0, height, SIDE):
                for right, wide in pieces(0, width, SIDE):
                    at = {
                        **place,
                        rows: arith.addi(place[rows], index(down)),
                        columns: arith.addi(place[columns], index(right)),
                    }
                    block(at, high, wide)

        along(rows, SIDE, place, blocks)

    def nest(dimensions: Sequence[int], place: Place) -> None:
        if dimensions:
            along(dimensions[0], 1, place, lambda inner, _: nest(dimensions[1:], inner))
        else:
            along(columns, COLUMNS, place, strip)

    with ir.InsertionPoint(transpose):
        nest(outer, {})
    transpose.erase()


def _has_rows(buffer: Any) -> bool:
    """Say whether elements of a row follow one another."""
    return buffer.type.has_static_shape and buffer.type.get_strides_and_offset()[0][-1] == 1


def _ordered(place: Place, dimensions: Sequence[int]) -> list[Any]:
    return [place[dimension] for dimension in dimensions]
