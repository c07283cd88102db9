"""Results of a program's file in ONNX Runtime with its optimiser off, the reference of all checks.

The model that irgym reads from a file differs: old opsets are converted, functions inlined, constants folded.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from irgym.base.errors import ProgramError, StorageError
from irgym.envs.graph.ir.outside import array_of
from irgym.envs.graph.running.artefacts import file_of
from irgym.envs.graph.running.sessions import CompileError, Opened
from irgym.measure.checking.agreement import agreement
from irgym.measure.checking.expected import Expected

Array = NDArray[Any]

HEAVY = 1 << 30
"""Size in bytes of a file and its weights from which on its session is closed after each call."""


class RefusedError(ProgramError):
    """ONNX Runtime does not run a program's file on some inputs."""


def results_of_file(path: str, *feeds: Mapping[str, Array]) -> list[list[Array]]:
    """Return the results of a program's file, with open dimensions bound, on each of some inputs.

    Args:
        path: The cached model.
        feeds: Inputs by name.

    Raises:
        RefusedError: ONNX Runtime does not run the file on them.
        StorageError: The file cannot be read.
    """
    program = _session(path) if _size(path) < HEAVY else _opened(path)
    try:
        return [program.run(inputs) for inputs in feeds]
    except CompileError as error:
        raise RefusedError(
            f"the file does not run on these inputs ({error}), so nothing can be checked: give sizes "
            "and ranges of its inputs that fit"
        ) from error


def as_in_file(expected: Sequence[Expected], results: Sequence[Array]) -> list[Expected]:
    """Return expected results with the values of a program's file, if irgym's model of it agrees.

    Args:
        expected: Results of the model that irgym read, and their allowances.
        results: Results of the file.

    Raises:
        ProgramError: The results differ.
    """
    said = agreement(expected, results)
    if not said.ok:
        raise ProgramError(
            f"irgym's model of the file computes something else than the file itself ({said.detail}), so "
            "nothing can be checked: export it with a newer opset, and report it as a bug of irgym"
        )
    return [replace(allowed, values=result) for allowed, result in zip(expected, results, strict=True)]


@lru_cache(maxsize=1)
def _session(path: str) -> Opened:
    return _opened(path)


def _opened(path: str) -> Opened:
    file = file_of(path)
    try:
        model = onnx.load(str(file), load_external_data=False)
        outside = [
            (tensor.name, np.asarray(array_of(tensor)))
            for tensor in model.graph.initializer
            if tensor.data_location == onnx.TensorProto.EXTERNAL
        ]
    except OSError as error:
        raise StorageError(
            f"{file} cannot be read ({error.strerror}): run the command again to recreate it"
        ) from error
    try:
        return Opened(model, outside, threads=1)
    except CompileError as error:
        raise ProgramError(
            f"the file does not run as it is ({error}), so nothing can be checked: export it for this "
            "version of ONNX Runtime"
        ) from error


def _size(path: str) -> int:
    """Return the bytes of a file and of its weights."""
    return file_of(path).stat().st_size + Path(path).with_suffix(".safetensors").stat().st_size
