"""Weights outside of a model: references to files, arrays mapped from them, and large ones set aside.

What checks a model, folds its constants and infers its shapes copies all that the model holds, several times,
and none of it takes a model of 2 GiB. Large weights are no part of a model meanwhile.
"""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

from collections.abc import Collection
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

Array = NDArray[Any]

HEAVY = 1 << 20
"""Least number of bytes of a weight that is set aside."""

FOLDED = 1 << 26
"""Greatest number of elements of a constant of which others are computed when a model is read."""

ASIDE = "aside"
"""Where weights say that they are while they are no part of a model: a file that is not there."""


def size_of(tensor: TensorProto) -> int:
    """Return the bytes of a tensor by its type and sizes, at least one for each element; 0 of texts."""
    if tensor.data_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return 0
    return prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def stays_outside(tensor: TensorProto) -> bool:
    """Say whether an initializer stays in a file beside the model: a large one of a type of numpy's own.

    ONNX Runtime cannot be given arrays of other types, such as bfloat16.
    """
    return (
        tensor.data_location == TensorProto.EXTERNAL
        and size_of(tensor) >= HEAVY
        and helper.tensor_dtype_to_np_dtype(tensor.data_type).kind in "biufc"
    )


def refer(tensor: TensorProto, location: str, offset: int, length: int, digest: str = "") -> None:
    """Make a tensor one whose content is in a file.

    Args:
        tensor: It is changed.
        location: The file.
        offset: Where the content begins, in bytes.
        length: Its bytes.
        digest: What stands for the file's content, so that it stands for the model's.
    """
    clear(tensor)
    for key, value in (("location", location), ("offset", offset), ("length", length), ("digest", digest)):
        if value != "":
            tensor.external_data.add(key=key, value=str(value))


def clear(tensor: TensorProto) -> None:
    """Make a tensor one whose content is elsewhere; where, is not said yet."""
    fields = (
        "raw_data",
        "float_data",
        "int32_data",
        "int64_data",
        "double_data",
        "uint64_data",
        "external_data",
    )
    for field in fields:
        tensor.ClearField(field)
    tensor.data_location = TensorProto.EXTERNAL


def array_of(tensor: TensorProto) -> Array:
    """Return the array of a tensor that `refer` was called on: mapped, so that it is read where it is used.

    Raises:
        OSError: The file cannot be read.
    """
    known = {entry.key: entry.value for entry in tensor.external_data}
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return np.asarray(np.memmap(known["location"], kind, "r", int(known["offset"]), tuple(tensor.dims)))


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of an array that is contiguous, where they lie."""
    return array.reshape(-1).view(np.uint8).data


def set_aside(graph: GraphProto, aside: dict[str, Array], needed: Collection[str] = ()) -> None:
    """Make large weights ones that are elsewhere.

    Args:
        graph: The model's graph. It is changed.
        aside: The weights that are elsewhere, by name; those that are set aside now are added.
        needed: Names of those that something may be computed of: they are part of the model, but for the
            largest of those in files.

    Raises:
        OSError: A file with weights cannot be read.
    """
    for tensor in graph.initializer:
        if tensor.name in aside and tensor.data_location == TensorProto.EXTERNAL:
            if tensor.name in needed and prod(tensor.dims) <= FOLDED:
                array = np.asarray(aside.pop(tensor.name), order="C")
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        elif tensor.ByteSize() >= HEAVY and tensor.name not in needed:
            aside[tensor.name] = numpy_helper.to_array(tensor)
            _put_aside(tensor)


def mapped_weights(graph: GraphProto) -> dict[str, Array]:
    """Return the weights of files, mapped, after they are made ones that are elsewhere; transposed ones too.

    Raises:
        OSError: A file with weights cannot be read.
    """
    aside: dict[str, Array] = {}
    for tensor in graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            aside[tensor.name] = array_of(tensor)
            _put_aside(tensor)
    results = {value.name for value in graph.output}
    transposes = [
        (place, one)
        for place, one in enumerate(graph.node)
        if one.op_type == "Transpose" and one.domain in ("", "ai.onnx") and one.output[0] not in results
    ]
    computed: list[int] = []
    for place, one in transposes:
        if one.input[0] in aside:
            array = aside[one.input[0]].transpose(_permutation(one))
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor = graph.initializer.add(name=one.output[0], data_type=kind, dims=array.shape)
            _put_aside(tensor)
            aside[tensor.name] = array
            computed.append(place)
    for place in reversed(computed):
        del graph.node[place]
    return aside


def _permutation(one: NodeProto) -> list[int] | None:
    return next((list(given.ints) for given in one.attribute if given.name == "perm"), None)


def _put_aside(tensor: TensorProto) -> None:
    clear(tensor)
    tensor.external_data.add(key="location", value=ASIDE)
