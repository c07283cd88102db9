"""How large a model may be, and where its weights are."""

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from irgym.core.errors import ProgramError

MOST = (1 << 31) - (1 << 20)
"""Bytes of weights that a model may have: a file of ONNX that has everything inside holds less than 2 GiB."""


def too_large(name: str, size: int) -> ProgramError:
    """Return the error of a model with too many bytes of weights."""
    return ProgramError(
        f"{name} has {size / (1 << 30):.1f} GiB of weights, and a file of ONNX holds less than 2: "
        "choose a smaller model or split it"
    )


def files_of(model: onnx.ModelProto, path: Path) -> list[Path]:
    """Return the files beside a model's own that hold weights, sorted.

    Args:
        model: The model, as its own file has it.
        path: That file.

    Raises:
        ProgramError: A file is missing or outside the model's folder, or all weights together are too large.
    """
    found: set[Path] = set()
    folder = path.parent.resolve()
    for tensor in _tensors(model):
        if not uses_external_data(tensor):
            continue
        location = ExternalDataInfo(tensor).location
        file = (folder / location).resolve()
        if not file.is_relative_to(folder):
            raise ProgramError(
                f"{path} has weights in {location}, outside its folder: save it anew with them inside"
            )
        if not file.is_file():
            raise ProgramError(
                f"{path} has weights in {location}, which is not there: put it beside the model"
            )
        found.add(file)
    size = sum(file.stat().st_size for file in found) + path.stat().st_size
    if size > MOST:
        raise too_large(str(path), size)
    return sorted(found)


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor in a model: of graphs, of graphs inside of nodes, of functions."""
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            nodes += graph.node
            continue
        for attribute in nodes.pop().attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                graphs.append(attribute.g)
            graphs += attribute.graphs
