"""Operators of opsets 7 to 12 in terms of opset 18.

Most operators of those versions mean the same in opset 18. Those that do not are here: what were attributes
became inputs, softmax and its like flattened what they are computed over, interpolation had one convention,
and Scan had an axis of samples.
"""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, helper, numpy_helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.dense import graphs_inside, graphs_of

UPGRADED = 18
"""The version that older models are rewritten in."""

Nodes: TypeAlias = Iterable[NodeProto]


class Upgrade:
    """Rewrites a model of an old opset in terms of `UPGRADED`.

    Args:
        model: The model, without functions of its own. It is changed.
        version: Its opset, 7 to 12.
        path: What messages call it.
    """

    def __init__(self, model: onnx.ModelProto, version: int, path: str) -> None:
        self.version = version
        self._model = model
        self._path = path
        graphs = list(graphs_of(model.graph))
        nodes = [one for graph in graphs for one in graph.node]
        results = [value.name for graph in graphs for value in graph.output]
        self._used = {*results, *(value for one in nodes for value in one.input)}
        given = [value.name for graph in graphs for value in (*graph.input, *graph.initializer)]
        self._taken = {*self._used, *given, *(value for one in nodes for value in one.output)}
        self._types: dict[str, onnx.TypeProto] = {}
        self._count = 0

    def run(self) -> None:
        """Rewrite the model.

        Raises:
            ProgramError: An operator has no equivalent.
        """
        self._rewrite(self._model.graph, self._typed().graph, {})
        for entry in self._model.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = UPGRADED

    def _typed(self) -> onnx.ModelProto:
        """Return a copy of the model with the types of its values, as far as onnx infers them."""
        try:
            return onnx.shape_inference.infer_shapes(self._model, data_prop=True)
        except (RuntimeError, ValueError):
            # Ranks are not known then, and forms are chosen that need none.
            return onnx.ModelProto.FromString(self._model.SerializeToString())

    def _rewrite(self, graph: GraphProto, typed: GraphProto, outer: Mapping[str, onnx.TypeProto]) -> None:
        """Rewrite a graph, graphs inside of its operators first.

        Args:
            graph: It is changed.
            typed: The same with more types.
            outer: Types of the values around it: graphs beside each other may give one name to several.
        """
        weights = {
            tensor.name: helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            for tensor in graph.initializer
        }
        values = (*typed.input, *typed.value_info, *typed.output)
        types = {**outer, **weights, **{value.name: value.type for value in values}}
        found: list[NodeProto] = []
        for one, known in zip(graph.node, typed.node, strict=True):
            for inner, inner_typed in zip(graphs_inside(one), graphs_inside(known), strict=True):
                self._rewrite(inner, inner_typed, types)
            self._types = types
            rewrite = REWRITES.get(one.op_type) if one.domain in ("", "ai.onnx") else None
            found += [one] if rewrite is None else rewrite(self, one)
        copies = [NodeProto.FromString(one.SerializeToString()) for one in found]
        del graph.node[:]
        graph.node.extend(copies)

    def is_used(self, value: str) -> bool:
        """Say whether anything uses a value."""
        return value in self._used

    def refuse(self, one: NodeProto, why: str) -> ProgramError:
        """Return the error of an operator that has no equivalent."""
        return ProgramError(
            f"{self._path} has {one.op_type} of opset {self.version} {why}, which newer opsets do not have: "
            f"export it with opset {UPGRADED}"
        )

    def rank(self, value: str) -> int | None:
        """Return the rank of a value; None where it is not known."""
        kind = self._types.get(value)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return len(kind.tensor_type.shape.dim)

    def element(self, value: str) -> int:
        """Return the type of a value's elements, as ONNX numbers it; 0 where it is not known."""
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
        """Return a node that makes an array."""
        return node("Constant", [], [self.name()], value=numpy_helper.from_array(np.asarray(array)))

    def like(self, number: float, value: str) -> tuple[list[NodeProto], str]:
        """Return what makes a number of the type of a value's elements, and the number's name."""
        element = self.element(value)
        if element:
            made = self.constant(np.array(number, helper.tensor_dtype_to_np_dtype(element)))
            return [made], made.output[0]
        made = self.constant(np.array(number, np.float32))
        cast = node("CastLike", [made.output[0], value], [self.name()])
        return [made, cast], cast.output[0]


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """Return a node of ONNX."""
    return helper.make_node(operator, inputs, outputs, **attributes)


