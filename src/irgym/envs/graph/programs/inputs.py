"""Random values for a model's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.metadata import PREFIX, read_ranges, read_sizes
from irgym.envs.graph.programs.ranges import derived_range, wraps

MASK = (0, 2)
"""The range of masks."""

FREE = (-8, 8)
"""The range of unrestricted integer inputs."""


@dataclass(frozen=True)
class Input:
    """An input of a model.

    Attributes:
        name: Its name in the model.
        dtype: The type of its elements.
        shape: Its shape.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def inputs_of(model: onnx.ModelProto, sizes: Mapping[str, int] | None = None) -> tuple[Input, ...]:
    """Return the inputs that a model must be given, in order.

    Args:
        model: The model.
        sizes: Sizes of its open dimensions; None for those that it is measured at.

    Raises:
        ProgramError: An input is no tensor of numbers or Booleans, or has open dimensions.
    """
    known = read_sizes(model) if sizes is None else sizes
    return tuple(_input(value, known) for value in given_inputs(model))


def given_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that a run must be given: those without an initializer."""
    initial = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initial]


def ranges_of(model: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    """Return the half-open range of each integer input.

    The range comes from the model's metadata or, failing that, from the uses of the input: `derived_range`.
    8-bit inputs, which are pixels or quantised numbers, default to the full range of their type.

    Raises:
        ProgramError: The range of an input cannot be inferred, or the metadata is malformed.
    """
    known = read_ranges(model)
    ranges: dict[str, tuple[int, int]] = {}
    for given in inputs_of(model):
        if not np.issubdtype(given.dtype, np.integer):
            continue
        whole = _all_of(given.dtype)
        free = whole or (FREE if np.issubdtype(given.dtype, np.signedinteger) else (0, FREE[1]))
        found = known.get(given.name) or derived_range(model, given.name, free) or whole
        if found is None:
            raise ProgramError(
                f"cannot tell which numbers the input {given.name} may hold: give inputs (--inputs FILE.npz) "
                f"or its range (--range {given.name}=0:100 for 0 to 99; in a URI ?range.{given.name}=0:100), "
                f"or write LOW,HIGH into the model's metadata as {PREFIX}{given.name}"
            )
        ranges[given.name] = found
    return ranges


def draw(
    model_inputs: Sequence[Input],
    ranges: Mapping[str, tuple[int, int]],
    seed: int,
    bounds: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> dict[str, NDArray[Any]]:
    """Return random values of inputs by name, deterministic in the seed.

    Floats are drawn uniformly from their bounds, or else from the standard normal distribution, integers
    uniformly from their range, Booleans by a fair coin. Inputs of two values count as masks. If they have
    several dimensions, the first element of each row is 1, since a softmax has no result in a row that is
    masked entirely.

    Args:
        model_inputs: The inputs.
        ranges: The half-open range of each integer input.
        seed: The seed; the values of an input also depend on its place.
        bounds: The least and greatest values of floating-point inputs, as far as they are known.
    """
    return {
        given.name: _draw(given, ranges, bounds.get(given.name), np.random.default_rng((seed, place)))
        for place, given in enumerate(model_inputs)
    }


def wrapping(model: onnx.ModelProto) -> frozenset[str]:
    """Return the integer inputs that are indices and may be negative, counting from the end.

    Inputs with a range in the model's metadata are excluded.
    """
    known = read_ranges(model)
    signed = [given.name for given in inputs_of(model) if np.issubdtype(given.dtype, np.signedinteger)]
    return frozenset(name for name in signed if name not in known and wraps(model, name))


def _draw(
    given: Input,
    ranges: Mapping[str, tuple[int, int]],
    within: tuple[float, float] | None,
    random: np.random.Generator,
) -> NDArray[Any]:
    if given.dtype == np.bool_:
        bounds = MASK
    elif np.issubdtype(given.dtype, np.integer):
        bounds = ranges[given.name]
    elif within is not None:
        drawn = random.uniform(0.0, 1.0, given.shape)  # the difference of the bounds may overflow
        return np.asarray(within[0] * (1.0 - drawn) + within[1] * drawn).astype(given.dtype)
    else:
        return np.asarray(random.standard_normal(given.shape)).astype(given.dtype)
    values = np.asarray(random.integers(*bounds, given.shape))
    if bounds == MASK and len(given.shape) > 1 and given.shape[-1]:
        values[..., 0] = 1
    return values.astype(given.dtype)


def _all_of(dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """Return the range of an 8-bit type; None for a wider one."""
    limits = np.iinfo(dtype)
    return (int(limits.min), int(limits.max) + 1) if dtype.itemsize == 1 else None


def _input(value: onnx.ValueInfoProto, sizes: Mapping[str, int]) -> Input:
    tensor = value.type.tensor_type
    dimensions = [sizes.get(dimension.dim_param, dimension.dim_value) for dimension in tensor.shape.dim]
    fixed = tensor.HasField("shape") and all(
        dimension.HasField("dim_value") or dimension.dim_param in sizes for dimension in tensor.shape.dim
    )
    if not fixed or any(size < 0 for size in dimensions):
        raise ProgramError(
            f"the input {value.name} has no fixed shape: bind its dimensions in the program's URI"
        )
    if tensor.elem_type in _REFUSED:
        kind = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        raise ProgramError(
            f"the input {value.name} holds {kind}: export the model with inputs of plain numbers"
        )
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return Input(value.name, dtype, tuple(dimensions))


_REFUSED = {
    onnx.TensorProto.UNDEFINED,
    onnx.TensorProto.STRING,
    onnx.TensorProto.COMPLEX64,
    onnx.TensorProto.COMPLEX128,
    onnx.TensorProto.BFLOAT16,
    *(kind for name, kind in onnx.TensorProto.DataType.items() if name.startswith(("FLOAT8", "FLOAT4"))),
    *(kind for name, kind in onnx.TensorProto.DataType.items() if name in ("INT4", "UINT4", "INT2", "UINT2")),
}
"""Element types that numpy arrays, and so inputs of ONNX Runtime, cannot have."""
