"""Types of tensors."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

UNUSED = "irgym.unused:"
"""What the names of values begin with that an operator could make and nothing uses, where a node is named by
them: its first output has no name in ONNX."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Type of the elements, and sizes.

    Attributes:
        dtype: numpy's name, such as `float32`; `str` for texts.
        shape: Sizes; all are known.
        size: Number of elements.
    """

    dtype: str
    shape: tuple[int, ...]
    size: int = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find out what is asked of a type most often."""
        object.__setattr__(self, "size", prod(self.shape))
        object.__setattr__(self, "_hash", hash((self.dtype, self.shape)))

    def __hash__(self) -> int:
        """Return the hash of its parts."""
        return self._hash

    def __reduce__(self) -> tuple[type["TensorType"], tuple[str, tuple[int, ...]]]:
        """Return what it is made of again in another process, where texts have other hashes."""
        return TensorType, (self.dtype, self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements; of texts, of what points to them."""
        return self.size * (np.dtype(self.dtype).itemsize or POINTER)


POINTER = 8
"""Bytes of a pointer."""
