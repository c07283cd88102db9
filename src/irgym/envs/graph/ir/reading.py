"""From ONNX models to tensor graphs. Runs in a child process: ONNX's parser and checks are native code."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from irgym.core.errors import ProgramError
from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Opaque
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight, weight_of

Array = NDArray[Any]

OPSETS = range(13, 27)
"""Versions of ONNX's own operators that are read."""

FOLDED = 1 << 26
"""Greatest number of bytes of a constant that is computed when a model is read."""

QUANTISED = frozenset({"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "DequantizeLinear"})
"""Operators of quantised models."""

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Operators whose results nobody can compare."""


class Model(NamedTuple):
    """A model that was read.

    Attributes:
        graph: Its graph.
        arrays: Its weights by the names that `Stored` gives.
    """

    graph: Graph
    arrays: dict[str, Array]


def read(path: Path, bindings: Mapping[str, int]) -> Model:
    """Read a model.

    Args:
        path: An ONNX file.
        bindings: Sizes of its symbolic dimensions, by name.

    Raises:
        ProgramError: It is no ONNX model, is damaged, or holds something that cannot be handled.
    """
    model = _loaded(path)
    _check(model, path)
    _bind(model, bindings, path)
    model = _folded(model)
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return graph_of(model, path)


def _loaded(path: Path) -> ModelProto:
    try:
        model = onnx.load(str(path))
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise ProgramError(
            f"{path} is no ONNX model, or is damaged ({_line(error)}): export it again"
        ) from error
    except FileNotFoundError as error:
        raise ProgramError(
            f"{path}: weights of the model are missing ({_line(error)}): put them beside it"
        ) from error
    except OSError as error:
        raise ProgramError(f"{path} cannot be read: {error.strerror}") from error
    if not model.opset_import or not model.graph.output:
        raise ProgramError(f"{path} is no ONNX model: it has no outputs or no operator set")
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def _check(model: ModelProto, path: Path) -> None:
    version = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if version not in OPSETS:
        raise ProgramError(
            f"{path} is of opset {version}, and those from {OPSETS[0]} to {OPSETS[-1]} are read: convert it, "
            "for instance with onnx.version_converter"
        )
    operators = {one.op_type for one in _all_nodes(model.graph)}
    if found := sorted(operators & RANDOM):
        raise ProgramError(
            f"{path} draws random numbers ({found[0]}), so that results cannot be compared: remove it"
        )


def _bind(model: ModelProto, bindings: Mapping[str, int], path: Path) -> None:
    """Give symbolic dimensions of the inputs their sizes.

    Raises:
        ProgramError: One has none, or a name is bound that the model does not have.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    unbound: list[str] = []
    met: set[str] = set()
    for value in model.graph.input:
        if value.name in stored:
            continue
        if not value.type.HasField("tensor_type"):
            raise ProgramError(f"{path}: the input {value.name} is no tensor, which is not handled")
        if value.type.tensor_type.elem_type == TensorProto.STRING:
            raise ProgramError(f"{path}: the input {value.name} holds texts, which are not handled")
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            name = dim.dim_param or f"{value.name}.{place}"
            met.add(name)
            if name in bindings:
                dim.dim_value = bindings[name]
            elif name not in unbound:
                unbound.append(name)
    if unknown := sorted(set(bindings) - met):
        names = ", ".join(sorted(met)) or "none"
        raise ProgramError(f"{path} has no dimension {unknown[0]!r}: those without a size are {names}")
    if unbound:
        example = "&".join(f"{name}=1" for name in unbound)
        raise ProgramError(
            f"{path} leaves the size of {', '.join(unbound)} open: give it, as in graph:{path.name}?{example}"
        )
    # Sizes of results follow from these; what exporters noted of them would contradict.
    del model.graph.value_info[:]
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _folded(model: ModelProto) -> ModelProto:
    """Return the model with everything computed that depends on no input."""
    import onnx_ir
    from onnx_ir.passes.common import RemoveUnusedNodesPass
    from onnxscript.optimizer import fold_constants

    own = onnx_ir.serde.deserialize_model(model)
    fold_constants(own, onnx_shape_inference=True, input_size_limit=FOLDED, output_size_limit=FOLDED)
    RemoveUnusedNodesPass()(own)
    return onnx_ir.serde.serialize_model(own)


def graph_of(model: ModelProto, path: Path) -> Model:
    """Return the graph of a model whose shapes are inferred.

    Raises:
        ProgramError: It holds something that cannot be handled.
    """
    own = model.graph
    if own.sparse_initializer:
        raise ProgramError(f"{path} has sparse weights, which are not handled: make them dense")
    types = dict(_types([*own.value_info, *own.input, *own.output]))
    arrays: dict[str, Array] = {}
    weights: dict[str, Weight] = {}
    for tensor in own.initializer:
        _store(tensor.name, numpy_helper.to_array(tensor), types, arrays, weights)
    same: dict[str, str] = {}
    nodes: list[Node] = []
    outputs = {value.name for value in own.output}
    for proto in own.node:
        one = _node(proto, same)
        if proto.op_type == "Constant" and not proto.domain:
            _store(one.name, _constant(proto, path), types, arrays, weights)
        elif proto.op_type == "Identity" and not proto.domain and one.name not in outputs:
            same[one.name] = one.inputs[0]
        else:
            nodes.append(one)
    inputs = [value.name for value in own.input if value.name not in weights]
    opsets = {(entry.domain, entry.version) for entry in model.opset_import}
    graph = Graph.of(nodes, types, weights, inputs, [value.name for value in own.output], opsets)
    return Model(graph, arrays)


def _store(
    name: str,
    array: Array,
    types: dict[str, TensorType],
    arrays: dict[str, Array],
    weights: dict[str, Weight],
) -> None:
    """Take a weight of the file."""
    contiguous = array if array.flags.c_contiguous else array.copy(order="C")  # keeps 0 dimensions
    arrays[name] = contiguous
    weights[name] = weight_of(name, contiguous)
    types[name] = weights[name].type


def _constant(proto: NodeProto, path: Path) -> Array:
    [attribute] = proto.attribute
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return numpy_helper.to_array(value)
    kinds = {
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    if attribute.name not in kinds:
        raise ProgramError(
            f"{path}: the constant {proto.output[0]} holds texts or is sparse, which is not handled"
        )
    return np.array(value, kinds[attribute.name])


def _types(values: Iterable[onnx.ValueInfoProto]) -> Iterator[tuple[str, TensorType]]:
    """Return the types of values whose sizes are all known."""
    for value in values:
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.HasField("shape") and kind.elem_type:
            if all(dim.HasField("dim_value") for dim in kind.shape.dim):
                shape = tuple(dim.dim_value for dim in kind.shape.dim)
                yield value.name, TensorType(_dtype(kind.elem_type), shape)


def _dtype(kind: int) -> str:
    """Return numpy's name of a type of ONNX."""
    return "str" if kind == TensorProto.STRING else str(helper.tensor_dtype_to_np_dtype(kind))


def _node(proto: NodeProto, same: Mapping[str, str]) -> Node:
    domain = "" if proto.domain in ("", "ai.onnx") else f"{proto.domain}."
    outputs = list(proto.output)
    while outputs and not outputs[-1]:
        outputs.pop()
    inputs = [same.get(value, value) for value in proto.input]
    while inputs and not inputs[-1]:
        inputs.pop()
    return Node(
        domain + proto.op_type,
        tuple(inputs),
        tuple(outputs),
        tuple(sorted((one.name, _attribute(one)) for one in proto.attribute)),
        tuple(sorted(_captured(proto))),
    )


def _attribute(proto: AttributeProto) -> Attribute:
    kinds = AttributeProto
    if proto.type == kinds.INT:
        return proto.i
    if proto.type == kinds.FLOAT:
        return proto.f
    if proto.type == kinds.STRING:
        return proto.s.decode()
    if proto.type == kinds.INTS:
        return tuple(proto.ints)
    if proto.type == kinds.FLOATS:
        return tuple(proto.floats)
    if proto.type == kinds.STRINGS:
        return tuple(text.decode() for text in proto.strings)
    return Opaque(proto.type, proto.SerializeToString(deterministic=True))


def _captured(proto: NodeProto) -> set[str]:
    """Return the values that graphs within an operator use from outside."""
    names: set[str] = set()
    for attribute in proto.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            own |= {output for one in graph.node for output in one.output}
            used = {value for one in graph.node for value in one.input} | {
                value.name for value in graph.output
            }
            names |= (used | {value for one in graph.node for value in _captured(one)}) - own - {""}
    return names


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for one in graph.node:
        yield one
        for attribute in one.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _all_nodes(inner)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def content_of(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
