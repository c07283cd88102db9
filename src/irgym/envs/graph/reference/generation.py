"""Operators that create arrays from shapes and constants, or change element types."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.sizes import any_open, numbers
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator, type_of

ELEMENTS: Mapping[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}
"""Names of element types by ONNX's numbers (`TensorProto.DataType`)."""


def _element(call: Call) -> str:
    number = call.integer("to")
    if number not in ELEMENTS:
        raise call.refusal(f"the element type {number}")
    return ELEMENTS[number]


def _sizes(call: Call, shape: tuple[int, ...]) -> Array:
    end = call.attributes.get("end")
    return np.array(shape[call.integer("start", 0) : None if end is None else int(end)], np.int64)


def _filler(call: Call) -> Array:
    """Return the value of ConstantOfShape, shape ()."""
    value: Array = call.attributes.get("value", np.zeros(1, np.float32))
    if type(value) is not np.ndarray:
        raise call.refusal("a value that is not an array")
    return value.reshape(())


def _constant(call: Call) -> Array:
    """Return a constant from the attribute that holds it."""
    kinds: Mapping[str, Any] = {
        "value": None,
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    for name, dtype in kinds.items():
        if name in call.attributes:
            return np.asarray(call.attributes[name], dtype)
    raise call.refusal("none of the attributes " + ", ".join(kinds))


def _range(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    first, step = start.reshape(()), delta.reshape(())
    count = max(int(np.ceil((limit.reshape(()) - first) / step)), 0)
    return (first + np.arange(count).astype(start.dtype) * step).astype(start.dtype)


def _range_type(call: Call, start: TensorType, *others: TensorType) -> TensorType:
    known = [call.known(place).reshape(()) for place in range(3)]
    if not any_open(number.item() for number in known):
        return type_of(_range(call, *known))
    (first, step), limit = numbers(number.item() for number in known[::2]), known[1].item()
    if first != known[0] or step != known[2]:
        raise call.refusal("fractions")
    return TensorType(start.dtype, (max(-(-(limit - first) // step), 0),))


def _filled(call: Call, shape: Array) -> Array:
    return np.broadcast_to(_filler(call), tuple(int(size) for size in shape))


def _filled_type(call: Call, shape: TensorType) -> TensorType:
    return TensorType(type_of(_filler(call)).dtype, call.sizes(0))


def _cast(call: Call, x: Array) -> Array:
    return x.astype(_element(call))


def _cast_type(call: Call, x: TensorType) -> TensorType:
    return TensorType(_element(call), x.shape)


def _cast_like(call: Call, x: Array, like: Array) -> Array:
    return x.astype(like.dtype)


def _cast_like_type(call: Call, x: TensorType, like: TensorType) -> TensorType:
    return TensorType(like.dtype, x.shape)


def _shape(call: Call, x: Array) -> Array:
    return _sizes(call, x.shape)


def _shape_type(call: Call, x: TensorType) -> TensorType:
    return type_of(_sizes(call, (0,) * len(x.shape)))


def _size(call: Call, x: Array) -> Array:
    return np.array(x.size, np.int64)


def _size_type(call: Call, x: TensorType) -> TensorType:
    return TensorType("int64", ())


def _constant_type(call: Call) -> TensorType:
    return type_of(_constant(call))


OPERATORS: Mapping[str, Operator] = {
    "Cast": Operator(_cast, _cast_type),
    "CastLike": Operator(_cast_like, _cast_like_type),
    "Constant": Operator(_constant, _constant_type),
    "ConstantOfShape": Operator(_filled, _filled_type),
    "Range": Operator(_range, _range_type),
    "Shape": Operator(_shape, _shape_type),
    "Size": Operator(_size, _size_type),
}
