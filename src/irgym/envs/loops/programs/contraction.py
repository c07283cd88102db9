"""Contractions of one or two tensors: C[...] = sum of A[...] * B[...] with affine accesses, row-major."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Grammar, Option
from irgym.envs.loops.programs import convolution
from irgym.envs.loops.programs.axes import Axis
from irgym.envs.loops.programs.einsum import DOTS, Spec, parse_einsum, sizes_of, without_dots
from irgym.envs.loops.programs.elements import ELEMENTS, F32, Elements
from irgym.measure.arrays import aligned

Tensor: TypeAlias = NDArray[Any]
"""An array of one of the types of `ELEMENTS`."""

MAX_ELEMENTS = 1 << 28
"""Greatest number of elements of a tensor (1 GiB of float32)."""

MAX_PADDED = 1 << 24
"""Greatest number of elements of an input with its padding, which programs copy in every run."""

MAX_PRODUCTS = (2**31 - 1) // 2**14
"""Greatest number of products of two int8 in a sum, whose greatest is 2^14."""

MAX_AXES = 64
"""Greatest number of indices in the accesses of a tensor: the limit of axes in numpy."""

DTYPE = Option("dtype", F32.name, choices=tuple(ELEMENTS))
"""The option of all families that chooses the types of the elements."""

_FAMILIES = (
    Family("mm", "matrix product", (DTYPE,), sizes=("M", "N", "K")),
    Family("bmm", "one matrix product for each index of the batch", (DTYPE,), sizes=("B", "M", "N", "K")),
    *convolution.families((DTYPE,)),
    # A size of 0 stands for a letter that is not given.
    Family(
        "einsum",
        "any contraction of one or two tensors",
        (*(Option(dim, 0) for dim in ascii_letters), DTYPE),
        body="mk,kn->mn",
    ),
)

GRAMMAR = Grammar(
    "loops",
    {family.name: family for family in _FAMILIES},
    form="loops://mm/MxNxK, loops://bmm/BxMxNxK, loops://conv/NxHxWxCxFxRxS or "
    "loops://einsum/mk,kn->mn?m=64&k=64&n=64",
)
"""The URIs of contractions."""


@dataclass(frozen=True)
class Contraction:
    """A contraction of one or two tensors into one, with a loop for each dimension.

    Attributes:
        uri: Canonical URI.
        dims: Dimensions and their sizes, in the order of the unscheduled nest, outermost first.
        a: Axes of the left input.
        b: Axes of the right input; none if there is only one input, and B is the number 1.
        c: Axes of the output, each a single dimension.
        elements: Types of the elements.
        inputs: Number of inputs, 1 or 2.
    """

    uri: str
    dims: tuple[tuple[str, int], ...]
    a: tuple[Axis, ...]
    b: tuple[Axis, ...]
    c: tuple[Axis, ...]
    elements: Elements = F32
    inputs: int = 2

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension."""
        return dict(self.dims)

    @cached_property
    def reductions(self) -> frozenset[str]:
        """Dimensions of summation: those that the output lacks."""
        return frozenset(self.sizes) - {axis.terms[0][0] for axis in self.c}

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of A, B and C."""
        a, b, c = (tuple(axis.extent(self.sizes) for axis in axes) for axes in (self.a, self.b, self.c))
        return a, b, c

    @cached_property
    def padding(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For A, B and C: the zeros before and after each axis."""
        return tuple(tuple(axis.padding(self.sizes) for axis in axes) for axes in (self.a, self.b, self.c))

    @cached_property
    def padded(self) -> tuple[bool, bool, bool]:
        """Whether A, B and C have padding: programs then copy them into a buffer with zeros around."""
        a, b, c = (any(any(ends) for ends in of_tensor) for of_tensor in self.padding)
        return a, b, c

    @cached_property
    def layouts(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of A, B and C with their padding, in which the accesses stay."""
        a, b, c = (
            tuple(extent + sum(ends) for extent, ends in zip(shape, padding, strict=True))
            for shape, padding in zip(self.shapes, self.padding, strict=True)
        )
        return a, b, c

    @cached_property
    def strides(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """For A, B and C, padding included: the stride of each dimension in elements, 0 if there is none."""
        tables: list[dict[str, int]] = []
        for axes, shape in zip((self.a, self.b, self.c), self.layouts, strict=True):
            table = dict.fromkeys(self.sizes, 0)
            for place, axis in enumerate(axes):
                pitch = math.prod(shape[place + 1 :])
                for dim, coefficient in axis.terms:
                    table[dim] += coefficient * pitch
            tables.append(table)
        return tables[0], tables[1], tables[2]

    @cached_property
    def origins(self) -> tuple[int, int, int]:
        """For A, B and C, padding included: the offset of the element that index 0 of all loops accesses."""
        found: list[int] = []
        for axes, shape, padding in zip((self.a, self.b, self.c), self.layouts, self.padding, strict=True):
            pitches = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
            found.append(
                sum(
                    (axis.offset + low) * pitch
                    for axis, (low, _), pitch in zip(axes, padding, pitches, strict=True)
                )
            )
        return found[0], found[1], found[2]

    @cached_property
    def flops(self) -> int:
        """Operations: an addition for each point of the nest, and with two inputs a multiplication."""
        return self.inputs * math.prod(self.sizes.values())

    @cached_property
    def statement(self) -> str:
        """The innermost statement as text: `C[m, n] += A[m, k] * B[k, n]`."""
        a, b, c = (", ".join(axis.text() for axis in axes) for axes in (self.a, self.b, self.c))
        return f"C[{c}] += A[{a}]" + (f" * B[{b}]" if self.inputs > 1 else "")

    def random_inputs(self, seed: int) -> tuple[Tensor, Tensor]:
        """Return standard-normal inputs A and B, aligned to cache lines; integers of the whole range.

        With one input, B is 1.
        """
        rng = np.random.default_rng(seed)
        a, b = (self._drawn(rng, shape) for shape in self.shapes[:2])
        return a, b if self.inputs > 1 else self.unit

    def _drawn(self, rng: np.random.Generator, shape: Sequence[int]) -> Tensor:
        kind = self.elements.input_type
        array = aligned(shape, kind)
        if self.elements.whole:
            array[...] = rng.integers(-128, 128, array.shape)
        elif kind == np.float32:
            rng.standard_normal(out=array, dtype=np.float32)
        elif kind == np.float64:
            rng.standard_normal(out=array)
        else:
            array[...] = rng.standard_normal(array.shape, dtype=np.float32).astype(kind)
        return array

    @property
    def unit(self) -> Tensor:
        """The number 1, which B is if there is one input."""
        array = aligned((), self.elements.input_type)
        array[...] = 1
        return array

    def with_padding(self, operand: int, array: NDArray[Any]) -> NDArray[Any]:
        """Return A (0) or B (1) with its padding, a copy if it has any."""
        return np.pad(array, self.padding[operand]) if self.padded[operand] else array

    def view(self, operand: int, laid_out: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
        """Return the dimensions of A (0) or B (1), and a strided view with an axis for each, without copying.

        Args:
            operand: The input.
            laid_out: Its array with its padding, contiguous.
        """
        dims: list[str] = []
        strides: list[int] = []
        for axis, pitch in zip((self.a, self.b)[operand], laid_out.strides, strict=True):
            for dim, coefficient in axis.terms:
                dims.append(dim)
                strides.append(pitch * coefficient)
        start = laid_out.reshape(-1)[self.origins[operand] :]
        shape = [self.sizes[dim] for dim in dims]
        return dims, np.lib.stride_tricks.as_strided(start, shape, strides, writeable=False)

    def einsum_operands(self, *arrays: NDArray[Any]) -> tuple[str, list[NDArray[Any]]]:
        """Return subscripts for `numpy.einsum`, and strided views of the inputs, a dimension for each index.

        `numpy.einsum(subscripts, *views)` computes the contraction. Only padded inputs are copied.
        """
        laid_out = [
            # This would give an array without axes one.
            self.with_padding(operand, np.ascontiguousarray(array).reshape(array.shape))
            for operand, array in enumerate(arrays[: self.inputs])
        ]
        return self.einsum_on(*laid_out)

    def einsum_on(self, *laid_out: NDArray[Any]) -> tuple[str, list[NDArray[Any]]]:
        """Return the same of contiguous inputs that have their padding, without copying."""
        letters = dict(zip(self.sizes, ascii_letters, strict=False))
        names: list[str] = []
        views: list[NDArray[Any]] = []
        for operand, array in enumerate(laid_out):
            dims, view = self.view(operand, array)
            names.append("".join(letters[dim] for dim in dims))
            views.append(view)
        output = "".join(letters[axis.terms[0][0]] for axis in self.c)
        return f"{','.join(names)}->{output}", views

    def reference(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
        """Return the contraction computed by numpy in float64."""
        subscripts, views = self.einsum_operands(a.astype(np.float64), b.astype(np.float64))
        return np.asarray(np.einsum(subscripts, *views, optimize=True), np.float64)


def matmul(m: int, n: int, k: int) -> Contraction:
    """Return C[m,n] = sum over k of A[m,k] * B[k,n], in the order m, k, n."""
    return parse_uri(GRAMMAR.text("mm", (m, n, k)))


def parse_uri(uri: str) -> Contraction:
    """Parse a `loops:` URI.

    Raises:
        ProgramError: It is malformed; the message shows the correct form.
    """
    named = GRAMMAR.parse(_without_dots(uri))
    uri, elements = named.uri, ELEMENTS[str(named.options["dtype"])]
    if named.family == "einsum":
        given = {dim: size for dim, size in named.numbers.items() if size}
        spec = parse_einsum(uri, named.body)
        dtype = {"dtype": elements.name}
        uri = GRAMMAR.text(
            "einsum", body=spec.text(), values={**dict.fromkeys(ascii_letters, 0), **given, **dtype}
        )
        return _build(uri, spec, sizes_of(uri, spec, given), elements)
    if found := convolution.convolution_of(named):
        spec, sizes = convolution.build(named, found)
        return _build(uri, spec, sizes, elements)
    *batch, m, n, k = named.sizes
    b = "b" if batch else ""
    sizes = dict(zip(b, batch, strict=True)) | {"m": m, "k": k, "n": n}
    return _build(uri, parse_einsum(uri, f"{b}mk,{b}kn->{b}mn"), sizes, elements)


def _without_dots(uri: str) -> str:
    """Return the URI of an einsum with letters in place of `...`, whose sizes stand in `...=2x8`."""
    match = re.fullmatch(r"(loops://einsum/)([^?]*)\?(.*)", uri, re.DOTALL)
    words = match[3].split("&") if match else []
    sized = [word for word in words if word.startswith(f"{DOTS}=")]
    if match is None or not sized:
        return uri
    if len(sized) > 1 or not re.fullmatch(r"\.\.\.=[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", sized[0]):
        raise ProgramError(f"{uri!r} is malformed: write the sizes of the dots once, as in ...=8 or ...=2x8")
    batch = [int(size) for size in sized[0].removeprefix(f"{DOTS}=").split("x")]
    others = [word for word in words if word not in sized]
    spec, sizes = without_dots(uri, "".join(match[2].split()), batch)
    return f"{match[1]}{spec}?" + "&".join([*others, *(f"{dim}={size}" for dim, size in sizes.items())])


def _build(uri: str, spec: Spec, sizes: Mapping[str, int], elements: Elements) -> Contraction:
    a, b, c = spec.inputs[0], (*spec.inputs, ())[1], spec.output
    if max(sum(len(axis.terms) for axis in axes) for axes in (a, b, c)) > MAX_AXES:
        raise ProgramError(f"{uri!r} is too large: no tensor may have more than {MAX_AXES} indices")
    if not sizes:
        raise ProgramError(f"{uri!r} has no loop: name at least one letter in an input, as in i,i->")
    outputs = [dim for axis in c for dim, _ in axis.terms]
    inputs = {dim for axis in (*a, *b) for dim, _ in axis.terms}
    plain = all(axis.terms and axis == Axis(((axis.terms[0][0], 1),)) for axis in c)
    if not plain or len(set(outputs)) != len(outputs) or not set(outputs) <= inputs:
        raise ProgramError(
            f"{uri!r} is malformed: each axis of the output is one letter of the inputs, used once"
        )
    contraction = Contraction(uri, tuple(sizes.items()), a, b, c, elements, len(spec.inputs))
    _check_axes(contraction)
    most = 4 * MAX_ELEMENTS // max(4, elements.sum_bytes)
    if max(math.prod(shape) for shape in (*contraction.shapes, *contraction.layouts)) > most:
        raise ProgramError(f"{uri!r} is too large: no tensor may have more than {most} elements")
    products = math.prod(contraction.sizes[dim] for dim in contraction.reductions)
    if elements.whole and products > MAX_PRODUCTS:
        raise ProgramError(
            f"{uri!r} has sums of {products} products, and int32 holds those of {MAX_PRODUCTS}: shorten them"
        )
    for padded, layout in zip(contraction.padded, contraction.layouts, strict=True):
        if padded and math.prod(layout) > MAX_PADDED:
            raise ProgramError(
                f"{uri!r} is too large: an input with its padding may have at most {MAX_PADDED} elements; "
                "pad it yourself, and leave out the padding"
            )
    return contraction


def _check_axes(contraction: Contraction) -> None:
    """Make sure that every axis of the inputs is read, and that reads outside are meant.

    Raises:
        ProgramError: One is not.
    """
    for axis in (*contraction.a, *contraction.b):
        low, high = axis.reach(contraction.sizes)
        if high < 0 or (axis.size is not None and low >= axis.size):
            raise ProgramError(
                f"{contraction.uri!r} reads nothing but zeros along [{axis.text()}]: change its offset"
            )
        if low < 0 and axis.size is None:
            raise ProgramError(
                f"{contraction.uri!r} reads index {low} along [{axis.text()}]: give the axis a size, as in "
                f"[{axis.text()}:{high + 1}], to have zeros outside of it, or raise its offset by {-low}"
            )
