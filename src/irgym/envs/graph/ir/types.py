"""Types of tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np

from irgym.envs.graph.ir.forms import Form
from irgym.envs.graph.ir.sizes import Open, any_open, at

Key: TypeAlias = tuple[str, tuple[int | Form, ...]]

UNUSED = "irgym.unused:"
"""Prefix of names for unused first outputs: unnamed in ONNX, but a node is named by its first output."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape.

    Attributes:
        dtype: numpy's name, such as `float32`; `str` for strings.
        shape: Sizes; some may be open, see `irgym.envs.graph.ir.sizes`.
    """

    dtype: str
    shape: tuple[int, ...]
    _size: int | None = field(init=False, repr=False, compare=False, default=None)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash, which is read often."""
        object.__setattr__(self, "_hash", hash((self.dtype, self.shape)))

    @property
    def size(self) -> int:
        """Number of elements."""
        found = self._size
        if found is None:
            found = prod(self.shape)
            object.__setattr__(self, "_size", found)
        return found

    def __hash__(self) -> int:
        """Return the hash of the element type and the shape."""
        return self._hash

    def __reduce__(self) -> tuple[type["TensorType"], tuple[str, tuple[int, ...]]]:
        """Pickle the given fields alone; in another process strings have other hashes."""
        return TensorType, (self.dtype, self.shape)

    def at(self, sizes: Mapping[str, int]) -> "TensorType":
        """Return the type with open sizes fixed, by the names of their symbols."""
        if not any_open(self.shape):
            return self
        return TensorType(self.dtype, tuple(at(size, sizes) for size in self.shape))

    @property
    def key(self) -> Key:
        """The key of the type in caches; unlike comparing open sizes, comparing keys never fails."""
        return self.dtype, tuple([size.form if isinstance(size, Open) else size for size in self.shape])

    @staticmethod
    def of(key: Key) -> "TensorType":
        """Return the type that a key stands for."""
        dtype, sizes = key
        return TensorType(dtype, tuple([Open(size) if isinstance(size, Form) else size for size in sizes]))

    @property
    def bytes(self) -> int:
        """Bytes of all elements; for strings, of the pointers to them."""
        return self.size * (np.dtype(self.dtype).itemsize or POINTER)


POINTER = 8
"""Bytes of a pointer."""
