"""Operators of opsets 7 to 12 in terms of opset 18.

Most operators of those opsets mean the same in opset 18. This module rewrites the others: attributes that
became inputs, softmax and similar operators, which flattened their operand, interpolation, which had a single
convention, and Scan, which had a batch axis.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, helper, numpy_helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.dense import DEFAULT, graphs_inside, graphs_of

UPGRADED = 18
"""The opset that older models are rewritten in."""

Nodes: TypeAlias = Iterable[NodeProto]


class Upgrade:
    """Rewrites a model of an old opset in terms of `UPGRADED`.

    Args:
        model: The model, without functions. It is changed.
        version: Its opset, 7 to 12.
        path: The model's name in messages.
    """

    def __init__(self, model: onnx.ModelProto, version: int, path: str) -> None:
        self.version = version
        self._model = model
        self._path = path
        graphs = list(graphs_of(model.graph))
        nodes = [node for graph in graphs for node in graph.node]
        results = [value.name for graph in graphs for value in graph.output]
        self._used = {*results, *(value for node in nodes for value in node.input)}
        given = [value.name for graph in graphs for value in (*graph.input, *graph.initializer)]
        self._taken = {*self._used, *given, *(value for node in nodes for value in node.output)}
        self._types: dict[str, onnx.TypeProto] = {}
        self._count = 0

    def run(self) -> None:
        """Rewrite the model.

        Raises:
            ProgramError: An operator has no equivalent.
        """
        self._rewrite(self._model.graph, self._typed().graph, {})
        for entry in self._model.opset_import:
            if entry.domain in DEFAULT:
                entry.version = UPGRADED

    def _typed(self) -> onnx.ModelProto:
        """Return a copy of the model with the types of its values, as far as onnx infers them."""
        try:
            return onnx.shape_inference.infer_shapes(self._model, data_prop=True)
        except (RuntimeError, ValueError):
            # Without ranks, rewrites choose forms that need none.
            return onnx.ModelProto.FromString(self._model.SerializeToString())

    def _rewrite(self, graph: GraphProto, typed: GraphProto, outer: Mapping[str, onnx.TypeProto]) -> None:
        """Rewrite a graph, its subgraphs first.

        Args:
            graph: The graph. It is changed.
            typed: The same graph with inferred types.
            outer: Types of outer values. They are passed down, since sibling graphs may reuse names.
        """
        weights = {
            tensor.name: helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            for tensor in graph.initializer
        }
        values = (*typed.input, *typed.value_info, *typed.output)
        types = {**outer, **weights, **{value.name: value.type for value in values}}
        found: list[NodeProto] = []
        for node, known in zip(graph.node, typed.node, strict=True):
            for inner, inner_typed in zip(graphs_inside(node), graphs_inside(known), strict=True):
                self._rewrite(inner, inner_typed, types)
            self._types = types
            rewrite = REWRITES.get(node.op_type) if node.domain in DEFAULT else None
            found += [node] if rewrite is None else rewrite(self, node)
        copies = [NodeProto.FromString(node.SerializeToString()) for node in found]
        del graph.node[:]
        graph.node.extend(copies)

    def is_used(self, value: str) -> bool:
        """Say whether anything uses a value."""
        return value in self._used

    def refuse(self, node: NodeProto, why: str) -> ProgramError:
        """Return the error of an operator that has no equivalent."""
        return ProgramError(
            f"{self._path} has {node.op_type} of opset {self.version} {why}, which newer opsets do not have: "
            f"export it with opset {UPGRADED}"
        )

    def rank(self, value: str) -> int | None:
        """Return the rank of a value; None if unknown."""
        kind = self._types.get(value)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return len(kind.tensor_type.shape.dim)

    def element(self, value: str) -> int:
        """Return ONNX's number of a value's element type; 0 if unknown."""
        kind = self._types.get(value)
        return kind.tensor_type.elem_type if kind is not None else 0

    def name(self) -> str:
        """Return a name that no value has."""
        while True:
            self._count += 1
            name = f"irgym.old.{self._count}"
            if name not in self._taken:
                return name

    def constant(self, array: Any) -> NodeProto:
        """Return a node whose result is an array."""
        return helper.make_node(
            "Constant", [], [self.name()], value=numpy_helper.from_array(np.asarray(array))
        )

    def like(self, number: float, value: str) -> tuple[list[NodeProto], str]:
        """Return nodes that make a number of the element type of a value, and its name."""
        element = self.element(value)
        if element:
            made = self.constant(np.array(number, helper.tensor_dtype_to_np_dtype(element)))
            return [made], made.output[0]
        made = self.constant(np.array(number, np.float32))
        cast = helper.make_node("CastLike", [made.output[0], value], [self.name()])
        return [made, cast], cast.output[0]


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Return the values of an operator's attributes."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def without(node: NodeProto, *names: str) -> NodeProto:
    """Return a copy of an operator without some attributes."""
    copy = NodeProto()
    copy.CopyFrom(node)
    kept = [attribute for attribute in node.attribute if attribute.name not in names]
    del copy.attribute[:]
    copy.attribute.extend(kept)
    return copy


def _flattened(upgrade: Upgrade, node: NodeProto) -> Nodes:
    """Rewrite softmax and similar operators, which flattened the axes from `axis` on into one."""
    axis = attributes_of(node).get("axis", 1)
    rank = upgrade.rank(node.input[0])
    if axis == -1 or (rank is not None and axis == rank - 1):
        return [helper.make_node(node.op_type, node.input, node.output, axis=-1)]
    matrix, shape, rows = upgrade.name(), upgrade.name(), upgrade.name()
    return [
        helper.make_node("Shape", node.input, [shape]),
        helper.make_node("Flatten", node.input, [matrix], axis=axis),
        helper.make_node(node.op_type, [matrix], [rows], axis=-1),
        helper.make_node("Reshape", [rows, shape], node.output, allowzero=1),
    ]


def _upsample(upgrade: Upgrade, node: NodeProto) -> Nodes:
    """Rewrite Upsample as a Resize with asymmetric coordinates that rounds down to the nearest element."""
    known = attributes_of(node)
    mode = known.get("mode", b"nearest").decode()
    made: list[NodeProto] = []
    if upgrade.version < 9:
        made.append(upgrade.constant(np.array(known["scales"], np.float32)))
        scales = made[0].output[0]
    else:
        scales = node.input[1]
    return [*made, _resize_by(node.input[0], scales, node.output, mode, "floor")]


def _resize(upgrade: Upgrade, node: NodeProto) -> Nodes:
    """Rewrite Resize of opset 10, which rounds up along axes that shrink, and down along others."""
    if upgrade.version > 10:
        return [node]
    mode = attributes_of(node).get("mode", b"nearest").decode()
    if mode != "nearest":
        return [_resize_by(node.input[0], node.input[1], node.output, mode, "floor")]
    unit = upgrade.constant(np.array(1.0, np.float32))
    grown, up, down = upgrade.name(), upgrade.name(), upgrade.name()
    return [
        unit,
        helper.make_node("Max", [node.input[1], unit.output[0]], [up]),
        helper.make_node("Min", [node.input[1], unit.output[0]], [down]),
        _resize_by(node.input[0], up, [grown], mode, "floor"),
        _resize_by(grown, down, node.output, mode, "ceil"),
    ]


def _resize_by(value: str, scales: str, outputs: Sequence[str], mode: str, rounding: str) -> NodeProto:
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding, "mode": mode}
    return helper.make_node("Resize", [value, "", scales], outputs, **how)


def _clip(upgrade: Upgrade, node: NodeProto) -> Nodes:
    if upgrade.version >= 11:
        return [node]
    known = attributes_of(node)
    made: list[NodeProto] = []
    inputs = [node.input[0]]
    for bound in ("min", "max"):
        if bound in known:
            nodes, name = upgrade.like(known[bound], node.input[0])
            made += nodes
            inputs.append(name)
        else:
            inputs.append("")
    return [*made, helper.make_node("Clip", inputs, node.output)]


def _dropout(upgrade: Upgrade, node: NodeProto) -> Nodes:
    if upgrade.version >= 12:
        return [node]
    if len(node.output) == 1 or not upgrade.is_used(node.output[1]):
        return [helper.make_node("Identity", node.input, node.output[:1])]
    raise upgrade.refuse(node, "with its mask as a result")


def _slice(upgrade: Upgrade, node: NodeProto) -> Nodes:
    if upgrade.version >= 10:
        return [node]
    known = attributes_of(node)
    axes = known.get("axes", range(len(known["starts"])))
    made = [
        upgrade.constant(np.array(list(each), np.int64)) for each in (known["starts"], known["ends"], axes)
    ]
    inputs = [node.input[0], *(each.output[0] for each in made)]
    return [*made, helper.make_node("Slice", inputs, node.output)]


def _top(upgrade: Upgrade, node: NodeProto) -> Nodes:
    if upgrade.version >= 10:
        return [node]
    known = attributes_of(node)
    count = upgrade.constant(np.array([known["k"]], np.int64))
    return [
        count,
        helper.make_node("TopK", [node.input[0], count.output[0]], node.output, axis=known.get("axis", -1)),
    ]


def _pad(upgrade: Upgrade, node: NodeProto) -> Nodes:
    if upgrade.version >= 11:
        return [node]
    known = attributes_of(node)
    pads = upgrade.constant(np.array(known["pads"], np.int64))
    made, value = upgrade.like(known.get("value", 0.0), node.input[0])
    mode = known.get("mode", b"constant").decode()
    return [
        pads,
        *made,
        helper.make_node("Pad", [node.input[0], pads.output[0], value], node.output, mode=mode),
    ]


def _axes(upgrade: Upgrade, node: NodeProto) -> Nodes:
    """Turn the attribute `axes` into an input."""
    return _moved(upgrade, node, "axes")


def _split(upgrade: Upgrade, node: NodeProto) -> Nodes:
    """Turn the attribute `split` into an input; without it, add the number of parts."""
    if attributes_of(node).get("split"):
        return _moved(upgrade, node, "split")
    equal = without(node, "split")
    equal.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
    return [equal]


def _moved(upgrade: Upgrade, node: NodeProto, name: str) -> Nodes:
    """Turn an attribute of integers into the second input; an empty attribute is dropped."""
    numbers = attributes_of(node).get(name)
    other = without(node, name)
    if not numbers:
        return [other]
    made = upgrade.constant(np.array(numbers, np.int64))
    other.input.append(made.output[0])
    return [made, other]


def _batch_normalisation(upgrade: Upgrade, node: NodeProto) -> Nodes:
    if sum(map(bool, node.output)) > 1:
        raise upgrade.refuse(node, "in training")
    if attributes_of(node).get("spatial", 1) != 1:
        raise upgrade.refuse(node, "with statistics for each element (spatial=0)")
    return [without(node, "spatial")]


def _scatter(_: Upgrade, node: NodeProto) -> Nodes:
    return [helper.make_node("ScatterElements", node.input, node.output, **attributes_of(node))]


def _roi_align(_: Upgrade, node: NodeProto) -> Nodes:
    other = without(node)
    other.attribute.append(helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))
    return [other]


def _scan(upgrade: Upgrade, node: NodeProto) -> Nodes:
    """Rewrite Scan of opset 8, which had a batch axis, as a Scan over the batch with another Scan inside."""
    if upgrade.version >= 9:
        return [node]
    if node.input[0]:
        raise upgrade.refuse(node, "with lengths of sequences")
    known = attributes_of(node)
    body: GraphProto = known["body"]
    scanned = int(known["num_scan_inputs"])
    renamed = [upgrade.name() for _ in body.input]
    made = [upgrade.name() for _ in body.output]
    directions = known.get("directions", [0] * scanned)
    inner = helper.make_node(
        "Scan", renamed, made, body=body, num_scan_inputs=scanned, scan_input_directions=directions
    )
    types = [value.type.tensor_type.elem_type for value in body.input]
    results = [value.type.tensor_type.elem_type for value in body.output]
    if 0 in (*types, *results):
        raise upgrade.refuse(node, "with values of unknown types")
    samples = helper.make_graph(
        [inner],
        "samples",
        [_unshaped(name, kind) for name, kind in zip(renamed, types, strict=True)],
        [_unshaped(name, kind) for name, kind in zip(made, results, strict=True)],
    )
    return [
        helper.make_node("Scan", node.input[1:], node.output, body=samples, num_scan_inputs=len(body.input))
    ]


def _unshaped(name: str, kind: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, None)


Rewrite: TypeAlias = Callable[[Upgrade, NodeProto], Nodes]

REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)

REWRITES: Mapping[str, Rewrite] = {
    "BatchNormalization": _batch_normalisation,
    "Clip": _clip,
    "Dropout": _dropout,
    "Hardmax": _flattened,
    "LogSoftmax": _flattened,
    "Pad": _pad,
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "Scan": _scan,
    "Scatter": _scatter,
    "Slice": _slice,
    "Softmax": _flattened,
    "Split": _split,
    "Squeeze": _axes,
    "TopK": _top,
    "Unsqueeze": _axes,
    "Upsample": _upsample,
    **dict.fromkeys(REDUCTIONS, _axes),
}
"""Rewrites of operators whose form or meaning changed between opsets 7 and 18."""
