"""Conversion of ONNX models to tensor graphs.

It runs in a child process, since ONNX's parser and checker are native code.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.copies import without_copies
from irgym.envs.graph.ir.dense import DEFAULT, graphs_inside, make_dense, nodes_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node, Opaque
from irgym.envs.graph.ir.outside import FOLDED, clear, mapped_weights, set_aside
from irgym.envs.graph.ir.propagation import Propagation
from irgym.envs.graph.ir.sizes import symbol
from irgym.envs.graph.ir.types import UNUSED, TensorType
from irgym.envs.graph.ir.weights import Stored, Weight, weight_of
from irgym.envs.graph.programs.metadata import note_fixed, read_sizes
from irgym.envs.graph.programs.opsets import converted, first_line

Array = NDArray[Any]

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Operators with random results, which cannot be compared."""


def prepared_model(model: ModelProto, name: str) -> tuple[ModelProto, dict[str, Array]]:
    """Prepare a model for reading: check it, fold its constants, infer its shapes.

    Args:
        model: The model, with inputs of fixed shapes. Weights may be in files if `outside.refer` made the
            references.
        name: The model's name in messages.

    Returns:
        The model without its larger weights, and these.

    Raises:
        ProgramError: The model contains something unsupported.
        OSError: A file with weights cannot be read.
    """
    try:
        make_dense(model.graph)
    except ValueError as error:
        raise ProgramError(f"{name} is no valid ONNX model: {error}") from error
    note_fixed(model)
    model = converted(model, name)
    without_copies(model.graph)
    _check(model, name)
    _check_results(model, name)
    # Shapes of results follow from those of the inputs; exporters sometimes record others.
    del model.graph.value_info[:]
    given = {value.name for value in (*model.graph.input, *model.graph.initializer)}
    for value in model.graph.output:
        if value.type.HasField("tensor_type") and value.name not in given:
            value.type.tensor_type.ClearField("shape")
    aside = mapped_weights(model.graph)
    set_aside(model.graph, aside, _needed(model.graph))
    model = _folded(model, name, aside)
    set_aside(model.graph, aside)
    try:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (RuntimeError, ValueError) as error:
        raise ProgramError(f"onnx cannot infer the shapes of {name}: {first_line(error)}") from error
    arrays: dict[str, Array] = {}
    for node in [node for node in model.graph.node if node.op_type == "Constant" and not node.domain]:
        model.graph.initializer.append(numpy_helper.from_array(_constant(node, name), node.output[0]))
        model.graph.node.remove(node)
    for tensor in model.graph.initializer:
        array = aside[tensor.name] if tensor.name in aside else numpy_helper.to_array(tensor)
        array = np.asarray(array, order="C")
        weight = weight_of(tensor.name, array)
        if isinstance(weight, Stored):
            arrays[tensor.name] = array
            mark_apart(tensor, weight)
    return model, arrays


def _needed(graph: GraphProto) -> set[str]:
    """Return the names of weights that constant folding may read, or that subgraphs use."""
    constant = {tensor.name for tensor in graph.initializer}
    needed: set[str] = set()
    for node in graph.node:
        if constant.issuperset(value for value in node.input if value):
            needed.update(node.input)
            constant.update(node.output)
        needed |= _captured(node)
    return needed


def read(path: Path) -> tuple[Graph, dict[str, Array]]:
    """Return the graph of a file whose inputs have fixed shapes, and its larger weights.

    Raises:
        ProgramError: The model contains something unsupported.
    """
    model, arrays = prepared_model(onnx.load(str(path)), str(path))
    return read_graph(model), arrays


def mark_apart(tensor: TensorProto, weight: Stored) -> None:
    """Replace the content of an initializer by the facts known about it.

    Args:
        tensor: The initializer. It is changed.
        weight: The facts.
    """
    clear(tensor)
    tensor.external_data.add(key="location", value=weight.digest)
    tensor.external_data.add(key="greatest", value=repr(weight.greatest))
    tensor.external_data.add(key="least", value=repr(weight.least))
    for key, holds in (("causal", weight.causal), ("open", weight.open), ("zeros", weight.zeros)):
        if holds:
            tensor.external_data.add(key=key, value="true")
    if weight.row:
        tensor.external_data.add(key="row", value=weight.row)


def _stored(tensor: TensorProto, kind: TensorType) -> Stored:
    """Return the weight whose facts `mark_apart` wrote."""
    known = {entry.key: entry.value for entry in tensor.external_data}
    greatest, row = float(known["greatest"]), known.get("row", "")
    looks = "causal" in known, "open" in known, row
    return Stored(
        tensor.name, known["location"], kind, greatest, *looks, float(known["least"]), "zeros" in known
    )


