"""Rewritten models as files."""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto
from onnx.shape_inference import infer_shapes

from irgym.base.files import Content, write_files
from irgym.core.task import form_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.outside import bytes_of, refer
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import BLOCKED, arrays_apart, model_of, used_weights
from irgym.envs.graph.programs.metadata import BLOCK, NOTE, ORT_CONFIG, SESSION
from irgym.envs.graph.programs.weights import INSIDE
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.session_options import options_json, options_text
from irgym.envs.graph.state import GraphState

if TYPE_CHECKING:
    from irgym.envs.graph.task import GraphTask

BESIDE = ".data"
"""What follows the model's name in that of the file with its weights, where these do not fit into it."""

PAGE = 4096
"""Bytes: weights in a file of their own begin at multiples, so that they can be mapped into memory."""


def export(task: "GraphTask", state: GraphState, path: Path, most: int = INSIDE) -> list[Path]:
    """Write a model that plain ONNX Runtime runs.

    Its metadata says from what it was made, for which target, and which session options it is to be run
    with; the latter in the form that ONNX Runtime itself reads, too.

    Args:
        task: The program.
        state: What became of it.
        path: Where to write it.
        most: Bytes of weights that a model may hold; if it has more, they go to a file beside it.

    Raises:
        IrgymError: The suffix names no form.
        StorageError: A file cannot be written.
    """
    form_of(path, task.forms)
    loaded = model_at(task.path)
    weights = [state.graph.weights[name] for name in used_weights(state.graph)]
    apart = sum(weight.type.bytes for weight in weights) > most
    files: dict[Path, Content] = {}
    if apart:
        beside = path.with_name(path.name + BESIDE)
        model, content = _in_two(state.graph, loaded.weights, beside.name)
        files[beside] = content
    else:
        model = model_of(state.graph, loaded.weights, whole=True)
    for ours, theirs in zip(model.graph.output, loaded.proto.graph.output, strict=True):
        if not ours.HasField("type"):  # its sizes are not known
            ours.type.CopyFrom(theirs.type)
    _leave_open(model, state.graph, loaded.weights)
    notes = {
        f"{NOTE}program": task.uri,
        f"{NOTE}target": task.target.name,
        SESSION: options_text(state.level, task.threads),
        ORT_CONFIG: options_json(state.level, task.threads),
    }
    if any(one.operator.startswith(f"{BLOCKED}.") for one in state.graph.order):
        notes[BLOCK] = str(task.finder.block)
    # The original may be such a file itself.
    kept = [entry for entry in loaded.proto.metadata_props if entry.key not in {*notes, BLOCK}]
    model.metadata_props.extend(kept)
    for name, text in notes.items():
        model.metadata_props.add(key=name, value=text)
    write_files({path: model.SerializeToString(deterministic=True), **files})
    return [path, *files]


def _leave_open(model: ModelProto, graph: Graph, weights: Weights) -> None:
    """Leave sizes of results open that onnx infers otherwise than ONNX Runtime computes them.

    ONNX Runtime would warn of the model, and onnx's checker refuse it.

    Args:
        model: The graph as a model. It is changed.
        graph: The graph.
        weights: Its weights.
    """
    bare = model_of(graph, weights, whole=False)  # inference copies all that a model holds
    for value in bare.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = {value.name: value for value in infer_shapes(bare).graph.output}
    for value in model.graph.output:
        told = inferred[value.name].type.tensor_type.shape.dim
        own = value.type.tensor_type.shape.dim
        for size, other in zip(own, told, strict=False):  # nothing is told of operators of other domains
            if other.HasField("dim_value") and size.dim_value != other.dim_value:
                size.ClearField("value")


def _in_two(graph: Graph, weights: Weights, location: str) -> tuple[ModelProto, list[bytes | memoryview]]:
    """Return a model, and the content of the file beside it with its large weights: the arrays as they lie.

    Args:
        graph: The model.
        weights: Its weights.
        location: The name of that file.
    """
    model = model_of(graph, weights, whole=False)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    content: list[bytes | memoryview] = []
    end = 0
    for name, array in arrays_apart(graph, weights):
        gap = -end % PAGE
        content += [bytes(gap), bytes_of(array)]
        refer(tensors[name], location, end + gap, array.nbytes)
        end += gap + array.nbytes
    return model, content
