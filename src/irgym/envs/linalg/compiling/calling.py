"""Scheduled programs called from Python, through a shared library instead of a compiler in this process."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError
from irgym.envs.linalg.scheduling.operations import ELEMENTS
from irgym.envs.linalg.state import LinalgState
from irgym.measure.arrays import aligned

if TYPE_CHECKING:
    from irgym.envs.linalg.task import LinalgTask

NAME = "program"
"""Name of the library."""


class Compiled:
    """A program in machine code.

    Attributes:
        weights: Values of arguments that calls omit, by their places.
    """

    def __init__(
        self, task: "LinalgTask", state: LinalgState, weights: Mapping[int, NDArray[Any]] | None = None
    ) -> None:
        """Compile and load the program.

        Args:
            task: The program.
            state: Its schedule.
            weights: Values of arguments that calls omit, by their places.

        Raises:
            BackendError: There is no linker, or the library cannot be loaded.
            StorageError: The folder for temporary files cannot be written.
        """
        with TemporaryDirectory() as folder:
            library, *_ = task.export(state, Path(folder) / f"{NAME}.so")
            self._function = getattr(_loaded(library), f"irgym_{NAME}")
        self._function.restype = None
        self._arguments = task.program.arguments
        self._results = task.program.results
        self.weights = {place: self._fitting(place, value) for place, value in (weights or {}).items()}

    def __call__(self, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the results for the arguments other than weights, in their order."""
        given = iter(inputs)
        arguments = [
            self.weights[place] if place in self.weights else self._fitting(place, next(given))
            for place in range(len(self._arguments))
        ]
        results = [aligned(shape, ELEMENTS[element]) for shape, element in self._results]
        self._function(*(ctypes.c_void_p(array.ctypes.data) for array in (*arguments, *results)))
        return results

    def _fitting(self, place: int, value: NDArray[Any]) -> NDArray[Any]:
        """Return an argument in row-major order and of the element type that the code reads."""
        shape, element = self._arguments[place]
        # ascontiguousarray makes arrays without dimensions one-dimensional.
        return np.ascontiguousarray(value, ELEMENTS[element]).reshape(shape)


def _loaded(library: Path) -> ctypes.CDLL:
    """Load a library; it stays loaded for the life of the process, even after its file is deleted."""
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise BackendError(
            f"a compiled program cannot be loaded ({error}): set TMPDIR to a folder that libraries may be in"
        ) from error
