"""Weights: arrays of a model, and arrays that rules compute from them, lazily.

A weight is a small description, so the states of a search share the arrays. Its type is known immediately;
`Weights` computes the array when the model is run.
"""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.functions import FUNCTIONS
from irgym.envs.graph.ir.magnitudes import (
    ARITHMETIC,
    ELEMENTWISE,
    NOTHING,
    Magnitude,
    bounds_of,
    elements_stay_normal,
    format_of,
    magnitude_of,
    stays_normal,
)
from irgym.envs.graph.ir.sizes import Undecided, any_open, at
from irgym.envs.graph.ir.types import TensorType

Array: TypeAlias = NDArray[Any]


Plain: TypeAlias = int | float | tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """An array of the model's file.

    Attributes:
        name: Its name in the file.
        digest: Digest of type and content.
        type: Its type.
        greatest: The greatest magnitude of its elements; infinite if one is NaN, or if unknown.
        causal: Whether its last two dimensions are a causal mask. If additive, 0 up to the diagonal and at
            most -1e30 beyond it; if Boolean, true up to the diagonal.
        open: Whether, as a mask, it lets through at least one element in each row: a number above -1e30, or
            a true value. Rows lie along the last dimension.
        row: If all rows are equal, the digest of a row as a one-dimensional array; else empty.
        least: The least magnitude of its nonzero elements; infinite if there are none, 0 if unknown.
        zeros: Whether elements may be zero.
    """

    name: str
    digest: str
    type: TensorType
    greatest: float = math.inf
    causal: bool = False
    open: bool = False
    row: str = ""
    least: float = 0.0
    zeros: bool = True

    @property
    def magnitude(self) -> Magnitude:
        """Bounds of its elements."""
        return Magnitude(self.least, self.greatest, self.zeros, self.type.size)


@dataclass(frozen=True)
class Literal:
    """A small array that a rule made, such as the sizes of a split.

    Attributes:
        type: Its type.
        content: Its elements, in row-major order.
    """

    type: TensorType
    content: bytes

    @cached_property
    def digest(self) -> str:
        """Digest of type and content."""
        return digest_of(self.type, self.content)

    @property
    def array(self) -> Array:
        """The array, read-only."""
        return np.frombuffer(self.content, self.type.dtype).reshape(self.type.shape)

    @cached_property
    def greatest(self) -> float:
        """As `Stored.greatest`."""
        return greatest_of(self.array)

    @cached_property
    def magnitude(self) -> Magnitude:
        """Bounds of its elements."""
        return magnitude_of(self.array) if self.array.dtype.kind == "f" else NOTHING

    @property
    def small(self) -> Array:
        """Its elements."""
        return self.array

    @cached_property
    def causal(self) -> bool:
        """As `Stored.causal`."""
        return is_causal(self.array)

    @cached_property
    def open(self) -> bool:
        """As `Stored.open`."""
        return is_open(self.array)

    @cached_property
    def row(self) -> str:
        """As `Stored.row`."""
        return row_of(self.array)


