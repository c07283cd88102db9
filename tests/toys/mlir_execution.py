"""Running a program's text unoptimised, in this process."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import function_of, lower
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.compiling.executable import Executable
from irgym.measure.arrays import aligned

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.bool_}


def _shapes(text: str) -> tuple[list[Any], list[Any]]:
    """Shapes and element types of the arguments and results."""
    with mlir():
        module = parse(text)  # freed with this variable: a function does not keep its module
        signature = function_of(module).type
        inputs, results = (
            [(tuple(kind.shape), DTYPES[str(kind.element_type)]) for kind in map(ir.RankedTensorType, types)]
            for types in (signature.inputs, signature.results)
        )
    return inputs, results


def random_inputs(text: str, seed: int = 0) -> list[NDArray[Any]]:
    """Standard-normal arguments."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape, dtype in _shapes(text)[0]]


def execute(text: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The results of a program."""
    wanted, results = _shapes(text)
    arrays = [aligned(shape, dtype) for shape, dtype in (*wanted, *results)]
    for array, value in zip(arrays, inputs, strict=False):
        assert (array.shape, array.dtype) == (value.shape, value.dtype)
        array[...] = value
    with mlir():
        executable = Executable(lower(text, ""), arrays)
    executable.run(1)
    return arrays[len(wanted) :]
