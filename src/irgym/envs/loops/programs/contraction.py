"""Tensor contractions: C[...] = sum of A[...] * B[...] with affine accesses, float32, row-major."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Grammar, Option
from irgym.measure.arrays import aligned

Floats = NDArray[np.float32]

MAX_ELEMENTS = 1 << 28
"""Greatest number of elements of a tensor (1 GiB of float32)."""

MAX_AXES = 64
"""Greatest number of indices in the accesses of a tensor: the limit of axes in numpy."""

_FAMILIES = (
    Family("mm", "matrix product", sizes=("M", "N", "K")),
    Family("bmm", "one matrix product for each index of the batch", sizes=("B", "M", "N", "K")),
    Family(
        "conv",
        "2-D convolution, NHWC by RSCF",
        (Option("stride", 1),),
        sizes=("N", "H", "W", "C", "F", "R", "S"),
    ),
    # A size of 0 stands for a letter that is not given.
    Family("einsum", "any contraction", tuple(Option(dim, 0) for dim in ascii_lowercase), body="mk,kn->mn"),
)

GRAMMAR = Grammar(
    "loops",
    {family.name: family for family in _FAMILIES},
    form="loops://mm/MxNxK, loops://bmm/BxMxNxK, loops://conv/NxHxWxCxFxRxS or "
    "loops://einsum/mk,kn->mn?m=64&k=64&n=64",
)
"""The URIs of contractions."""


@dataclass(frozen=True)
class Axis:
    """One axis of a tensor: an affine expression of the loop indices, such as 2*h + r.

    Attributes:
        terms: Pairs of dimension and coefficient.
    """

    terms: tuple[tuple[str, int], ...]

    def text(self) -> str:
        """Return the expression, such as `2*h+r`."""
        return "+".join(dim if factor == 1 else f"{factor}*{dim}" for dim, factor in self.terms)

    def extent(self, sizes: Mapping[str, int]) -> int:
        """Return the number of elements that the accesses reach along the axis."""
        return 1 + sum(coefficient * (sizes[dim] - 1) for dim, coefficient in self.terms)


@dataclass(frozen=True)
class Contraction:
    """A contraction of two tensors into one, with a loop for each dimension.

    Attributes:
        uri: Canonical URI.
        dims: Dimensions and their sizes, in the order of the unscheduled nest, outermost first.
        a: Axes of the left input.
        b: Axes of the right input.
        c: Axes of the output, each a single dimension.
    """

    uri: str
    dims: tuple[tuple[str, int], ...]
    a: tuple[Axis, ...]
    b: tuple[Axis, ...]
    c: tuple[Axis, ...]

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
    def strides(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """For A, B and C: the stride in elements of each dimension, 0 if the tensor lacks it."""
        tables: list[dict[str, int]] = []
        for axes, shape in zip((self.a, self.b, self.c), self.shapes, strict=True):
            table = dict.fromkeys(self.sizes, 0)
            for place, axis in enumerate(axes):
                pitch = math.prod(shape[place + 1 :])
                for dim, coefficient in axis.terms:
                    table[dim] += coefficient * pitch
            tables.append(table)
        return tables[0], tables[1], tables[2]

    @cached_property
    def flops(self) -> int:
        """Floating-point operations: a multiplication and an addition for each point of the nest."""
        return 2 * math.prod(self.sizes.values())

    @cached_property
    def statement(self) -> str:
        """The innermost statement as text: `C[m, n] += A[m, k] * B[k, n]`."""
        a, b, c = (", ".join(axis.text() for axis in axes) for axes in (self.a, self.b, self.c))
        return f"C[{c}] += A[{a}] * B[{b}]"

    def random_inputs(self, seed: int) -> tuple[Floats, Floats]:
        """Return standard-normal inputs A and B, aligned to cache lines."""
        rng = np.random.default_rng(seed)
        a, b, _ = (aligned(shape) for shape in self.shapes)
        rng.standard_normal(out=a, dtype=np.float32)
        rng.standard_normal(out=b, dtype=np.float32)
        return a, b

    def einsum_operands(
        self, a: NDArray[np.floating], b: NDArray[np.floating]
    ) -> tuple[str, NDArray[np.floating], NDArray[np.floating]]:
        """Return subscripts for `numpy.einsum`, and strided views of the inputs, a dimension for each index.

        `numpy.einsum(subscripts, a_view, b_view)` computes the contraction. The views copy nothing.
        """
        letters = {dim: chr(ord("a") + place) for place, dim in enumerate(self.sizes)}
        names: list[str] = []
        views: list[NDArray[np.floating]] = []
        for axes, array in ((self.a, a), (self.b, b)):
            dims: list[str] = []
            shape: list[int] = []
            strides: list[int] = []
            for axis, pitch in zip(axes, array.strides, strict=True):
                for dim, coefficient in axis.terms:
                    dims.append(letters[dim])
                    shape.append(self.sizes[dim])
                    strides.append(pitch * coefficient)
            views.append(np.lib.stride_tricks.as_strided(array, shape, strides, writeable=False))
            names.append("".join(dims))
        output = "".join(letters[axis.terms[0][0]] for axis in self.c)
        return f"{names[0]},{names[1]}->{output}", views[0], views[1]

    def reference(self, a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the contraction computed by numpy in float64."""
        subscripts, left, right = self.einsum_operands(a.astype(np.float64), b.astype(np.float64))
        return np.einsum(subscripts, left, right, optimize=True)