def _check(model: ModelProto, name: str) -> None:
    if any(tensor.data_type == TensorProto.STRING for tensor in model.graph.initializer):
        raise ProgramError(f"{name} has strings among its weights, which are unsupported: remove them")
    constants = _truths(model.graph)
    for node in nodes_of(model.graph):
        standard = node.domain in DEFAULT
        if standard and (node.op_type in RANDOM or _drops(node, constants)):
            raise ProgramError(
                f"{name} draws random numbers ({node.op_type}), so its results cannot be compared: export it "
                "for inference, without them"
            )


def _truths(graph: GraphProto) -> dict[str, bool]:
    """Return the values of a model's Boolean constants of one element."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in nodes_of(graph):
        if node.op_type == "Constant":
            tensors.update((node.output[0], given.t) for given in node.attribute if given.name == "value")
    return {
        name: bool(numpy_helper.to_array(tensor).all())
        for name, tensor in tensors.items()
        if tensor.data_type == TensorProto.BOOL and prod(tensor.dims) == 1
    }


def _drops(node: NodeProto, constants: Mapping[str, bool]) -> bool:
    """Say whether a node is a dropout that may be in training mode."""
    if node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]:
        return False
    return constants.get(node.input[2], True)


def _check_results(model: ModelProto, name: str) -> None:
    """Make sure that all results are tensors that can be compared."""
    for value in model.graph.output:
        kind = value.type.WhichOneof("value")
        if kind not in ("tensor_type", None):
            what = f"is a {kind.removesuffix('_type').replace('_', ' ')}"
            raise ProgramError(
                f"{name}: the result {value.name} {what}, and only tensors are compared: export the model "
                "with tensors as results (skl2onnx has the option zipmap=False)"
            )
        if value.type.tensor_type.elem_type == TensorProto.STRING:
            raise ProgramError(
                f"{name}: the result {value.name} holds strings, and only numbers are compared: export the "
                "model with numbers as results"
            )


def _folded(model: ModelProto, name: str, aside: Collection[str]) -> ModelProto:
    """Return the model with its constants folded, except those that depend on weights set aside."""
    import onnx_ir
    from onnx_ir.passes.common import RemoveUnusedNodesPass
    from onnxscript.optimizer import fold_constants  # pyright: ignore[reportUnknownVariableType]

    def folds(node: onnx_ir.Node) -> bool | None:
        """Always fold constants that repeat one number; for others the size decides (None)."""
        if any(value is not None and value.name in aside for value in node.inputs):
            return False
        return True if node.op_type == "ConstantOfShape" else None

    folded = onnx_ir.serde.deserialize_model(model)
    try:
        fold_constants(
            folded,
            onnx_shape_inference=True,
            input_size_limit=FOLDED,
            output_size_limit=FOLDED,
            should_fold=folds,
        )
    except RuntimeError as error:
        raise ProgramError(
            f"onnxscript cannot compute the constants of {name} ({error}): simplify it, "
            "for instance with onnxslim"
        ) from error
    RemoveUnusedNodesPass()(folded)
    return onnx_ir.serde.serialize_model(folded)


def read_graph(model: ModelProto) -> Graph:
    """Return the graph of a model that `prepared_model` returned.

    Raises:
        ProgramError: The model contains something unsupported.
    """
    source = model.graph
    profile = read_sizes(model)
    types = dict(_types([*source.value_info, *source.input, *source.output]))
    weights: dict[str, Weight] = {}
    for tensor in source.initializer:
        kind = TensorType(_dtype(tensor.data_type), tuple(tensor.dims))
        types[tensor.name] = kind
        if tensor.data_location == TensorProto.EXTERNAL:
            weights[tensor.name] = _stored(tensor, kind)
        else:
            weights[tensor.name] = weight_of(tensor.name, numpy_helper.to_array(tensor))
    same: dict[str, str] = {}
    nodes: list[Node] = []
    outputs = [value.name for value in source.output]
    for proto in source.node:
        node = _node(proto, same)
        if proto.op_type == "Identity" and not proto.domain and node.name not in outputs:
            same[node.name] = node.inputs[0]
        else:
            nodes.append(node)
    if profile:
        nodes, types, weights = _with_open_sizes(source, nodes, types, weights)
    else:
        Propagation(types, weights).complete(nodes)
    inputs = [value.name for value in source.input if value.name not in weights]
    opsets = {(entry.domain, entry.version) for entry in model.opset_import}
    return Graph.of(nodes, types, weights, inputs, outputs, opsets, profile)


def _constant(proto: NodeProto, name: str) -> Array:
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
            f"{name}: the constant {proto.output[0]} holds strings, which are unsupported: remove it"
        )
    return np.array(value, kinds[attribute.name])


def _types(values: Iterable[onnx.ValueInfoProto]) -> Iterator[tuple[str, TensorType]]:
    """Yield the names and types of the values whose sizes are all known."""
    for value in values:
        kind = value.type.tensor_type
        known = value.type.HasField("tensor_type") and kind.HasField("shape") and kind.elem_type
        if known and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            yield (
                value.name,
                TensorType(_dtype(kind.elem_type), tuple(dim.dim_value for dim in kind.shape.dim)),
            )


def _with_open_sizes(
    source: GraphProto, nodes: Sequence[Node], types: Mapping[str, TensorType], weights: Mapping[str, Weight]
) -> tuple[list[Node], dict[str, TensorType], dict[str, Weight]]:
    """Return nodes, types and weights of a model whose inputs have open sizes.

    Args:
        source: The model.
        nodes: Its nodes.
        types: Types of the values without open sizes.
        weights: Its weights.
    """
    outputs = [value.name for value in source.output]
    least: dict[str, int] = {}
    while True:
        found = Propagation({**types, **dict(_open_types(source.input, least))}, dict(weights))
        kept = found.kept(nodes, outputs)
        # With larger least sizes, more is known of the sizes behind.
        if (more := {**least, **found.least()}) == least:
            return kept, found.types, found.weights
        least = more


def _open_types(
    inputs: Iterable[onnx.ValueInfoProto], least: Mapping[str, int]
) -> Iterator[tuple[str, TensorType]]:
    """Yield the names and types of inputs with open sizes, which all have names."""
    for value in inputs:
        kind = value.type.tensor_type
        if any(dim.dim_param for dim in kind.shape.dim):
            sizes = (
                symbol(dim.dim_param, least.get(dim.dim_param, 1)) if dim.dim_param else dim.dim_value
                for dim in kind.shape.dim
            )
            yield value.name, TensorType(_dtype(kind.elem_type), tuple(sizes))


def _dtype(kind: int) -> str:
    """Return numpy's name of an ONNX element type."""
    return "str" if kind == TensorProto.STRING else str(helper.tensor_dtype_to_np_dtype(kind))


