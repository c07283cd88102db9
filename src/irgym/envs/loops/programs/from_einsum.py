"""Programs from numpy's einsum: subscripts, and arrays or shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any, cast

from irgym.base.errors import ProgramError
from irgym.envs.loops.programs.axes import Axis, parse_axes
from irgym.envs.loops.programs.contraction import GRAMMAR, parse_uri
from irgym.envs.loops.programs.einsum import DOTS, Spec, implicit_output, parse_einsum
from irgym.envs.loops.programs.elements import F32, elements_of


def from_einsum(subscripts: str, operands: Sequence[Any], sizes: Mapping[str, int]) -> str:
    """Return the URI of `numpy.einsum(subscripts, *operands)`.

    An axis of one element is read again for each index of a longer one of the same letter, as in numpy.

    Args:
        subscripts: The contraction, in numpy's notation or with affine axes in brackets.
        operands: One or two arrays, or their shapes.
        sizes: Sizes of letters that stand in brackets only.

    Raises:
        ProgramError: They do not fit together, or `loops` has no such program.
    """
    shapes = [_shape(operand) for operand in operands]
    types = {str(getattr(operand, "dtype", F32.inputs)) for operand in operands}
    if len(types) > 1:
        raise ProgramError(f"the inputs are of {' and '.join(sorted(types))}: convert them to one type")
    plain = "".join(subscripts.split())
    left, arrow, right = plain.partition("->")
    words = left.split(",")
    if len(words) != len(shapes):
        raise ProgramError(f"{subscripts!r} has {len(words)} inputs: give an array or a shape for each")
    most = max(
        (len(shape) - _rank(plain, word) for word, shape in zip(words, shapes, strict=True) if DOTS in word),
        default=0,
    )
    free = "".join(letter for letter in ascii_letters if letter not in plain)[:most]
    tensors = [_axes(plain, word, shape, free) for word, shape in zip(words, shapes, strict=True)]
    found = _sizes(plain, tensors, shapes, sizes)
    inputs = tuple(
        tuple(_fitted(axis, extent, found) for axis, extent in zip(axes, shape, strict=True))
        for axes, shape in zip(tensors, shapes, strict=True)
    )
    if arrow:
        output = parse_einsum(plain, f"{left.replace(DOTS, '')}->{right.replace(DOTS, free)}").output
    else:
        plain_tensors = [tuple(axis for axis in axes if axis.text() not in free) for axes in tensors]
        output = (*parse_axes(plain, free), *implicit_output(plain_tensors))
    values = {**dict.fromkeys(ascii_letters, 0), **found, "dtype": elements_of(types.pop()).name}
    return parse_uri(GRAMMAR.text("einsum", body=Spec(inputs, output).text(), values=values)).uri


def _shape(operand: Any) -> tuple[int, ...]:
    shape = getattr(operand, "shape", operand)
    if not isinstance(shape, Sequence) or not all(
        isinstance(size, int) for size in cast(Sequence[Any], shape)
    ):
        raise ProgramError(f"an input is an array or a shape such as (64, 32), not {operand!r}")
    found = tuple(cast(Sequence[int], shape))
    if min(found, default=1) < 1:
        raise ProgramError(f"an input of shape {found} has no elements: every size must be at least 1")
    return found


def _rank(uri: str, word: str) -> int:
    """Return the number of axes that a tensor has besides its dots."""
    return len(parse_axes(uri, word.replace(DOTS, "")))


def _axes(uri: str, word: str, shape: Sequence[int], free: str) -> tuple[Axis, ...]:
    """Return the axes of a tensor, with letters for its dots, which stand for the last of them."""
    dots = len(shape) - _rank(uri, word) if DOTS in word else 0
    axes = parse_axes(uri, word.replace(DOTS, free[len(free) - dots :], 1)) if dots >= 0 else ()
    if len(axes) != len(shape):
        raise ProgramError(
            f"{uri!r}: an input {word!r} cannot have {len(shape)} axes, as shape {tuple(shape)} has"
        )
    return axes


def _sizes(
    uri: str, tensors: Sequence[Sequence[Axis]], shapes: Sequence[Sequence[int]], given: Mapping[str, int]
) -> dict[str, int]:
    """Return the size of each letter, from the axes that are one letter."""
    found = dict(given)
    for axes, shape in zip(tensors, shapes, strict=True):
        for axis, extent in zip(axes, shape, strict=True):
            if _is_letter(axis):
                dim = axis.terms[0][0]
                if 1 not in (extent, found.get(dim, 1)) and found[dim] != extent:
                    raise ProgramError(f"{uri!r}: {dim} has the sizes {found[dim]} and {extent}: give it one")
                found[dim] = max(extent, found.get(dim, 1))
    return found


def _is_letter(axis: Axis) -> bool:
    return bool(axis.terms) and axis == Axis(((axis.terms[0][0], 1),))


def _fitted(axis: Axis, extent: int, sizes: Mapping[str, int]) -> Axis:
    """Return an axis with the extent of the array where the accesses tell another one."""
    if _is_letter(axis):
        return axis if sizes[axis.terms[0][0]] == extent else Axis(())
    if axis.size not in (None, extent):
        raise ProgramError(f"[{axis.text()}] is given a size, and the array has {extent}: leave out one")
    known = all(dim in sizes for dim, _ in axis.terms)
    low, high = axis.reach(sizes) if known else (0, -1)
    return replace(axis, size=None if known and low >= 0 and high + 1 == extent else extent)
