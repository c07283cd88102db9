"""Rewritten models as files."""

from pathlib import Path
from typing import TYPE_CHECKING

from irgym.core.files import write_files
from irgym.core.task import form_of
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.state import GraphState

if TYPE_CHECKING:
    from irgym.envs.graph.task import GraphTask

NOTE = "irgym"
"""What the model's metadata about its making is called."""


def export(task: "GraphTask", state: GraphState, path: Path) -> list[Path]:
    """Write a model that plain ONNX Runtime runs, with optimisations off.

    Its metadata says from what it was made, for which target, and which session options suit it.

    Raises:
        IrgymError: The suffix names no form.
        StorageError: The file cannot be written.
    """
    form_of(path, task.forms)
    loaded = model_at(task.path)
    model = model_of(state.graph, loaded.weights, whole=True)
    for ours, theirs in zip(model.graph.output, loaded.proto.graph.output, strict=True):
        if not ours.HasField("type"):  # its sizes are not known
            ours.type.CopyFrom(theirs.type)
    model.metadata_props.extend(loaded.proto.metadata_props)
    notes = {
        "program": task.uri,
        "target": task.target.name,
        "session": f"graph_optimization_level=ORT_DISABLE_ALL intra_op_num_threads={task.threads}",
    }
    for name, text in notes.items():
        model.metadata_props.add(key=f"{NOTE}.{name}", value=text)
    write_files({path: model.SerializeToString(deterministic=True)})
    return [path]