@dataclass(frozen=True)
class Computed:
    """The result of a function of other weights.

    Attributes:
        function: Name in `FUNCTIONS`.
        arguments: Weights and plain values.
        type: Its type.
    """

    function: str
    arguments: tuple["Weight | Plain", ...]
    type: TensorType

    @cached_property
    def digest(self) -> str:
        """Digest of the function and its arguments; for a row of a known weight, of its elements."""
        first = self.arguments[0]
        if self.function == "row" and isinstance(first, Stored | Literal):
            return first.row
        parts = [
            argument.digest if isinstance(argument, Stored | Literal | Computed) else repr(argument)
            for argument in self.arguments
        ]
        return hashlib.blake2b("\0".join([self.function, *parts]).encode(), digest_size=16).hexdigest()

    @cached_property
    def small(self) -> Array | None:
        """Its elements if it is small and computed from literals alone; else None."""
        parts = [part.small if isinstance(part, Literal | Computed) else part for part in self.arguments]
        if any(part is None or isinstance(part, Stored) for part in parts) or self.type.size > _LOOKED_AT:
            return None
        with np.errstate(all="ignore"):  # overflows are detected and rejected later
            return np.asarray(FUNCTIONS[self.function].array(*parts), self.type.dtype)

    @cached_property
    def magnitude(self) -> Magnitude:
        """Bounds of its elements."""
        if self.small is not None:
            return magnitude_of(self.small) if self.small.dtype.kind == "f" else NOTHING
        return bounds_of(self.function, self._bounds, self._inner, self.type.size)

    @property
    def sound(self) -> bool:
        """Whether its elements are ordinary numbers wherever its parts are; see `magnitudes`."""
        kind = format_of(self.type.dtype)
        if kind is None or self.function not in ARITHMETIC:
            return True
        parts = [part.small for part in self.arguments if isinstance(part, Literal | Computed)]
        if self.function in ELEMENTWISE and self.small is not None:
            return elements_stay_normal(self.function, parts, self.small, kind)
        return stays_normal(self.function, self._bounds, self._inner, kind)

    @property
    def _bounds(self) -> list["Magnitude | Plain"]:
        return [
            part.magnitude if isinstance(part, Stored | Literal | Computed | Sizes) else part
            for part in self.arguments
        ]

    @property
    def _inner(self) -> int:
        """The number of products in each element of a matrix product; 1 for other functions."""
        first = self.arguments[0]
        if self.function == "matmul" and isinstance(first, Stored | Literal | Computed):
            return first.type.shape[-1]
        return 1


@dataclass(frozen=True)
class Sizes:
    """Whole numbers of which some are open sizes, such as the shape for a Reshape.

    Attributes:
        type: int64 or int32, of a fixed shape.
        elements: The numbers, in row-major order.
    """

    type: TensorType
    elements: tuple[int, ...]

    greatest = math.inf
    magnitude = NOTHING
    causal = False
    open = False
    row = ""
    small = None

    @cached_property
    def digest(self) -> str:
        """Digest of type and content."""
        return digest_of(self.type, repr(self.elements).encode())

    @property
    def array(self) -> Array:
        """The numbers, as objects."""
        made = np.empty(len(self.elements), object)
        made[:] = self.elements
        return made.reshape(self.type.shape)

    def at(self, values: Mapping[str, int]) -> "Literal":
        """Return the numbers for some values of symbols."""
        numbers = np.array([at(size, values) for size in self.elements], np.int64)
        return literal(numbers.reshape(self.type.shape), self.type.dtype)


Weight: TypeAlias = Stored | Literal | Computed | Sizes

_LOOKED_AT = 4096
"""Largest computed weight, in elements, whose elements are checked one by one."""


def digest_of(kind: TensorType, content: bytes | memoryview) -> str:
    """Return the digest of an array's type and content, hexadecimal."""
    digest = hashlib.blake2b(f"{kind.dtype}{kind.shape}".encode(), digest_size=16)
    digest.update(content)
    return digest.hexdigest()


SMALL = 64
"""Largest weight, in elements, whose values rules may read."""

MASKED = np.float32(-1e30)
"""Upper bound of the numbers that additive masks add to scores that a softmax shall ignore."""


def weight_of(name: str, array: Array) -> Stored | Literal:
    """Return an array of a model's file as a weight: a literal if it is small."""
    kind = TensorType(str(array.dtype), array.shape)
    if array.size <= SMALL and array.dtype.kind in "biuf":
        return Literal(kind, array.tobytes())
    plain = array.dtype.kind in "biufc" and array.flags.c_contiguous
    digest = digest_of(kind, array.reshape(-1).view(np.uint8).data if plain else array.tobytes())
    numbers = magnitude_of(array) if format_of(kind.dtype) else NOTHING
    greatest = numbers.greatest if array.dtype.kind == "f" else greatest_of(array)
    looks = is_causal(array), is_open(array), row_of(array)
    return Stored(name, digest, kind, greatest, *looks, numbers.least, numbers.zeros)


