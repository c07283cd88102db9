"""Types of elements: those of the inputs, and the wider ones of the sums."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from irgym.base.errors import BackendError, ProgramError
from irgym.core.target import Target


@dataclass(frozen=True)
class Elements:
    """Types of the numbers of a contraction.

    Attributes:
        name: Name in URIs, `?dtype=f64`.
        inputs: Type of A and B, as numpy or `ml_dtypes` names it.
        sums: numpy's name for the type of the accumulators and of C.
        bytes: Bytes of an element of A and B.
        sum_bytes: Bytes of an element of C.
        exact: All whole numbers up to this one are sums without rounding.
        greatest: Greatest whole number that the inputs hold, with all smaller ones.
    """

    name: str
    inputs: str
    sums: str
    bytes: int
    sum_bytes: int
    exact: int
    greatest: int

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of an element of A, B and C."""
        return self.bytes, self.bytes, self.sum_bytes

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return self.sums == "int32"

    @property
    def input_type(self) -> "np.dtype[Any]":
        """Type of A and B in numpy.

        Raises:
            BackendError: The package that gives numpy the type is not installed.
        """
        if self.inputs != "bfloat16":
            return np.dtype(self.inputs)
        try:
            return np.dtype(import_module("ml_dtypes").bfloat16)
        except ImportError:
            raise BackendError("dtype=bf16 needs ml_dtypes: run pip install 'irgym[loops]'") from None

    @property
    def sum_type(self) -> "np.dtype[Any]":
        """Type of C in numpy."""
        return np.dtype(self.sums)

    def lanes(self, target: Target) -> int:
        """Return the lanes of a vector of sums."""
        return target.vector_bits // (8 * self.sum_bytes)

    def share(self) -> float:
        """Return the peak of these multiply-adds as a share of that of float32: fewer lanes, same cycles."""
        return 4 / self.sum_bytes


F32 = Elements("f32", "float32", "float32", 4, 4, 2**24, 2**24)
F64 = Elements("f64", "float64", "float64", 8, 8, 2**53, 2**53)
BF16 = Elements("bf16", "bfloat16", "float32", 2, 4, 2**24, 2**8)
I8 = Elements("i8", "int8", "int32", 1, 4, 2**31 - 1, 2**7 - 1)

ELEMENTS = {elements.name: elements for elements in (F32, F64, BF16, I8)}
"""The types by name, the default first."""


def elements_of(dtype: object) -> Elements:
    """Return the types of a contraction of inputs of a type, as numpy, torch or `ml_dtypes` spell it.

    Raises:
        ProgramError: There is none.
    """
    text = str(dtype).removeprefix("torch.")
    for elements in ELEMENTS.values():
        if text == elements.inputs:
            return elements
    named = ", ".join(elements.inputs for elements in ELEMENTS.values())
    raise ProgramError(f"loops has no programs of {text}: convert the inputs to one of {named}")
