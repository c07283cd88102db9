"""Slices of tensors that are packed. Imported in a child only."""

from collections.abc import Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir, tensor
from irgym.envs.linalg.compiling.rows import index

SLICE = "tensor.extract_slice"
COPY = "bufferization.materialize_in_destination"

Terms = list[Any]
"""An offset, as a sum of numbers and values."""


def packed_slices(value: Any) -> list[tuple[Any, list[Terms]]]:
    """Return the copies of slices of a tensor, nested slices included, each with its offsets."""
    return _packed(value, [])


def _packed(value: Any, offsets: Sequence[Terms]) -> list[tuple[Any, list[Terms]]]:
    found: list[tuple[Any, list[Terms]]] = []
    for use in value.uses:
        user = use.owner.operation
        if user.name == SLICE and _is_dense(user.opview) and user.results[0].type.rank == value.type.rank:
            found += _packed(user.results[0], [*offsets, _offsets(user.opview)])
        elif user.name == COPY and offsets:
            found.append((user, [list(terms) for terms in zip(*offsets, strict=True)]))
    return found


def _is_dense(cut: Any) -> bool:
    """Say whether a slice has unit strides; slices of tiles do, those of a program may not."""
    return set(cut.static_strides) == {1}


def _offsets(cut: Any) -> list[Any]:
    """Return the offsets of a slice, as numbers and values."""
    dynamic, unknown = iter(cut.offsets), ir.ShapedType.get_dynamic_stride_or_offset()
    return [next(dynamic) if offset == unknown else offset for offset in cut.static_offsets]


def sliced(source: Any, begins: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return a slice of a tensor with the given start and sizes."""
    kind = ir.RankedTensorType.get(sizes, source.type.element_type)
    static_begins = [ir.ShapedType.get_dynamic_stride_or_offset()] * len(sizes)
    return tensor.extract_slice(kind, source, begins, [], [], static_begins, sizes, [1] * len(sizes))


def erase_unused(cut: Any) -> None:
    """Erase a slice without uses, and the slices that it is taken from."""
    while cut.owner.name == SLICE and not list(cut.uses):
        owner, cut = cut.owner, cut.owner.operands[0]
        owner.operation.erase()


def total(terms: Sequence[Any]) -> Any:
    """Return an offset as one value."""
    found = index(sum(term for term in terms if isinstance(term, int)))
    for term in terms:
        found = found if isinstance(term, int) else arith.addi(found, term)
    return found