def greatest_of(array: Array) -> float:
    """Return the greatest magnitude of an array's elements; infinite if one is NaN."""
    if array.dtype.kind not in "biuf":
        return math.inf
    greatest = max(abs(float(array.max(initial=0))), abs(float(array.min(initial=0))))
    return math.inf if math.isnan(greatest) else greatest


def is_causal(array: Array) -> bool:
    """Say whether the last two dimensions of an array are a causal mask, repeated along all others."""
    if array.dtype.kind not in "bf" or array.ndim < 2 or array.shape[-1] != array.shape[-2] or not array.size:
        return False
    seen = np.tri(array.shape[-1], dtype=bool)
    if array.dtype.kind == "b":
        return bool((array == seen).all())
    return not array[..., seen].any() and bool((array[..., ~seen] <= MASKED).all())


def is_open(array: Array) -> bool:
    """Say whether an array, as a mask, lets through at least one element in each row."""
    if array.dtype.kind not in "bf" or not array.ndim or not array.size:
        return False
    highest = array.max(-1)
    return bool(highest.all() if array.dtype.kind == "b" else ((highest > MASKED) & (highest < np.inf)).all())


def row_of(array: Array) -> str:
    """Return the digest of a row of an array if all rows are equal; else an empty string."""
    if array.ndim < 2 or not array.size:
        return ""
    rows = array.reshape(-1, array.shape[-1])
    # Compare bits: 0 and -0 have different digests.
    if any(row.tobytes() != rows[0].tobytes() for row in rows[1:]):
        return ""
    return digest_of(TensorType(str(array.dtype), rows[0].shape), rows[0].tobytes())


def sizes_of(elements: Array, dtype: str = "int64") -> "Literal | Sizes":
    """Return a weight of whole numbers, of which some may be open sizes."""
    numbers = tuple(elements.reshape(-1))
    if any_open(numbers):
        return Sizes(TensorType(dtype, elements.shape), numbers)
    return literal(elements, dtype)


def literal(array: Any, dtype: str) -> Literal:
    """Return a small array as a weight.

    Raises:
        Undecided: An element is an open size.
    """
    values = np.asarray(array, dtype)
    return Literal(TensorType(dtype, values.shape), values.tobytes())


KEPT = 1 << 30
"""Bytes of computed arrays that are cached for later graphs."""


class Weights:
    """The arrays of weights, with a cache of the most recently used computed ones.

    Args:
        stored: The arrays of the model's file, by name.
        most: Capacity of the cache in bytes. A larger array is computed each time.
    """

    def __init__(self, stored: Mapping[str, Array], most: int = KEPT) -> None:
        self._stored = stored
        self._most = most
        self._computed: OrderedDict[str, Array] = OrderedDict()
        self._bytes = 0

    def array(self, weight: Weight) -> Array:
        """Return a weight's array."""
        if isinstance(weight, Stored):
            return self._stored[weight.name]
        if isinstance(weight, Literal):
            return weight.array
        if isinstance(weight, Sizes):
            raise Undecided(f"an array of {weight.elements}")
        known = self._computed.get(weight.digest)
        if known is not None:
            self._computed.move_to_end(weight.digest)
            return known
        arguments = [
            self.array(argument) if isinstance(argument, Stored | Literal | Computed) else argument
            for argument in weight.arguments
        ]
        found = np.asarray(FUNCTIONS[weight.function].array(*arguments), weight.type.dtype, order="C")
        self._keep(weight.digest, found)
        return found

    def _keep(self, digest: str, array: Array) -> None:
        """Cache a computed array and evict the least recently used ones."""
        self._computed[digest] = array
        self._bytes += array.nbytes
        while self._bytes > self._most:
            self._bytes -= self._computed.popitem(last=False)[1].nbytes
