"""Vectors of every second element. Imported in a child only.

MLIR vectorises no operation that skips elements, such as poolings and convolutions with a stride of two. Here
such an operation gets strided slices, on which it skips nothing. Then MLIR vectorises it, and where elements
of a row were skipped, each vector is assembled from two contiguous ones.
"""

import itertools
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir, tensor, ub, vector
from irgym.envs.linalg.compiling.rows import index, read_every_second


def keep_every_second(generic: Any) -> None:
    """Give an operation strided slices as operands, without the elements that it skips, in place."""
    maps = [attribute.value for attribute in generic.attributes["indexing_maps"]]
    for place, indexing in enumerate(maps):
        results = [factored(result) for result in indexing.results]
        strides = [stride for _, stride in results]
        if any(stride > 1 for stride in strides):
            with ir.InsertionPoint(generic):
                generic.operands[place] = _every(generic.operands[place], strides)
            maps[place] = ir.AffineMap.get(indexing.n_dims, 0, [result for result, _ in results])
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(indexing) for indexing in maps]
    )


def factored(expression: Any) -> tuple[Any, int]:
    """Return an affine expression without its constant factor, and the factor."""
    if isinstance(expression, ir.AffineMulExpr) and isinstance(expression.rhs, ir.AffineConstantExpr):
        return expression.lhs, expression.rhs.value
    return expression, 1


def _every(source: Any, strides: list[int]) -> Any:
    """Return the slice of a tensor with the given strides."""
    sizes = [(size - 1) // stride + 1 for size, stride in zip(source.type.shape, strides, strict=True)]
    kind = ir.RankedTensorType.get(sizes, source.type.element_type)
    return tensor.extract_slice(kind, source, [], [], [], [0] * len(sizes), sizes, strides)


def put_together(read: Any) -> None:
    """Replace a read of a slice with stride 2 along its rows by contiguous reads.

    Other slices of the program are left alone, unless they start at 0 as those of `_every` do.
    """
    cut, kind = read.operands[0].owner, read.results[0].type
    if getattr(cut, "name", "") != "tensor.extract_slice":
        return
    *outer, last = cut.opview.static_strides
    whole = list(kind.shape) == list(cut.results[0].type.shape)
    begins = list(cut.opview.static_offsets) == [0] * len(kind.shape)
    straight = ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(kind.shape)))
    if last != 2 or not (whole and begins) or read.attributes["permutation_map"] != straight:
        return
    *rows, lanes = kind.shape
    with ir.InsertionPoint(read):
        result = ub.poison(kind)
        for row in itertools.product(*map(range, rows)):
            place = [index(position * step) for position, step in zip((*row, 0), (*outer, 1), strict=True)]
            elements = read_every_second(cut.operands[0], place, lanes)
            result = vector.insert(elements, result, [], row) if rows else elements
    read.results[0].replace_all_uses_with(result)
    read.erase()
