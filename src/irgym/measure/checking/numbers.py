"""Numbers of an array for comparisons: floating-point ones in double precision, integers unchanged."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]

FORMATS = {
    "f64": (11, 52),
    "f32": (8, 23),
    "f16": (5, 10),
    "bf16": (8, 7),
    "f8E5M2": (5, 2),
    "f8E4M3": (4, 3),
    "f8E4M3FN": (4, 3),
    "f8E4M3FNUZ": (4, 3),
    "f8E4M3B11FNUZ": (4, 3),
    "f8E5M2FNUZ": (5, 2),
    "f8E3M4": (3, 4),
}
"""Bits of exponent and mantissa of floating-point types, by their names in MLIR."""


def is_fractional(dtype: np.dtype[Any]) -> bool:
    """Say whether a type holds floating-point or complex numbers, those of `ml_dtypes` included."""
    # numpy files all types of ml_dtypes under void.
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name)


def doubles(values: Array) -> Doubles:
    """Return floating-point numbers in double precision; complex numbers as their parts, shape [2, ...]."""
    if values.dtype.kind == "c":
        return np.stack([np.real(values), np.imag(values)]).astype(np.float64)
    with np.errstate(invalid="ignore"):  # signalling NaN of the narrow types
        return values.astype(np.float64)


def whole(values: Array) -> Array:
    """Return integers, and booleans as bytes, so that a byte of 165 differs from `True`."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    return values.astype(np.int8) if values.dtype.kind == "V" else values  # int4 and the like of ml_dtypes


def numbers_of(values: Array) -> Array:
    """Return the numbers of an array: doubles for floating-point types, integers unchanged."""
    return doubles(values) if is_fractional(values.dtype) else whole(values)


def finite(values: Array) -> Bools:
    """Return which numbers are finite; integers and booleans always are."""
    if not is_fractional(values.dtype):
        return np.ones(values.shape, np.bool_)
    return np.isfinite(values if values.dtype.kind in "fc" else doubles(values))


def precision(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the machine epsilon of a floating-point type, and its least normal number."""
    finfo: Any = np.finfo
    if dtype.kind == "V":
        import ml_dtypes

        finfo = ml_dtypes.finfo
    info = finfo(dtype)
    return float(info.eps), float(info.tiny)


def same_bits(first: Array, second: Array) -> bool:
    """Say whether two arrays of the same shape and type agree in every bit."""
    return np.array_equal(_bytes(first), _bytes(second))


def _bytes(values: Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
