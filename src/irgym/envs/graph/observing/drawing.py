"""Graphs as pictures: a box for each operator, an arrow for each value that one makes and another uses."""

from irgym.core.drawing import Arrow, Box, Drawing
from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Opaque
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
"""What boxes are, in the order of the legend."""

_OPERATORS = {
    "elementwise": (
        "Abs Ceil Cos Erf Exp Floor Log Neg Reciprocal Round Sign Sin Sqrt Add Div Mul Pow Sub Mod Max Min "
        "Sum Mean Clip And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Not Or Xor Where Elu "
        "Gelu HardSigmoid HardSwish LeakyRelu Mish PRelu Relu Selu Sigmoid Softplus Softsign Tanh "
        "ThresholdedRelu BiasGelu FastGelu QuickGelu Cast CastLike"
    ),
    "convolution": "Conv ConvTranspose FusedConv ConvInteger QLinearConv",
    "product": "Einsum Gemm MatMul FusedGemm FusedMatMul MatMulInteger QLinearMatMul",
    "attention": "Attention MultiHeadAttention GroupQueryAttention",
    "normalisation": (
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization RMSNormalization "
        "SimplifiedLayerNormalization EmbedLayerNormalization SkipLayerNormalization "
        "SkipSimplifiedLayerNormalization LpNormalization LRN"
    ),
    "reduction or pooling": (
        "ArgMax ArgMin CumSum LogSoftmax ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax AveragePool GlobalAveragePool GlobalMaxPool "
        "MaxPool LpPool"
    ),
    "movement": (
        "Concat DepthToSpace Dropout Expand Flatten Identity Pad Reshape Slice SpaceToDepth Split Squeeze "
        "Tile Transpose Trilu Unsqueeze Gather GatherElements GatherND ScatterND ScatterElements Resize "
        "Upsample ReorderInput ReorderOutput"
    ),
    "recurrent": "LSTM GRU RNN Loop Scan",
}
_KIND = {name: kind for kind, names in _OPERATORS.items() for name in names.split()}

MICROSOFT, BLOCKED = "com.microsoft", "com.microsoft.nchwc"
"""Domains of ONNX Runtime's own operators."""

LONGEST = 60
"""Most characters of an attribute's value."""


def drawing_of(graph: Graph) -> Drawing:
    """Return the picture of a graph: inputs, operators and outputs; weights are named in the details.

    Boxes of operators have the operators' names, those of inputs `input:NAME` and those of outputs
    `output:PLACE`, as an output's name may change.
    """
    boxes = [Box(f"input:{name}", "input", KINDS[-1], _value(graph, name)) for name in graph.inputs]
    boxes += [Box(one.name, _label(one), _kind(one), _detail(graph, one)) for one in graph.order]
    arrows: list[Arrow] = []
    for one in graph.order:
        for value in dict.fromkeys(one.operands):
            source = _source(graph, value)
            if source is not None:
                arrows.append(Arrow(source, one.name, _value(graph, value)))
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


def _kind(one: Node) -> str:
    return _KIND.get(one.operator.rpartition(".")[2], "other")


def _label(one: Node) -> str:
    domain, _, name = one.operator.rpartition(".")
    if domain == BLOCKED and not name.startswith("Reorder"):
        return f"blocked {name}"
    return name if domain in ("", MICROSOFT, BLOCKED) else one.operator


def _detail(graph: Graph, one: Node) -> str:
    """Return an operator's name, its results, weights and attributes, a line each."""
    lines = [one.operator, *(_value(graph, value) for value in one.results)]
    lines += [f"of {_value(graph, value)}" for value in one.operands if value in graph.weights]
    lines += [f"{name} = {_plain(value)}" for name, value in one.attributes]
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
