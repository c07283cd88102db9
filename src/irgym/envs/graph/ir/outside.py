"""Weights outside of a model: references to files, arrays mapped from them, and large arrays set aside.

Checking a model, folding its constants and inferring its shapes each copy the whole model, several times, and
fail for a model of 2 GiB or more. Large weights are therefore taken out of the model meanwhile.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Collection
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from irgym.envs.graph.ir.dense import DEFAULT

Array = NDArray[Any]

HEAVY = 1 << 20
"""Smallest weight, in bytes, that is set aside."""

FOLDED = 1 << 26
"""Largest constant, in elements, that constant folding reads or writes."""

ASIDE = "aside"
"""The file that weights refer to while they are set aside; it does not exist."""


def size_of(tensor: TensorProto) -> int:
    """Return the bytes of a tensor by its type and shape, at least one for each element; 0 for strings."""
    if tensor.data_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return 0
    return prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def stays_outside(tensor: TensorProto) -> bool:
    """Say whether an initializer stays in a file beside the model: if it is large and numpy has its type.

    ONNX Runtime takes no arrays of other types, such as bfloat16.
    """
    return (
        tensor.data_location == TensorProto.EXTERNAL
        and size_of(tensor) >= HEAVY
        and helper.tensor_dtype_to_np_dtype(tensor.data_type).kind in "biufc"
    )


def refer(tensor: TensorProto, location: str, offset: int, length: int, digest: str = "") -> None:
    """Make a tensor refer to content in a file.

    Args:
        tensor: The tensor. It is changed.
        location: The file.
        offset: Where the content begins, in bytes.
        length: Length of the content, in bytes.
        digest: Digest of the file's content, so that the model's digest covers it.
    """
    clear(tensor)
    for key, value in (("location", location), ("offset", offset), ("length", length), ("digest", digest)):
        if value != "":
            tensor.external_data.add(key=key, value=str(value))


def clear(tensor: TensorProto) -> None:
    """Remove a tensor's content and mark it as external, with no location yet."""
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
    """Return the array of a tensor that `refer` was called on, mapped into memory.

    Raises:
        OSError: The file cannot be read.
    """
    known = {entry.key: entry.value for entry in tensor.external_data}
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return np.asarray(np.memmap(known["location"], kind, "r", int(known["offset"]), tuple(tensor.dims)))


def bytes_of(array: Array) -> memoryview:
    """Return a view of the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def set_aside(graph: GraphProto, aside: dict[str, Array], needed: Collection[str] = ()) -> None:
    """Take large weights out of a model.

    Args:
        graph: The model's graph. It is changed.
        aside: The weights that are set aside, by name. Further ones are added.
        needed: Names of weights that constant folding may read. They stay in the model or return to it,
            except for the largest of those in files.

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
    """Return the external weights, mapped into memory, and their transposes; set them aside in the model.

    Args:
        graph: The model's graph. It is changed.

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
        (place, node)
        for place, node in enumerate(graph.node)
        if node.op_type == "Transpose" and node.domain in DEFAULT and node.output[0] not in results
    ]
    computed: list[int] = []
    for place, node in transposes:
        if node.input[0] in aside:
            array = aside[node.input[0]].transpose(_permutation(node))
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor = graph.initializer.add(name=node.output[0], data_type=kind, dims=array.shape)
            _put_aside(tensor)
            aside[tensor.name] = array
            computed.append(place)
    for place in reversed(computed):
        del graph.node[place]
    return aside


def _permutation(node: NodeProto) -> list[int] | None:
    return next((list(given.ints) for given in node.attribute if given.name == "perm"), None)


def _put_aside(tensor: TensorProto) -> None:
    clear(tensor)
    tensor.external_data.add(key="location", value=ASIDE)