def matmul(m: int, n: int, k: int) -> Contraction:
    """Return C[m,n] = sum over k of A[m,k] * B[k,n], in the order m, k, n."""
    return parse_uri(GRAMMAR.text("mm", (m, n, k)))


def convolution(
    batch: int, height: int, width: int, channels: int, filters: int, kernel: tuple[int, int], stride: int
) -> Contraction:
    """Return a 2-D convolution, NHWC by RSCF, of a padded input.

    Args:
        batch: Images.
        height: Rows of the output.
        width: Columns of the output.
        channels: Input channels.
        filters: Output channels.
        kernel: Rows and columns of the filter.
        stride: Step of the filter in both directions.
    """
    sizes = (batch, height, width, channels, filters, *kernel)
    return parse_uri(GRAMMAR.text("conv", sizes, values={"stride": stride}))


def parse_uri(uri: str) -> Contraction:
    """Parse a `loops:` URI.

    Raises:
        ProgramError: It is malformed; the message shows the correct form.
    """
    named = GRAMMAR.parse(uri)
    uri = named.uri
    if named.family == "einsum":
        given = {dim: size for dim, size in named.numbers.items() if size}
        return _build(uri, named.body, _in_spec_order(uri, named.body, given))
    if named.family == "conv":
        n, h, w, c, f, r, s = named.sizes
        factor = f"{stride}*" if (stride := named.numbers["stride"]) > 1 else ""
        sizes = {"n": n, "h": h, "w": w, "r": r, "s": s, "c": c, "f": f}
        return _build(uri, f"n[{factor}h+r][{factor}w+s]c,rscf->nhwf", sizes)
    *batch, m, n, k = named.sizes
    b = "b" if batch else ""
    sizes = dict(zip(b, batch, strict=True)) | {"m": m, "k": k, "n": n}
    return _build(uri, f"{b}mk,{b}kn->{b}mn", sizes)


def _axes(uri: str, text: str) -> tuple[Axis, ...]:
    """Parse the axes of a tensor: letters, or sums such as [2*h+r] in brackets."""
    axes: list[Axis] = []
    for word in re.findall(r"\[[^\]]*\]|.", text, re.DOTALL):
        terms: dict[str, int] = {}
        for term in word.strip("[]").split("+"):
            match = re.fullmatch(r"(?:([0-9]{1,6})\*)?([a-z])", term)
            if not match or (match.group(1) and int(match.group(1)) == 0) or match.group(2) in terms:
                raise ProgramError(
                    f"{uri!r} is malformed at {word!r}: an axis is a letter, or a sum such as [2*h+r]"
                )
            terms[match.group(2)] = int(match.group(1) or 1)
        axes.append(Axis(tuple(terms.items())))
    return tuple(axes)


def _tensors(uri: str, spec: str) -> tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]:
    match = re.fullmatch(r"([^,>-]+),([^,>-]+)->([^,>-]+)", spec)
    if not match:
        raise ProgramError(f"{uri!r} is malformed: write two inputs and an output, as in mk,kn->mn")
    a, b, c = (_axes(uri, text) for text in match.groups())
    return a, b, c


def _in_spec_order(uri: str, spec: str, options: Mapping[str, int]) -> dict[str, int]:
    """Return the dimensions in the order of the unscheduled nest: outputs, reductions, the last output."""
    a, b, c = _tensors(uri, spec)
    outputs = [dim for axis in c for dim, _ in axis.terms]
    inputs = [dim for axis in (*a, *b) for dim, _ in axis.terms]
    order = [*outputs[:-1], *(dim for dim in inputs if dim not in outputs), *outputs[-1:]]
    order = list(dict.fromkeys(order))
    missing, unused = set(order) - set(options), set(options) - set(order)
    if missing or unused:
        raise ProgramError(
            f"{uri!r} needs exactly one size for each letter: "
            + "; ".join(
                f"{what} {', '.join(sorted(letters))}"
                for what, letters in (("add", missing), ("remove", unused))
                if letters
            )
        )
    return {dim: options[dim] for dim in order}


def _build(uri: str, spec: str, sizes: dict[str, int]) -> Contraction:
    a, b, c = _tensors(uri, spec)
    if max(sum(len(axis.terms) for axis in axes) for axes in (a, b, c)) > MAX_AXES:
        raise ProgramError(f"{uri!r} is too large: no tensor may have more than {MAX_AXES} indices")
    outputs = [dim for axis in c for dim, _ in axis.terms]
    inputs = {dim for axis in (*a, *b) for dim, _ in axis.terms}
    plain = all(len(axis.terms) == 1 and axis.terms[0][1] == 1 for axis in c)
    if not plain or len(set(outputs)) != len(outputs) or not set(outputs) <= inputs:
        raise ProgramError(
            f"{uri!r} is malformed: each axis of the output is one letter of the inputs, used once"
        )
    contraction = Contraction(uri, tuple(sizes.items()), a, b, c)
    if max(math.prod(shape) for shape in contraction.shapes) > MAX_ELEMENTS:
        raise ProgramError(f"{uri!r} is too large: no tensor may have more than {MAX_ELEMENTS} elements")
    return contraction