def _node(proto: NodeProto, same: Mapping[str, str]) -> Node:
    domain = "" if proto.domain in DEFAULT else f"{proto.domain}."
    outputs = list(proto.output)
    while outputs and not outputs[-1]:
        outputs.pop()
    if outputs and not outputs[0]:
        outputs[0] = UNUSED + next(filter(None, outputs))
    inputs = [same.get(value, value) for value in proto.input]
    while inputs and not inputs[-1]:
        inputs.pop()
    return Node(
        domain + proto.op_type,
        tuple(inputs),
        tuple(outputs),
        tuple(sorted((attribute.name, _attribute(attribute)) for attribute in proto.attribute)),
        tuple(sorted(_captured(proto))),
    )


def _attribute(proto: AttributeProto) -> Attribute:
    kinds = AttributeProto
    if proto.type == kinds.INT:
        return proto.i
    if proto.type == kinds.FLOAT:
        return proto.f
    if proto.type == kinds.STRING and _is_text(proto.s):
        return proto.s.decode()
    if proto.type == kinds.INTS:
        return tuple(proto.ints)
    if proto.type == kinds.FLOATS:
        return tuple(proto.floats)
    if proto.type == kinds.STRINGS and all(map(_is_text, proto.strings)):
        return tuple(text.decode() for text in proto.strings)
    return Opaque(proto.type, proto.SerializeToString(deterministic=True))


def _is_text(content: bytes) -> bool:
    """Say whether bytes are UTF-8, as ONNX demands; operators of other domains may not comply."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _captured(proto: NodeProto) -> set[str]:
    """Return the outer values that an operator's subgraphs use."""
    names: set[str] = set()
    for graph in graphs_inside(proto):
        defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        defined |= {output for node in graph.node for output in node.output}
        used = {value for node in graph.node for value in node.input} | {value.name for value in graph.output}
        names |= (used | {value for node in graph.node for value in _captured(node)}) - defined - {""}
    return names


def content_of(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
