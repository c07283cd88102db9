"""`irgym.onnx_session`: a tuned model in ONNX Runtime, under the options that it was tuned for."""

from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError
from irgym.envs.graph.running.opening import session_of_file, session_of_state
from irgym.envs.graph.task import GraphTask
from irgym.judging.result import Tuned


def onnx_session(model: Tuned | str | Path) -> Any:
    """Open a model in ONNX Runtime under the session options that it was tuned for.

    Args:
        model: Result of `irgym.tune` or `irgym.replay` for a program of graph, or an exported file.

    Returns:
        An `onnxruntime.InferenceSession`.

    Raises:
        BackendError: ONNX Runtime is not installed, or the model was made for vectors of another width.
        ProgramError: The file is no ONNX model, or does not say under which options it is to be run.
        StorageError: The file cannot be read.
        IrgymError: The result is of another environment, or ONNX Runtime refuses the model.
    """
    if not isinstance(model, Tuned):
        return session_of_file(Path(model))
    if not isinstance(model.task, GraphTask):
        raise IrgymError(f"{model.program} is no model of ONNX: give a result of the environment graph")
    return session_of_state(model.task, model.state)
