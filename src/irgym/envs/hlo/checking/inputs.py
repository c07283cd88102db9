"""Random arguments for HLO modules; imports jaxlib, so it runs in child processes."""

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

# What carries the sign of a factor on to a root: a second moment is scaled, added to and divided first.
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
    """One array that a module takes; the elements of a tuple are parameters of their own.

    Attributes:
        shape: Its dimensions.
        dtype: Its numpy type, from `ml_dtypes` where numpy has none.
        positive: Whether a root or a logarithm is taken of it, as of an optimiser's second moments.
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
        ProgramError: One has no fixed shape, or is no array.
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

    Floating-point arrays of two dimensions or more are normal with the deviation that keeps the scale of a
    product (1 over the root of the other dimensions, within 0.05 and 1), vectors normal with deviation 0.1,
    scalars (learning rates, temperatures) uniform between 0.05 and 1. What a root or a logarithm is taken of
    is made positive and kept away from zero. Integer arrays are below the least dimension of the
    floating-point parameters, so that they are valid indices of whatever table; integer scalars are 1 or 2,
    since a step count of 0 divides by zero in Adam. Unsigned 32-bit arrays with rows of 2 or 4 are taken for
    random keys, which have arbitrary bits.

    Args:
        proto: Serialized HloModuleProto.
        seed: Seed of the arguments.
        positive: Whether all floating-point numbers shall be positive.
        scale: Factor of the floating-point numbers.

    Raises:
        ProgramError: A parameter has no fixed shape, or is no array.
    """
    rng = np.random.default_rng(seed)
    wanted = parameters(proto)
    sizes = [size for one in wanted if one.fractional for size in one.shape if size > 1]
    ids = min(min(sizes, default=2), _MOST_IDS)
    drawn = [_random(one, rng, ids, positive or one.positive) for one in wanted]
    return drawn if scale == 1.0 else [_scaled(one, scale) for one in drawn]


def perturbed(arguments: Sequence[Array], seed: int) -> list[Array]:
    """Change floating-point arguments by about the last bit of each element, up or down."""
    rng = np.random.default_rng(seed)
    return [_nudged(one, rng) if is_fractional(one.dtype) else one for one in arguments]


def turned(arguments: Sequence[Array]) -> list[Array]:
    """Return arguments with the elements of each in reverse order."""
    return [one.reshape(-1)[::-1].copy().reshape(one.shape) for one in arguments]


def without_greatest(arguments: Sequence[Array]) -> list[Array]:
    """Return arguments with the greatest element of each one missing: zero, or one less."""
    changed: list[Array] = []
    for one in arguments:
        other = one.copy()
        if one.size:
            # Types of ml_dtypes have no order of their own in numpy.
            flat = one.reshape(-1)
            size = np.abs(flat.astype(np.complex128 if one.dtype.kind == "c" else np.float64))
            place = int(np.argmax(size))
            zero = is_fractional(one.dtype) or one.dtype.kind == "b"
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
    """Return the numbers of the parameters that reach a root by scaling and adding alone."""
    # Computations come in post order: the entry is the last.
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


def _random(one: Parameter, rng: np.random.Generator, ids: int, positive: bool) -> Array:
    if one.fractional:
        return _numbers(one, rng, positive)
    if one.dtype.kind == "b":
        return rng.integers(0, 2, one.shape).astype(one.dtype)
    if one.dtype == np.uint32 and one.shape and one.shape[-1] in _KEY_WORDS:
        return rng.integers(0, 1 << 32, one.shape, np.uint32)
    if not one.shape:
        # The narrowest integers hold no 2.
        return np.asarray(rng.integers(1, min(2, _greatest(one.dtype)) + 1)).astype(one.dtype)
    return rng.integers(0, min(ids - 1, _greatest(one.dtype)) + 1, one.shape).astype(one.dtype)


def _numbers(one: Parameter, rng: np.random.Generator, positive: bool) -> Array:
    if not one.shape:
        return np.asarray(rng.uniform(0.05, 1.0)).astype(one.dtype)
    deviation = 0.1
    if len(one.shape) > 1:
        deviation = min(max(prod(one.shape[:-1]), 1) ** -0.5, 1.0)
        deviation = max(deviation, 0.05)
    values: Array = rng.standard_normal(one.shape, np.float32)
    # A type of exponents alone has no sign.
    if positive or one.dtype.name == "float8_e8m0fnu":
        values = np.abs(values) + np.float32(0.25)
    values *= np.float32(deviation)
    if one.dtype.kind == "c":
        values = values + 1j * deviation * rng.standard_normal(one.shape, np.float32)
    return values.astype(one.dtype)


def _scaled(one: Array, scale: float) -> Array:
    return _times(one, np.asarray(scale)) if is_fractional(one.dtype) else one


def _nudged(one: Array, rng: np.random.Generator) -> Array:
    signs = rng.integers(0, 2, one.shape, np.int8) * 2 - 1
    return _times(one, 1 + epsilon(one.dtype) * signs)


def _times(one: Array, factors: Array) -> Array:
    """Return a product in the array's own type, computed in one that holds it."""
    wide = one if one.dtype.itemsize >= 4 else one.astype(np.float32)
    return np.asarray(wide * factors.astype(wide.dtype)).astype(one.dtype)


def _greatest(dtype: np.dtype[Any]) -> int:
    return int(ml_dtypes.iinfo(dtype).max)
