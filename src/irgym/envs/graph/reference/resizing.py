"""Resizing, axis by axis."""

from collections.abc import Mapping, Sequence

import numpy as np

from irgym.envs.graph.ir.sizes import any_open, numbers
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator


def _resize(
    call: Call, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None
) -> Array:
    mode = call.text("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise call.refusal(f"mode={mode!r}")
    shape, factors = _target(call, x.shape, scales, sizes)
    for axis, factor in enumerate(factors):
        if factor == 1 and shape[axis] == x.shape[axis]:
            continue
        places = _places(call, x.shape[axis], shape[axis], factor)
        last = x.shape[axis] - 1
        if mode == "nearest":
            x = x.take(np.clip(_nearest(call, places), 0, last), axis)
            continue
        places = np.clip(places, 0, last)
        below = np.floor(places).astype(np.int64)
        share = (places - below).astype(x.dtype).reshape(-1, *(1,) * (x.ndim - axis - 1))
        x = x.take(below, axis) * (1 - share) + x.take(np.minimum(below + 1, last), axis) * share
    return x


def _target(
    call: Call, shape: Sequence[int], scales: Array | None, sizes: Array | None
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the sizes of the output, and their ratios to those of the input."""
    if call.text("keep_aspect_ratio_policy", "stretch") != "stretch" or call.integer("antialias", 0):
        raise call.refusal("keep_aspect_ratio_policy or antialias")
    results, factors = list(shape), [1.0] * len(shape)
    for index, axis in enumerate(call.integers("axes", range(len(shape)))):
        if sizes is not None:
            [results[axis]] = numbers([sizes[index]])
            factors[axis] = 1.0 if any_open((results[axis], shape[axis])) else results[axis] / shape[axis]
        elif scales is not None:
            factors[axis] = float(scales[index])
            results[axis] = scaled(shape[axis], factors[axis])
    return tuple(results), tuple(factors)


def scaled(size: int, factor: float) -> int:
    """Return a size times a factor, rounded down."""
    return size * int(factor) if factor == int(factor) else int(size * factor)


def _places(call: Call, size: int, result: int, factor: float) -> Array:
    """Return the coordinate in the input for each element of the output."""
    places = np.arange(result, dtype=np.float64)
    mode = call.text("coordinate_transformation_mode", "half_pixel")
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and result > 1):
        return (places + 0.5) / factor - 0.5
    if mode == "pytorch_half_pixel":
        return 0 * places
    if mode == "asymmetric":
        return places / factor
    if mode == "align_corners":
        return places * (size - 1) / max(result - 1, 1)
    raise call.refusal(f"coordinate_transformation_mode={mode!r}")


def _nearest(call: Call, places: Array) -> Array:
    mode = call.text("nearest_mode", "round_prefer_floor")
    rounded = {
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }
    return rounded[mode].astype(np.int64)


def _resize_type(call: Call, x: TensorType, *others: TensorType | None) -> TensorType:
    scales, sizes = (
        call.known(index) if len(others) >= index and others[index - 1] is not None else None
        for index in (2, 3)
    )
    return TensorType(x.dtype, _target(call, x.shape, scales, sizes)[0])


OPERATORS: Mapping[str, Operator] = {"Resize": Operator(_resize, _resize_type)}
