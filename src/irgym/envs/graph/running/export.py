"""Export of rewritten models to files."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import onnx
from onnx import ModelProto
from onnx.shape_inference import infer_shapes

from irgym.base.files import Content, write_files
from irgym.core.target import Target
from irgym.core.task import form_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.outside import bytes_of, refer
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import BLOCKED, arrays_apart, model_of, used_weights
from irgym.envs.graph.programs.metadata import BLOCK, INPUTS, NOTE, ORT_CONFIG, SESSION, unnamed
from irgym.envs.graph.programs.weights import INSIDE
from irgym.envs.graph.running.artefacts import file_of, model_at
from irgym.envs.graph.running.session_options import options_json, options_text
from irgym.envs.graph.state import GraphState

BESIDE = ".data"
"""Suffix, after the model's file name, of the file with weights that do not fit into the model."""

PAGE = 4096
"""Alignment in bytes of the weights in a separate file, so that they can be mapped into memory."""


class Exported(Protocol):
    """The parts of a task that its export needs; see `irgym.envs.graph.task.GraphTask`."""

    uri: str
    path: str
    threads: int
    block: int

    @property
    def forms(self) -> Mapping[str, str]:
        """The suffixes of exported files."""
        ...

    @property
    def target(self) -> Target:
        """The target of ONNX Runtime's kernels."""
        ...


def export(task: Exported, state: GraphState, path: Path, most: int = INSIDE) -> list[Path]:
    """Write a model that plain ONNX Runtime runs.

    Its metadata name the original program, the target and the session options to run it with. The options
    are written in irgym's form and in the form that ONNX Runtime reads.

    Args:
        task: The task.
        state: The rewritten model.
        path: The file to write.
        most: Bytes of weights that a model may hold. If it has more, they go to a file beside it.

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
    _declare(model, task.path)
    _leave_open(model, state.graph, loaded.weights)
    notes = {
        f"{NOTE}program": task.uri,
        f"{NOTE}target": task.target.name,
        SESSION: options_text(state.level, task.threads),
        ORT_CONFIG: options_json(state.level, task.threads),
    }
    if any(node.operator.startswith(f"{BLOCKED}.") for node in state.graph.order):
        notes[BLOCK] = str(task.block)
    # The original may be an exported file itself.
    kept = [entry for entry in loaded.proto.metadata_props if entry.key not in {*notes, BLOCK, INPUTS}]
    model.metadata_props.extend(kept)
    for name, text in notes.items():
        model.metadata_props.add(key=name, value=text)
    write_files({path: model.SerializeToString(deterministic=True), **files})
    return [path, *files]


def _declare(model: ModelProto, path: str) -> None:
    """Declare inputs and results as the model's file does.

    Args:
        model: The graph as a model. It is changed.
        path: The cached original model.
    """
    given = onnx.load(str(file_of(path)), load_external_data=False).graph
    for ours, theirs in ((model.graph.input, given.input), (model.graph.output, given.output)):
        declared = {value.name: value.type for value in theirs}
        for value in ours:
            if value.name not in declared:
                continue
            value.type.CopyFrom(declared[value.name])
            for axis, size in enumerate(value.type.tensor_type.shape.dim):
                if size.dim_param == unnamed(value.name, axis):
                    size.ClearField("dim_param")


def _leave_open(model: ModelProto, graph: Graph, weights: Weights) -> None:
    """Leave sizes of results open for which onnx infers other values than ONNX Runtime computes.

    Otherwise ONNX Runtime would warn about the model, and onnx's checker would reject it.

    Args:
        model: The graph as a model. It is changed.
        graph: The graph.
        weights: Its weights.
    """
    bare = model_of(graph, weights, whole=False)  # inference copies the whole model
    for value in bare.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = {value.name: value for value in infer_shapes(bare).graph.output}
    for value in model.graph.output:
        told = inferred[value.name].type.tensor_type.shape.dim
        written = value.type.tensor_type.shape.dim
        if inferred[value.name].type.tensor_type.HasField("shape") and len(told) != len(written):
            value.type.CopyFrom(inferred[value.name].type)
        for size, other in zip(written, told, strict=False):  # none are inferred for other domains
            if other.HasField("dim_value") and size.HasField("dim_value") and size != other:
                size.ClearField("value")


def _in_two(graph: Graph, weights: Weights, location: str) -> tuple[ModelProto, list[bytes | memoryview]]:
    """Return a model, and the content of the file with its large weights, as views of the arrays.

    Args:
        graph: The model.
        weights: Its weights.
        location: The name of the file with the weights.
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
