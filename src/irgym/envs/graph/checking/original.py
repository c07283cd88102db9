"""Programs as their files have them, run by ONNX Runtime with its optimiser off: what all checks go by.

What irgym reads of a file is another model: old opsets are converted, functions inlined, constants folded.
"""

# onnx leaves parts of its own types open.
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
"""Bytes of a file, and of the weights beside it, from which on its session is let go after each call."""


def results_of_file(path: str, *feeds: Mapping[str, Array]) -> list[list[Array]]:
    """Return the results of a program's file, its open dimensions bound, on each of some inputs.

    Args:
        path: The model as it was read.
        feeds: Inputs by name.

    Raises:
        ProgramError: ONNX Runtime does not run the file on them.
        StorageError: It is gone.
    """
    program = _session(path) if _size(path) < HEAVY else _opened(path)
    try:
        return [program.run(one) for one in feeds]
    except CompileError as error:
        raise ProgramError(
            f"the file does not run on random inputs ({error}), so that nothing can be checked: give sizes "
            "and ranges of its inputs that fit"
        ) from error


def as_in_file(expected: Sequence[Expected], results: Sequence[Array]) -> list[Expected]:
    """Return what results must be by a program's file, if what irgym reads of that computes the same.

    Args:
        expected: What irgym reads computes, and how far rounding takes it.
        results: What the file computes.

    Raises:
        ProgramError: They differ.
    """
    said = agreement(expected, results)
    if not said.ok:
        raise ProgramError(
            f"what irgym reads of the file computes something else than the file itself ({said.detail}), so "
            "that nothing can be checked: export it with a newer opset, and report it as a bug of irgym"
        )
    return [replace(one, values=result) for one, result in zip(expected, results, strict=True)]


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
            f"{file} cannot be read ({error.strerror}): run the command again, which makes it anew"
        ) from error
    try:
        return Opened(model, outside, threads=1)
    except CompileError as error:
        raise ProgramError(
            f"the file does not run as it is ({error}), so that nothing can be checked: export it for this "
            "version of ONNX Runtime"
        ) from error


def _size(path: str) -> int:
    """Return the bytes of a file and of its weights."""
    return file_of(path).stat().st_size + Path(path).with_suffix(".safetensors").stat().st_size
