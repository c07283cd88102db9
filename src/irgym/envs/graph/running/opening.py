"""Sessions of exported models, under the options that they were tuned for."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from irgym.base.errors import BackendError, ProgramError
from irgym.core.task import Task
from irgym.envs.graph.programs.metadata import BLOCK, SESSION
from irgym.envs.graph.running.blocks import block_of
from irgym.envs.graph.running.session_options import read_options
from irgym.envs.graph.running.toolchain import toolchain
from irgym.envs.graph.state import GraphState
from irgym.measure.target import host_target


def session_of_file(path: Path) -> Any:
    """Return the `onnxruntime.InferenceSession` of a file that `tune` exported.

    Raises:
        BackendError: ONNX Runtime is not installed, or the model was made for vectors of another width.
        ProgramError: The file is no ONNX model, or does not name its session options.
        StorageError: The file cannot be read.
        IrgymError: ONNX Runtime refuses the model.
    """
    toolchain()
    from irgym.envs.graph.programs.files import parsed
    from irgym.envs.graph.running.sessions import opened, options_of

    notes = {entry.key: entry.value for entry in parsed(path).metadata_props}
    options = read_options(notes.get(SESSION, ""))
    if options is None:
        raise ProgramError(
            f"{path} does not say under which session options it is to be run: give a file that "
            "`irgym tune --export` wrote"
        )
    here = str(block_of(host_target()))
    if notes.get(BLOCK, here) != here:
        raise BackendError(
            f"{path} was made for blocks of {notes[BLOCK]} channels, but ONNX Runtime uses blocks of {here} "
            "on this machine: tune the model here"
        )
    return opened(str(path), options_of(*options))


def session_of_state(task: Task[GraphState], state: GraphState) -> Any:
    """Return the `onnxruntime.InferenceSession` of a rewritten model.

    Raises:
        StorageError: The folder for temporary files cannot be written.
        IrgymError: ONNX Runtime refuses the model.
    """
    with TemporaryDirectory() as folder:
        path, *_ = task.export(state, Path(folder) / "model.onnx")
        return session_of_file(path)
