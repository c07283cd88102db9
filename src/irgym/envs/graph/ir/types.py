"""Types of tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from irgym.envs.graph.ir.sizes import any_open, at

UNUSED = "irgym.unused:"
"""Prefix of names for unused first outputs: unnamed in ONNX, but a node is named by its first output."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape.

    Attributes:
        dtype: numpy's name, such as `float32`; `str` for strings.
        shape: Sizes; some may be open, see `irgym.envs.graph.ir.sizes`.
        size: Number of elements.
    """

    dtype: str
    shape: tuple[int, ...]
    size: int = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the derived fields, which are read often."""
        object.__setattr__(self, "size", prod(self.shape))
        object.__setattr__(self, "_hash", hash((self.dtype, self.shape)))

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
    def bytes(self) -> int:
        """Bytes of all elements; for strings, of the pointers to them."""
        return self.size * (np.dtype(self.dtype).itemsize or POINTER)


POINTER = 8
"""Bytes of a pointer."""
