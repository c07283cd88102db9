"""Types of tensors."""

from dataclasses import dataclass
from math import prod

UNUSED = "irgym.unused:"
"""What the names of values begin with that an operator could make and nothing uses, where a node is named by
them: its first output has no name in ONNX."""


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
