"""Random arguments for HLO modules. Imports jaxlib: for child processes only."""

# jaxlib has no type stubs.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]

from irgym.base.errors import ProgramError
from irgym.measure.checking.numbers import Array, is_fractional

_KEY_WORDS = (2, 4)
_MOST_IDS = 1000

# Operations between a parameter and a root of it: a second moment is scaled, added to and divided first.
_CARRIES_SIGN = {
    "kAdd",
    "kBitcast",
    "kBroadcast",
    "kConcatenate",
    "kConvert",
    "kCopy",
    "kDivide",
    "kGetTupleElement",
    "kMultiply",
    "kReshape",
    "kSlice",
    "kTranspose",
}
_ROOTS = {"kLog", "kPower", "kRsqrt", "kSqrt"}


@dataclass(frozen=True)
class Parameter:
    """One array that a module takes; each element of a tuple is a parameter.

    Attributes:
        shape: Its dimensions.
        dtype: Its numpy type, from `ml_dtypes` where numpy has none.
        positive: Whether the module takes its root or logarithm, as of an optimiser's second moments.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    positive: bool = False

    @property
    def fractional(self) -> bool:
        """Whether its elements are floating-point or complex numbers."""
        return is_fractional(self.dtype)


def parameters(proto: bytes) -> list[Parameter]:
    """Return the arrays that a module takes, in order.

    Args:
        proto: Serialized HloModuleProto.

    Raises:
        ProgramError: One has no fixed shape, or is not an array.
    """
    computation = _hlo.XlaComputation(proto)
    shapes = computation.program_shape().parameter_shapes()
    positive = _under_roots(computation)
    found: list[Parameter] = []
    for number, shape in enumerate(shapes):
        for leaf in _leaves(shape):
            if not leaf.is_array():
                raise ProgramError(f"parameter {number} is a token: remove side effects from the program")
            if leaf.is_dynamic():
                raise ProgramError(f"parameter {number} has a dynamic shape: fix its dimensions")
            dtype = np.dtype(leaf.numpy_dtype())
            found.append(Parameter(tuple(leaf.dimensions()), dtype, number in positive))
    return found


def random_arguments(proto: bytes, seed: int, positive: bool = False, scale: float = 1.0) -> list[Array]:
    """Return random arguments for a module.

    - Floating-point arrays of two dimensions or more are normal. Their deviation preserves the scale of a
      product: 1 over the square root of all dimensions but the last, between 0.05 and 1.
    - Vectors are normal with deviation 0.1; scalars (learning rates, temperatures) uniform from 0.05 to 1.
    - Parameters under a root or a logarithm are made positive and kept away from zero.
    - Integer arrays stay below the smallest dimension of the floating-point parameters, so they are valid
      indices of any table. Integer scalars are 1 or 2, since Adam divides by zero at a step count of 0.
    - Unsigned 32-bit arrays with rows of 2 or 4 are taken to be random keys and get arbitrary bits.

    Args:
        proto: Serialized HloModuleProto.
        seed: Seed of the arguments.
        positive: Whether to make all floating-point numbers positive.
        scale: Factor of the floating-point numbers.

    Raises:
        ProgramError: A parameter has no fixed shape, or is not an array.
    """
    rng = np.random.default_rng(seed)
    wanted = parameters(proto)
    sizes = [size for parameter in wanted if parameter.fractional for size in parameter.shape if size > 1]
    ids = min(min(sizes, default=2), _MOST_IDS)
    drawn = [_random(parameter, rng, ids, positive or parameter.positive) for parameter in wanted]
    return drawn if scale == 1.0 else [_scaled(array, scale) for array in drawn]


def perturbed(arguments: Sequence[Array], seed: int) -> list[Array]:
    """Return arguments whose floating-point elements are changed by about their last bit, up or down."""
    rng = np.random.default_rng(seed)
    return [_nudged(array, rng) if is_fractional(array.dtype) else array for array in arguments]


def turned(arguments: Sequence[Array]) -> list[Array]:
    """Return arguments with the elements of each in reverse order."""
    return [array.reshape(-1)[::-1].copy().reshape(array.shape) for array in arguments]


def without_greatest(arguments: Sequence[Array]) -> list[Array]:
    """Return arguments with the greatest element of each replaced by zero, or by one less in integers."""
    changed: list[Array] = []
    for array in arguments:
        other = array.copy()
        if array.size:
            # numpy cannot compare types of ml_dtypes.
            flat = array.reshape(-1)
            size = np.abs(flat.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
            place = int(np.argmax(size))
            zero = is_fractional(array.dtype) or array.dtype.kind == "b"
            other.reshape(-1)[place] = 0 if zero else max(int(flat[place]) - 1, 0)
        changed.append(other)
    return changed


def epsilon(dtype: np.dtype[Any]) -> float:
    """Return the distance from 1 to the next number of a floating-point or complex type."""
    return float(ml_dtypes.finfo(dtype).eps)


def _leaves(shape: Any) -> list[Any]:
    if not shape.is_tuple():
        return [shape]
    return [leaf for part in shape.tuple_shapes() for leaf in _leaves(part)]


def _under_roots(computation: Any) -> set[int]:
    """Return the numbers of the parameters that reach a root through scaling and adding only."""
    # Computations are in post order: the entry is last.
    entry = computation.get_hlo_module().computations()[-1]
    found: set[int] = set()
    for instruction in entry.instructions():
        if instruction.opcode.name == "kParameter" and _reaches_root(instruction):
            number = re.search(r" parameter\((\d+)\)", instruction.to_string())
            assert number is not None
            found.add(int(number[1]))
    return found


def _reaches_root(parameter: Any) -> bool:
    seen: set[str] = set()
    front = [parameter]
    while front:
        for user in front.pop().users():
            opcode = user.opcode.name
            if opcode in _ROOTS:
                return True
            if opcode in _CARRIES_SIGN and user.name not in seen and not _is_square(user):
                seen.add(user.name)
                front.append(user)
    return False


def _is_square(instruction: Any) -> bool:
    factors = [operand.name for operand in instruction.operands()]
    return instruction.opcode.name == "kMultiply" and factors[0] == factors[1]


def _random(parameter: Parameter, rng: np.random.Generator, ids: int, positive: bool) -> Array:
    if parameter.fractional:
        return _numbers(parameter, rng, positive)
    if parameter.dtype.kind == "b":
        return rng.integers(0, 2, parameter.shape).astype(parameter.dtype)
    if parameter.dtype == np.uint32 and parameter.shape and parameter.shape[-1] in _KEY_WORDS:
        return rng.integers(0, 1 << 32, parameter.shape, np.uint32)
    if not parameter.shape:
        # The narrowest integers cannot hold 2.
        return np.asarray(rng.integers(1, min(2, _greatest(parameter.dtype)) + 1)).astype(parameter.dtype)
    return rng.integers(0, min(ids - 1, _greatest(parameter.dtype)) + 1, parameter.shape).astype(
        parameter.dtype
    )


def _numbers(parameter: Parameter, rng: np.random.Generator, positive: bool) -> Array:
    if not parameter.shape:
        return np.asarray(rng.uniform(0.05, 1.0)).astype(parameter.dtype)
    deviation = 0.1
    if len(parameter.shape) > 1:
        deviation = min(max(prod(parameter.shape[:-1]), 1) ** -0.5, 1.0)
        deviation = max(deviation, 0.05)
    values: Array = rng.standard_normal(parameter.shape, np.float32)
    # This type has exponents only, no sign.
    if positive or parameter.dtype.name == "float8_e8m0fnu":
        values = np.abs(values) + np.float32(0.25)
    values *= np.float32(deviation)
    if parameter.dtype.kind == "c":
        values = values + 1j * deviation * rng.standard_normal(parameter.shape, np.float32)
    return values.astype(parameter.dtype)


def _scaled(array: Array, scale: float) -> Array:
    return _times(array, np.asarray(scale)) if is_fractional(array.dtype) else array


def _nudged(array: Array, rng: np.random.Generator) -> Array:
    signs = rng.integers(0, 2, array.shape, np.int8) * 2 - 1
    return _times(array, 1 + epsilon(array.dtype) * signs)


def _times(array: Array, factors: Array) -> Array:
    """Return a product in the type of the array, computed in float32 or wider."""
    wide = array if array.dtype.itemsize >= 4 else array.astype(np.float32)
    return np.asarray(wide * factors.astype(wide.dtype)).astype(array.dtype)


def _greatest(dtype: np.dtype[Any]) -> int:
    return int(ml_dtypes.iinfo(dtype).max)
