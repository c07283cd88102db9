"""Copies of weights in ONNX models, as exporters write them where several layers share a weight."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from onnx import GraphProto

from irgym.envs.graph.ir.dense import DEFAULT, graphs_of


def without_copies(graph: GraphProto) -> None:
    """Let operators use weights themselves in place of copies that `Identity` makes.

    Constant folding would make each copy a weight: a model of 85 MB whose layers share their weights took
    642 MB.

    Args:
        graph: The graph, its nodes in topological order. It is changed.
    """
    weights = {tensor.name for tensor in graph.initializer}
    returned = {value.name for inner in graphs_of(graph) for value in inner.output}
    copied: dict[str, str] = {}
    for node in graph.node:
        if node.op_type == "Identity" and node.domain in DEFAULT and node.output[0] not in returned:
            source = copied.get(node.input[0], node.input[0])
            if source in weights:
                copied[node.output[0]] = source
    if not copied:
        return
    for place in reversed(range(len(graph.node))):
        if copied.keys() & set(graph.node[place].output):
            del graph.node[place]
    for inner in graphs_of(graph):
        for node in inner.node:
            for place, name in enumerate(node.input):
                if name in copied:
                    node.input[place] = copied[name]
