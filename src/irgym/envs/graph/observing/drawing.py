"""Drawings of graphs: a box for each operator, an arrow from each producer of a value to each user."""

from irgym.core.drawing import Arrow, Box, Drawing
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node, Opaque
from irgym.envs.graph.ir.types import TensorType

KINDS = (
    "elementwise",
    "convolution",
    "product",
    "attention",
    "normalisation",
    "reduction or pooling",
    "movement",
    "recurrent",
    "other",
    "input or output",
)
"""Kinds of boxes, in the order of the legend."""

_OPERATORS = {
    "elementwise": (
        "Abs Ceil Cos Erf Exp Floor Log Neg Reciprocal Round Sign Sin Sqrt Add Div Mul Pow Sub Mod Max Min "
        "Sum Mean Clip And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Not Or Xor Where Elu "
        "Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Sigmoid Softplus Softsign Tanh "
        "ThresholdedRelu BiasGelu FastGelu QuickGelu Cast CastLike QuantizeLinear DequantizeLinear "
        "DynamicQuantizeLinear QLinearAdd QLinearMul QLinearLeakyRelu QLinearSigmoid"
    ),
    "convolution": "Conv ConvTranspose FusedConv ConvInteger QLinearConv",
    "product": (
        "Einsum Gemm MatMul FusedGemm FusedMatMul MatMulInteger QLinearMatMul QGemm MatMulIntegerToFloat "
        "DynamicQuantizeMatMul"
    ),
    "attention": "Attention MultiHeadAttention GroupQueryAttention",
    "normalisation": (
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization RMSNormalization "
        "SimplifiedLayerNormalization EmbedLayerNormalization SkipLayerNormalization "
        "SkipSimplifiedLayerNormalization LpNormalization LRN"
    ),
    "reduction or pooling": (
        "ArgMax ArgMin CumSum LogSoftmax ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax AveragePool GlobalAveragePool GlobalMaxPool "
        "MaxPool LpPool QLinearGlobalAveragePool"
    ),
    "movement": (
        "Concat DepthToSpace Dropout Expand Flatten Identity Pad Reshape Slice SpaceToDepth Split Squeeze "
        "Tile Transpose Trilu Unsqueeze Gather GatherElements GatherND ScatterND ScatterElements Resize "
        "Upsample ReorderInput ReorderOutput QLinearConcat"
    ),
    "recurrent": "LSTM GRU RNN Loop Scan",
}
_KIND = {name: kind for kind, names in _OPERATORS.items() for name in names.split()}

MICROSOFT, BLOCKED = "com.microsoft", "com.microsoft.nchwc"
"""Domains of ONNX Runtime's operators."""

LONGEST = 60
"""Limit of the characters of an attribute's value."""


def drawing_of(graph: Graph) -> Drawing:
    """Return a drawing of a graph: inputs, operators and outputs, with the weights in the details.

    A box is named after its operator, `input:NAME` or `output:PLACE`, since an output's name may change.
    """
    boxes = [Box(f"input:{name}", "input", KINDS[-1], _value(graph, name)) for name in graph.inputs]
    boxes += [Box(node.name, _label(node), _kind(node), _detail(graph, node)) for node in graph.order]
    arrows: list[Arrow] = []
    for node in graph.order:
        for value in dict.fromkeys(node.operands):
            source = _source(graph, value)
            if source is not None:
                arrows.append(Arrow(source, node.name, _value(graph, value)))
    for place, value in enumerate(graph.outputs):
        source = _source(graph, value)
        boxes.append(Box(f"output:{place}", "output", KINDS[-1], _type(graph.types.get(value))))
        if source is not None:
            arrows.append(Arrow(source, f"output:{place}", _value(graph, value)))
    return Drawing(tuple(boxes), tuple(arrows), KINDS, "operators")


def _source(graph: Graph, value: str) -> str | None:
    """Return the name of the box that a value comes from; None for a weight."""
    if value in graph.producers:
        return graph.producers[value]
    return f"input:{value}" if value in graph.inputs else None


def _kind(node: Node) -> str:
    return _KIND.get(node.operator.rpartition(".")[2], "other")


def _label(node: Node) -> str:
    domain, _, name = node.operator.rpartition(".")
    if domain == BLOCKED and not name.startswith("Reorder"):
        return f"blocked {name}"
    return name if domain in ("", MICROSOFT, BLOCKED) else node.operator


def _detail(graph: Graph, node: Node) -> str:
    """Return an operator's name, its results, weights and attributes, a line each."""
    lines = [node.operator, *(_value(graph, value) for value in node.results)]
    lines += [f"of {_value(graph, value)}" for value in node.operands if value in graph.weights]
    lines += [f"{name} = {_plain(value)}" for name, value in node.attributes]
    return "\n".join(lines)


def _plain(value: Attribute) -> str:
    if isinstance(value, Opaque):
        return "..."
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _value(graph: Graph, name: str) -> str:
    kind = graph.weights[name].type if name in graph.weights else graph.types.get(name)
    return f"{name}: {_type(kind)}"


def _type(kind: TensorType | None) -> str:
    return "unknown shape" if kind is None else f"{kind.dtype} [{', '.join(map(str, kind.shape))}]"