def attributes_of(one: NodeProto) -> dict[str, Any]:
    """Return the values of an operator's attributes."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in one.attribute}


def without(one: NodeProto, *names: str) -> NodeProto:
    """Return a copy of an operator that lacks some attributes."""
    copy = NodeProto()
    copy.CopyFrom(one)
    kept = [attribute for attribute in one.attribute if attribute.name not in names]
    del copy.attribute[:]
    copy.attribute.extend(kept)
    return copy


def _flattened(upgrade: Upgrade, one: NodeProto) -> Nodes:
    """Softmax and its like made a matrix of their operand: the axes from `axis` on were one."""
    axis = attributes_of(one).get("axis", 1)
    rank = upgrade.rank(one.input[0])
    if axis == -1 or (rank is not None and axis == rank - 1):
        return [node(one.op_type, one.input, one.output, axis=-1)]
    matrix, shape, rows = upgrade.name(), upgrade.name(), upgrade.name()
    return [
        node("Shape", one.input, [shape]),
        node("Flatten", one.input, [matrix], axis=axis),
        node(one.op_type, [matrix], [rows], axis=-1),
        node("Reshape", [rows, shape], one.output, allowzero=1),
    ]


def _upsample(upgrade: Upgrade, one: NodeProto) -> Nodes:
    """Upsample is a Resize whose coordinates are multiplied and, for the nearest element, rounded down."""
    known = attributes_of(one)
    mode = known.get("mode", b"nearest").decode()
    made: list[NodeProto] = []
    if upgrade.version < 9:
        made.append(upgrade.constant(np.array(known["scales"], np.float32)))
        scales = made[0].output[0]
    else:
        scales = one.input[1]
    return [*made, _resize_by(one.input[0], scales, one.output, mode, "floor")]


def _resize(upgrade: Upgrade, one: NodeProto) -> Nodes:
    """Resize of opset 10 took the next element along axes that shrink, and the one before along others."""
    if upgrade.version > 10:
        return [one]
    mode = attributes_of(one).get("mode", b"nearest").decode()
    if mode != "nearest":
        return [_resize_by(one.input[0], one.input[1], one.output, mode, "floor")]
    unit = upgrade.constant(np.array(1.0, np.float32))
    grown, up, down = upgrade.name(), upgrade.name(), upgrade.name()
    return [
        unit,
        node("Max", [one.input[1], unit.output[0]], [up]),
        node("Min", [one.input[1], unit.output[0]], [down]),
        _resize_by(one.input[0], up, [grown], mode, "floor"),
        _resize_by(grown, down, one.output, mode, "ceil"),
    ]


def _resize_by(value: str, scales: str, outputs: Sequence[str], mode: str, rounding: str) -> NodeProto:
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding, "mode": mode}
    return node("Resize", [value, "", scales], outputs, **how)


def _clip(upgrade: Upgrade, one: NodeProto) -> Nodes:
    if upgrade.version >= 11:
        return [one]
    known = attributes_of(one)
    made: list[NodeProto] = []
    inputs = [one.input[0]]
    for bound in ("min", "max"):
        if bound in known:
            nodes, name = upgrade.like(known[bound], one.input[0])
            made += nodes
            inputs.append(name)
        else:
            inputs.append("")
    return [*made, node("Clip", inputs, one.output)]


def _dropout(upgrade: Upgrade, one: NodeProto) -> Nodes:
    if upgrade.version >= 12:
        return [one]
    if len(one.output) == 1 or not upgrade.is_used(one.output[1]):
        return [node("Identity", one.input, one.output[:1])]
    raise upgrade.refuse(one, "with its mask as a result")


def _slice(upgrade: Upgrade, one: NodeProto) -> Nodes:
    if upgrade.version >= 10:
        return [one]
    known = attributes_of(one)
    axes = known.get("axes", range(len(known["starts"])))
    made = [
        upgrade.constant(np.array(list(each), np.int64)) for each in (known["starts"], known["ends"], axes)
    ]
    inputs = [one.input[0], *(each.output[0] for each in made)]
    return [*made, node("Slice", inputs, one.output)]


def _top(upgrade: Upgrade, one: NodeProto) -> Nodes:
    if upgrade.version >= 10:
        return [one]
    known = attributes_of(one)
    count = upgrade.constant(np.array([known["k"]], np.int64))
    return [count, node("TopK", [one.input[0], count.output[0]], one.output, axis=known.get("axis", -1))]


def _pad(upgrade: Upgrade, one: NodeProto) -> Nodes:
    if upgrade.version >= 11:
        return [one]
    known = attributes_of(one)
    pads = upgrade.constant(np.array(known["pads"], np.int64))
    made, value = upgrade.like(known.get("value", 0.0), one.input[0])
    mode = known.get("mode", b"constant").decode()
    return [pads, *made, node("Pad", [one.input[0], pads.output[0], value], one.output, mode=mode)]


def _axes(upgrade: Upgrade, one: NodeProto) -> Nodes:
    """Axes became an input."""
    return _moved(upgrade, one, "axes")


def _split(upgrade: Upgrade, one: NodeProto) -> Nodes:
    """Sizes of parts became an input, and without them the number of parts has to be said."""
    if attributes_of(one).get("split"):
        return _moved(upgrade, one, "split")
    equal = without(one, "split")
    equal.attribute.append(helper.make_attribute("num_outputs", len(one.output)))
    return [equal]


def _moved(upgrade: Upgrade, one: NodeProto, name: str) -> Nodes:
    """Return an operator with an attribute of whole numbers as its second input; an empty one is left out."""
    numbers = attributes_of(one).get(name)
    other = without(one, name)
    if not numbers:
        return [other]
    made = upgrade.constant(np.array(numbers, np.int64))
    other.input.append(made.output[0])
    return [made, other]


def _batch_normalisation(upgrade: Upgrade, one: NodeProto) -> Nodes:
    if sum(map(bool, one.output)) > 1:
        raise upgrade.refuse(one, "in training")
    if attributes_of(one).get("spatial", 1) != 1:
        raise upgrade.refuse(one, "with statistics for each element (spatial=0)")
    return [without(one, "spatial")]


def _scatter(_: Upgrade, one: NodeProto) -> Nodes:
    return [node("ScatterElements", one.input, one.output, **attributes_of(one))]


def _roi_align(_: Upgrade, one: NodeProto) -> Nodes:
    other = without(one)
    other.attribute.append(helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))
    return [other]


def _scan(upgrade: Upgrade, one: NodeProto) -> Nodes:
    """Scan of opset 8 had samples along the first axis: one Scan over them, with another one inside."""
    if upgrade.version >= 9:
        return [one]
    if one.input[0]:
        raise upgrade.refuse(one, "with lengths of sequences")
    known = attributes_of(one)
    body: GraphProto = known["body"]
    scanned = int(known["num_scan_inputs"])
    renamed = [upgrade.name() for _ in body.input]
    made = [upgrade.name() for _ in body.output]
    directions = known.get("directions", [0] * scanned)
    inner = node("Scan", renamed, made, body=body, num_scan_inputs=scanned, scan_input_directions=directions)
    types = [value.type.tensor_type.elem_type for value in body.input]
    results = [value.type.tensor_type.elem_type for value in body.output]
    if 0 in (*types, *results):
        raise upgrade.refuse(one, "with values of unknown types")
    samples = helper.make_graph(
        [inner],
        "samples",
        [_unshaped(name, kind) for name, kind in zip(renamed, types, strict=True)],
        [_unshaped(name, kind) for name, kind in zip(made, results, strict=True)],
    )
    return [node("Scan", one.input[1:], one.output, body=samples, num_scan_inputs=len(body.input))]


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
"""What becomes of operators whose form or meaning changed between opsets 7 and 18."""
