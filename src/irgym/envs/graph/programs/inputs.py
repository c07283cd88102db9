"""Random values for a model's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.metadata import PREFIX, read_ranges
from irgym.envs.graph.programs.ranges import derived_range, wraps

MASK = (0, 2)
"""The range of masks."""

FREE = (-8, 8)
"""The range of inputs that may hold any whole number."""


@dataclass(frozen=True)
class Input:
    """An input of a model.

    Attributes:
        name: Its name in the model.
        dtype: The type of its elements.
        shape: Its sizes.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def inputs_of(model: onnx.ModelProto) -> tuple[Input, ...]:
    """Return the inputs that a model must be given, in order.

    Raises:
        ProgramError: One is no tensor of numbers or truth values, or has dimensions that are not fixed.
    """
    given = {tensor.name for tensor in model.graph.initializer}
    return tuple(_input(value) for value in model.graph.input if value.name not in given)


def ranges_of(model: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    """Return for each input of whole numbers the least value and the one after the greatest.

    They stand in the model's metadata, or follow from what the model does with the input: `derived_range`.
    Otherwise inputs of 8 bits, which are pixels or quantised numbers, hold all numbers of their type.

    Raises:
        ProgramError: They do neither, or the metadata is malformed.
    """
    known = read_ranges(model)
    ranges: dict[str, tuple[int, int]] = {}
    for one in inputs_of(model):
        if not np.issubdtype(one.dtype, np.integer):
            continue
        whole = _all_of(one.dtype)
        free = whole or (FREE if np.issubdtype(one.dtype, np.signedinteger) else (0, FREE[1]))
        found = known.get(one.name) or derived_range(model, one.name, free) or whole
        if found is None:
            raise ProgramError(
                f"nobody can tell which numbers the input {one.name} may hold: give the least and the one "
                f"after the greatest in the program's URI, as in graph:FILE.onnx?range.{one.name}=0:100, or "
                f"write LOW,HIGH into the model's metadata as {PREFIX}{one.name}"
            )
        ranges[one.name] = found
    return ranges


def draw(
    model_inputs: Sequence[Input], ranges: Mapping[str, tuple[int, int]], seed: int
) -> dict[str, NDArray[Any]]:
    """Return values of inputs by their names; the same seed gives the same.

    Floats are drawn from the standard normal distribution, whole numbers evenly from their range, truth
    values by a fair coin. In masks, which are those of two values that have rows, the first of each row is 1:
    where everything is masked a softmax has no result.

    Args:
        model_inputs: The inputs.
        ranges: Least value, and the one after the greatest, of each input of whole numbers.
        seed: What the values depend on, and on the input's place.
    """
    return {
        one.name: _draw(one, ranges, np.random.default_rng((seed, place)))
        for place, one in enumerate(model_inputs)
    }


def wrapping(model: onnx.ModelProto) -> frozenset[str]:
    """Return the inputs of whole numbers that are indices, of which negative ones count from the end.

    Those whose range stands in the model's metadata keep to it.
    """
    known = read_ranges(model)
    signed = [one.name for one in inputs_of(model) if np.issubdtype(one.dtype, np.signedinteger)]
    return frozenset(name for name in signed if name not in known and wraps(model, name))


def _draw(one: Input, ranges: Mapping[str, tuple[int, int]], random: np.random.Generator) -> NDArray[Any]:
    if one.dtype == np.bool_:
        bounds = MASK
    elif np.issubdtype(one.dtype, np.integer):
        bounds = ranges[one.name]
    else:
        return np.asarray(random.standard_normal(one.shape)).astype(one.dtype)
    values = np.asarray(random.integers(*bounds, one.shape))
    if bounds == MASK and len(one.shape) > 1 and one.shape[-1]:
        values[..., 0] = 1
    return values.astype(one.dtype)


def _all_of(dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """Return the range of a type of 8 bits; None for a wider one."""
    limits = np.iinfo(dtype)
    return (int(limits.min), int(limits.max) + 1) if dtype.itemsize == 1 else None


def _input(value: onnx.ValueInfoProto) -> Input:
    tensor = value.type.tensor_type
    dimensions = [dimension.dim_value for dimension in tensor.shape.dim]
    fixed = tensor.HasField("shape") and all(
        dimension.HasField("dim_value") for dimension in tensor.shape.dim
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
"""Types of elements that ONNX Runtime cannot be given as arrays of numpy."""
