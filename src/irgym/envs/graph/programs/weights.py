"""Limits of the size of a model, and weights in files beside it."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import helper
from onnx.external_data_helper import uses_external_data

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.outside import refer, size_of, stays_outside
from irgym.envs.graph.programs.external import place_of

INSIDE = (1 << 31) - (1 << 20)
"""Limit of the bytes of weights inside a model's file; the format is limited to 2 GiB."""

MOST = 6 << 30
"""Limit of the bytes of a model's weights. Timing holds three copies: see `environment.RUNNING`."""


def too_large(what: str, size: int, most: int, remedy: str) -> ProgramError:
    """Return the error about weights that are too large.

    Args:
        what: The model.
        size: Bytes of its weights.
        most: The limit.
        remedy: The remedy.
    """
    return ProgramError(
        f"{what} has {size / (1 << 30):.1f} GiB of weights, and at most {most / (1 << 30):.0f} are "
        f"supported: {remedy}"
    )


def files_of(model: onnx.ModelProto, path: Path, inside: int = INSIDE) -> list[Path]:
    """Return the files with a model's external weights, sorted.

    Args:
        model: The model as loaded from its file.
        path: The file.
        inside: Limit of the bytes inside the model.

    Raises:
        ProgramError: A file is missing or outside the model's folder, or the weights are too large: all of
            them, or those that must be inside the model.
    """
    found: set[Path] = set()
    folder = path.parent.resolve()
    apart = {tensor.name for tensor in model.graph.initializer if stays_outside(tensor)}
    held = path.stat().st_size
    for tensor in _tensors(model):
        if not uses_external_data(tensor):
            continue
        file = place_of(tensor, folder, str(path)).file
        found.add(file)
        held += 0 if tensor.name in apart else size_of(tensor)
    size = sum(file.stat().st_size for file in found) + path.stat().st_size
    if size > MOST:
        raise too_large(str(path), size, MOST, "choose a smaller model or split it")
    if held > inside:
        remedy = (
            "save it with weights of float32 or float16, as initializers of its main graph, in a file beside"
        )
        what = f"{path}, not counting large initializers of numpy's types in other files,"
        raise too_large(what, held, inside, remedy)
    return sorted(found)


def taken_out(model: onnx.ModelProto, folder: Path, digests: Mapping[str, str]) -> list[onnx.TensorProto]:
    """Turn the weights that stay in files into inputs of the model, and return them.

    The model can then be checked and converted, and its shapes inferred, without these weights.

    Args:
        model: The model. It is changed.
        folder: The folder of its file.
        digests: Digests of the files, by file.

    Returns:
        The weights as references to files; see `outside.refer`.

    Raises:
        ValueError: A file is too small for its weights.
    """
    graph = model.graph
    found: list[onnx.TensorProto] = []
    inputs = {value.name: value for value in graph.input}
    for place in reversed(range(len(graph.initializer))):
        tensor = graph.initializer[place]
        if not stays_outside(tensor):
            continue
        file, offset, length = _place(tensor, folder)
        value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        if tensor.name in inputs:
            inputs[tensor.name].CopyFrom(value)
        else:
            graph.input.append(value)
        refer(tensor, str(file), offset, length, digests[str(file)])
        found.append(onnx.TensorProto.FromString(tensor.SerializeToString()))
        del graph.initializer[place]
    return found[::-1]


def put_back(
    model: onnx.ModelProto, weights: Sequence[onnx.TensorProto], listed: Collection[str] = ()
) -> None:
    """Turn weights that were `taken_out` into initializers again.

    Args:
        model: The model. It is changed.
        weights: The weights.
        listed: Names of the weights that were also inputs, which callers may override.
    """
    graph = model.graph
    names = {tensor.name for tensor in weights}.difference(listed)
    for place in reversed(range(len(graph.input))):
        if graph.input[place].name in names:
            del graph.input[place]
    graph.initializer.extend(weights)


def _place(tensor: onnx.TensorProto, folder: Path) -> tuple[Path, int, int]:
    """Return the file of a weight, its offset and its length in bytes.

    Raises:
        ValueError: The file is too small.
    """
    place, length = place_of(tensor, folder.resolve(), "the model"), size_of(tensor)
    if place.length not in (None, length):
        raise ValueError(f"{tensor.name} has {length} bytes, and {place.length} in {place.location}")
    if place.offset + length > place.file.stat().st_size:
        raise ValueError(f"{place.location} ends before {tensor.name} does")
    return place.file, place.offset, length


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor in a model: in graphs, in subgraphs at any depth, and in functions."""
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
