"""Types of tensors."""

from dataclasses import dataclass
from math import prod

import numpy as np


@dataclass(frozen=True, slots=True)
class TensorType:
    """Type of the elements, and sizes.

    Attributes:
        dtype: numpy's name, such as `float32`; `str` for texts.
        shape: Sizes; all are known.
    """

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements; of texts, of what points to them."""
        return self.size * (np.dtype(self.dtype).itemsize or POINTER)


POINTER = 8
"""Bytes of a pointer."""
