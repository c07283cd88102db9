"""Models in ONNX Runtime as functions of arrays."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from irgym.core.task import Task
from irgym.envs.graph.running.opening import session_of_file
from irgym.measure.callables.misfit import MisfitError


class Run:
    """A session as a function of arrays.

    Args:
        session: The `onnxruntime.InferenceSession`.
        name: The model's name in messages.
    """

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        self._name = name
        self._names: list[str] = [given.name for given in session.get_inputs()]

    @property
    def names(self) -> Sequence[str]:
        """Names of the inputs."""
        return self._names

    @property
    def sizes(self) -> list[list[int | str]]:
        """The sizes of each input; open ones by their names."""
        return [list(given.shape) for given in self._session.get_inputs()]

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results for some inputs, in order.

        Raises:
            MisfitError: ONNX Runtime cannot run the model on them.
        """
        try:
            return self._session.run(None, dict(zip(self._names, arrays, strict=True)))
        except Exception as error:  # ONNX Runtime's errors have no common class
            said = next(iter(str(error).splitlines()), "")
            raise MisfitError(
                f"ONNX Runtime cannot run {self._name} on these inputs ({said}): give inputs like those that "
                "it was tuned for"
            ) from error


class ModelRun:
    """An exported model as a function of arrays that copies and pickles.

    It opens one session in each process: threads do not outlive a fork.

    Args:
        files: Content of the model's file and of those beside it, by name; the model's comes first.
        name: The model's name in messages.
    """

    def __init__(self, files: Mapping[str, bytes], name: str) -> None:
        self._files = files
        self._name = name
        self._opened: dict[int, Run] = {}

    @property
    def run(self) -> Run:
        """The session of this process.

        Raises:
            BackendError: The model was made for vectors of another width.
            StorageError: The folder for temporary files cannot be written.
            IrgymError: ONNX Runtime refuses the model.
        """
        process = os.getpid()
        if process not in self._opened:  # sessions of the parent stay: closing one would wait for its threads
            with TemporaryDirectory() as folder:
                paths = [Path(folder) / name for name in self._files]
                for path, content in zip(paths, self._files.values(), strict=True):
                    path.write_bytes(content)
                self._opened[process] = Run(session_of_file(paths[0]), self._name)
        return self._opened[process]

    @property
    def sizes(self) -> list[list[int | str]]:
        """The sizes of each input; open ones by their names."""
        return self.run.sizes

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the results for some inputs, in order.

        Raises:
            MisfitError: ONNX Runtime cannot run the model on them.
        """
        return self.run(arrays)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": {}}


class ModelFunction:
    """A model as a function of its inputs, arrays of numpy or tensors of torch, in order or by name.

    It returns one result by itself and several as a tuple: tensors where all inputs are tensors, else arrays.
    It copies and pickles.

    Args:
        run: The model.
    """

    def __init__(self, run: ModelRun) -> None:
        self._run = run

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Return the results.

        Raises:
            IrgymError: The model does not take these inputs.
        """
        run = self._run.run
        given = dict(zip(run.names, inputs, strict=False)) | named
        if len(inputs) + len(named) != len(given) or set(given) != set(run.names):
            raise MisfitError(
                f"the model takes {', '.join(run.names)}, not {len(inputs)} inputs in order"
                + (f" and {', '.join(named)} by name" if named else "")
                + ": give each once"
            )
        ordered = [given[name] for name in run.names]
        tensors = "torch" in sys.modules and all(
            isinstance(value, sys.modules["torch"].Tensor) for value in ordered
        )
        results: Sequence[Any] = run([np.asarray(value.detach() if tensors else value) for value in ordered])
        if tensors:
            results = [sys.modules["torch"].from_numpy(result) for result in results]
        return results[0] if len(results) == 1 else tuple(results)


def run_of_state(task: Task[Any], state: Any, name: str) -> ModelRun:
    """Return a rewritten model as a function of arrays.

    Raises:
        StorageError: The folder for temporary files cannot be written.
    """
    with TemporaryDirectory() as folder:
        paths = sorted(cast(Any, task).export(state, Path(folder) / "model.onnx"))
        return ModelRun({path.name: path.read_bytes() for path in paths}, name)
