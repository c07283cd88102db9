"""Operators that select elements, or scatter them into others."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.sizes import broadcast_shapes
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator, positive_axis, same


def _gather(call: Call, x: Array, indices: Array) -> Array:
    return np.take(x, indices, axis=call.integer("axis", 0))


def _gather_type(call: Call, x: TensorType, indices: TensorType) -> TensorType:
    axis = positive_axis(call.integer("axis", 0), len(x.shape))
    return TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _gather_elements(call: Call, x: Array, indices: Array) -> Array:
    axis = positive_axis(call.integer("axis", 0), x.ndim)
    within = tuple(slice(None) if d == axis else slice(size) for d, size in enumerate(indices.shape))
    return np.take_along_axis(x[within], indices, axis)


def _gather_elements_type(call: Call, x: TensorType, indices: TensorType) -> TensorType:
    return TensorType(x.dtype, indices.shape)


def _gather_nd(call: Call, x: Array, indices: Array) -> Array:
    batch = call.integer("batch_dims", 0)
    # Indices of the batch axes, each shaped to broadcast with those of the others.
    rank = indices.ndim - 1
    batch_indices: list[Array] = []
    for axis in range(batch):
        places = np.arange(x.shape[axis], dtype=np.int64)
        batch_indices.append(places.reshape(*(1,) * axis, -1, *(1,) * (rank - axis - 1)))
    return x[(*batch_indices, *np.moveaxis(indices, -1, 0))]


def _gather_nd_type(call: Call, x: TensorType, indices: TensorType) -> TensorType:
    used = call.integer("batch_dims", 0) + indices.shape[-1]
    return TensorType(x.dtype, (*indices.shape[:-1], *x.shape[used:]))


_SCATTERS: Mapping[str, Callable[..., Any]] = {
    "add": np.add.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
    "mul": np.multiply.at,
}


def _scatter_nd(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    result, places = x.copy(), tuple(np.moveaxis(indices, -1, 0))
    reduction = call.text("reduction", "none")
    if reduction == "none":
        result[places] = updates
    else:
        _SCATTERS[reduction](result, places, updates)
    return result


def _where(call: Call, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _where_type(call: Call, condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    return TensorType(x.dtype, broadcast_shapes(condition.shape, x.shape, y.shape, trusted=call.trusted))


OPERATORS: Mapping[str, Operator] = {
    "Gather": Operator(_gather, _gather_type),
    "GatherElements": Operator(_gather_elements, _gather_elements_type),
    "GatherND": Operator(_gather_nd, _gather_nd_type),
    "ScatterND": Operator(_scatter_nd, same),
    "Where": Operator(_where, _where_type),
}
