"""Samples of a model's inputs that its user has: whether they fit, and the sizes and ranges in them."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.inputs import given_inputs
from irgym.measure.samples import UNNAMED, Sample

Array = NDArray[Any]

Ranges = Mapping[str, tuple[int, int]]


def named_inputs(samples: Sequence[Sample], inputs: Sequence[onnx.ValueInfoProto]) -> list[Sample]:
    """Return samples that have an array for each input of a model, and for nothing else.

    Args:
        samples: The samples; an array without a name belongs to the only input.
        inputs: The model's inputs.

    Raises:
        ProgramError: An input is missing, or there is none of a name.
    """
    names = [value.name for value in inputs]
    listed = ", ".join(names) or "none"
    found: list[Sample] = []
    for sample in samples:
        arrays = dict(sample.arrays)
        if UNNAMED in arrays and UNNAMED not in names:
            if len(names) != 1:
                raise ProgramError(
                    f"{sample.name} does not say of which input it is, and the model has {len(names)}: write "
                    f"an .npz file with all of them ({listed})"
                )
            arrays = {names[0]: arrays[UNNAMED]}
        for name in arrays:
            if name not in names:
                raise ProgramError(
                    f"{sample.name} has an array {name!r}, and the model has no such input: its inputs are "
                    f"{listed}"
                )
        for name in names:
            if name not in arrays:
                raise ProgramError(f"{sample.name} has no array for the input {name}: add it")
        found.append(Sample(sample.name, {name: arrays[name] for name in names}))
    return found


def sizes_in(
    samples: Sequence[Sample], inputs: Sequence[onnx.ValueInfoProto], given: Mapping[str, int], fixed: bool
) -> dict[str, int]:
    """Return the sizes of open dimensions in the first sample, after checking that all samples fit the model.

    Args:
        samples: The samples, which have arrays for all inputs.
        inputs: The model's inputs, whose open dimensions have names.
        given: Sizes that the user names beside the samples.
        fixed: Whether the model is for one size only.

    Raises:
        ProgramError: An array has another type, rank or size than its input, or holds NaN; or sizes
            contradict each other.
    """
    sizes = [_sizes(sample, inputs) for sample in samples]
    first = sizes[0]
    for name, size in given.items():
        if first.get(name, size) != size:
            raise ProgramError(
                f"{name} is {first[name]} in {samples[0].name}, and {size} was named: leave out the size, or "
                "give a sample of it"
            )
    for sample, other in zip(samples, sizes, strict=True):
        if fixed and other != first:
            raise ProgramError(
                f"{sample.name} has other sizes than {samples[0].name}, and fixed=1 is for one size: leave "
                "out fixed=1, or give samples of one size"
            )
    return first


def ranges_in(samples: Sequence[Sample], given: Ranges) -> dict[str, tuple[int, int]]:
    """Return the half-open ranges of integer inputs: those that are given, else from least to greatest.

    Args:
        samples: The samples.
        given: Ranges that the user names beside them.

    Raises:
        ProgramError: A sample holds a number outside the range that is given.
    """
    found: dict[str, tuple[int, int]] = {}
    for name, array in samples[0].arrays.items():
        if array.dtype.kind not in "iu":
            continue
        for sample in samples:
            values = sample.arrays[name]
            low, high = int(values.min()), int(values.max())
            if name not in given:
                known = found.get(name, (low, high + 1))
                found[name] = min(known[0], low), max(known[1], high + 1)
            elif not given[name][0] <= low <= high < given[name][1]:
                outside = low if low < given[name][0] else high
                raise ProgramError(
                    f"{name} holds {outside} in {sample.name}, outside the range "
                    f"{given[name][0]}:{given[name][1]} that was named: leave out the range, or widen it"
                )
    return {**found, **given}


def sizes_of(model: onnx.ModelProto, sample: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes of a model's open dimensions in a sample that fits it."""
    return {
        dimension.dim_param: size
        for value in given_inputs(model)
        for dimension, size in zip(value.type.tensor_type.shape.dim, sample[value.name].shape, strict=True)
        if dimension.dim_param
    }


def bounds_in(samples: Sequence[Mapping[str, Array]]) -> dict[str, tuple[float, float]]:
    """Return the least and the greatest finite number of each floating-point input.

    Inputs that hold the same number everywhere are left out unless they are single numbers: a tensor of zeros
    is a state to begin with, and says nothing about later ones.
    """
    found: dict[str, tuple[float, float]] = {}
    for name, array in samples[0].items() if samples else ():
        if array.dtype.kind != "f":
            continue
        values = np.concatenate([sample[name].reshape(-1) for sample in samples])
        values = values[np.isfinite(values)]
        if values.size and (values.min() < values.max() or array.size == 1):
            found[name] = float(values.min()), float(values.max())
    return found


def _sizes(sample: Sample, inputs: Sequence[onnx.ValueInfoProto]) -> dict[str, int]:
    """Return the sizes of open dimensions in a sample, which must fit the model."""
    found: dict[str, tuple[int, str]] = {}
    for value in inputs:
        array = sample.arrays[value.name]
        what = f"{value.name} in {sample.name}"
        _check_type(array, value, what)
        for axis, (size, declared) in enumerate(_axes(array, value, what)):
            if size < 1:
                raise ProgramError(
                    f"{what} has no elements (shape {list(array.shape)}): give a sample with some"
                )
            if isinstance(declared, int):
                if size != declared:
                    raise ProgramError(
                        f"{what} has the shape {list(array.shape)}, and the model takes {declared} in place "
                        f"{axis}, not {size}: give arrays of the model's shapes"
                    )
                continue
            known, other = found.setdefault(declared, (size, value.name))
            if known != size:
                raise ProgramError(
                    f"the sizes in {sample.name} contradict each other: {declared} is {known} in {other} and "
                    f"{size} in {value.name}"
                )
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ProgramError(f"{what} holds NaN, with which nothing can be compared: give numbers")
    return {name: size for name, (size, _) in found.items()}


def _axes(array: Array, value: onnx.ValueInfoProto, what: str) -> Iterator[tuple[int, int | str]]:
    """Yield each size of an array, with the size that the model declares, or the name of one that is open."""
    declared = value.type.tensor_type.shape.dim
    if len(declared) != array.ndim:
        raise ProgramError(
            f"{what} has the shape {list(array.shape)}, and the model takes {len(declared)} dimensions: "
            "reshape it"
        )
    for size, dimension in zip(array.shape, declared, strict=True):
        yield size, dimension.dim_param or dimension.dim_value


def _check_type(array: Array, value: onnx.ValueInfoProto, what: str) -> None:
    kind = value.type.tensor_type.elem_type
    wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)) if kind in _NUMPY else None
    if array.dtype != wanted:
        takes = onnx.TensorProto.DataType.Name(kind).lower() if wanted is None else wanted.name
        raise ProgramError(
            f"{what} holds {array.dtype.name}, and the model takes {takes}: convert it, as in "
            f"{value.name}.astype({takes!r})"
        )


_NUMPY = frozenset(
    kind
    for name, kind in onnx.TensorProto.DataType.items()
    if name.startswith(("INT", "UINT", "FLOAT1", "DOUBLE", "BOOL")) or name == "FLOAT"
) - {onnx.TensorProto.UNDEFINED}
"""Element types that numpy has."""
