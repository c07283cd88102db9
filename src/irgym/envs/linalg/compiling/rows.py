"""Rows of tensors and buffers, read and written as vectors. Imported in a child only."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import arith, ir, scf, ub, vector


def index(value: int) -> Any:
    """Return a constant index."""
    return arith.constant(ir.IndexType.get(), value)


def loop(iterations: int, step: int, body: Callable[[Any], None]) -> None:
    """Write a loop; `body` gets the induction variable."""
    made = scf.ForOp(index(0), index(iterations), index(step))
    with ir.InsertionPoint(made.body):
        body(made.induction_variable)
        scf.yield_([])


def pieces(begin: int, end: int, widest: int) -> Iterator[tuple[int, int]]:
    """Yield the vectors that cover a part of a row: the start of each, and its lanes, a power of two.

    Args:
        begin: Start of the part.
        end: End of the part.
        widest: Greatest number of lanes.
    """
    while begin < end:
        lanes = min(widest, 1 << ((end - begin).bit_length() - 1))
        yield begin, lanes
        begin += lanes


def read(tensor: Any, place: Sequence[Any], lanes: int) -> Any:
    """Return `lanes` elements of a row, starting at `place`."""
    kind = ir.VectorType.get([lanes], tensor.type.element_type)
    return vector.transfer_read(kind, tensor, place, _last(tensor), ub.poison(kind.element_type), [True])


def read_every_second(tensor: Any, place: Sequence[Any], lanes: int) -> Any:
    """Return `lanes` elements of a row with stride 2, without reading past the last one."""
    elements = read(tensor, place, lanes)
    if lanes == 1:
        return elements
    *outer, begin = place
    rest = read(tensor, [*outer, arith.addi(begin, index(lanes - 1))], lanes)
    return vector.shuffle(elements, rest, [2 * lane + (2 * lane >= lanes) for lane in range(lanes)])


def write(values: Any, tensor: Any, place: Sequence[Any]) -> Any:
    """Write elements to a row, starting at `place`, and return the new tensor."""
    return vector.transfer_write(tensor.type, values, tensor, place, _last(tensor), [True])


def _last(tensor: Any) -> Any:
    return ir.AffineMap.get_minor_identity(tensor.type.rank, 1)
