"""Small graphs for equality saturation, and a comparison of what two graphs compute."""

import numpy as np
from small_graphs import BLOCK, graph_of

from irgym.envs.graph.eqsat.saturation import Limits
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.verification import error_of, run
from irgym.envs.graph.rules.catalogue import RULES

RNG = np.random.default_rng(0)
TASO = tuple(rule for rule in RULES if "TASO" in rule.source)
LIMITS = Limits(nodes=5_000, iterations=8, seconds=30)


def two_products() -> Graph:
    """Return two products of one input, a Relu of each, and their product: a gain only after a merge."""
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("MatMul", ["x", "v"], ["q"]),
        node("Relu", ["p"], ["r"]),
        node("Relu", ["q"], ["s"]),
        node("Mul", ["r", "s"], ["y"]),
    ]
    return graph_of(nodes, {"x": (3, 8)}, {"w": array(8, 8), "v": array(8, 8)}, ["y"])


def transposed() -> Graph:
    """Return two transpositions that cancel once one of them has moved."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=(1, 0)),
        node("Relu", ["t"], ["r"]),
        node("Sigmoid", ["r"], ["s"]),
        node("Transpose", ["s"], ["y"], perm=(1, 0)),
    ]
    return graph_of(nodes, {"x": (3, 8)}, {}, ["y"])


def many_products(count: int) -> Graph:
    products = [node("MatMul", ["x", f"w{place}"], [f"p{place}"]) for place in range(count)]
    weights = {f"w{place}": array(8, 8) for place in range(count)}
    return graph_of(products, {"x": (3, 8)}, weights, [product.name for product in products])


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def assert_equal(before: Graph, after: Graph) -> None:
    assert after.outputs == before.outputs and after.inputs == before.inputs
    feeds = {name: array(*before.types[name].shape) for name in before.inputs}
    wanted, got = (run(graph, feeds, Weights({}), BLOCK) for graph in (before, after))
    for name, expected, other in zip(before.outputs, wanted, got, strict=True):
        assert after.types[name] == before.types[name]
        assert error_of(expected, other) < 1e-5


def random_graph(seed: int) -> Graph:
    """Return random products, sums, transpositions, concats and splits of square matrices."""
    rng = np.random.default_rng(seed)
    nodes: list[Node] = []
    values = ["x", "z"]
    for place in range(12):
        first, other = (values[int(rng.integers(len(values)))] for _ in range(2))
        name = f"n{place}"
        kind = str(rng.choice(["MatMul", "Add", "Mul", "Transpose", "Relu", "weight", "joined"]))
        if kind == "weight":
            nodes.append(node("MatMul", [first, str(rng.choice(["w", "v"]))], [name]))
        elif kind == "joined":
            nodes.append(node("Concat", [first, other], [f"{name}.both"], axis=1))
            nodes.append(node("Relu", [f"{name}.both"], [f"{name}.r"]))
            nodes.append(node("Split", [f"{name}.r", "sizes"], [name, f"{name}.b"], axis=1))
            values.append(f"{name}.b")
        elif kind == "Transpose":
            nodes.append(node(kind, [first], [name], perm=(1, 0)))
        else:
            nodes.append(node(kind, [first] if kind == "Relu" else [first, other], [name]))
        values.append(name)
    weights = {"w": array(4, 4), "v": array(4, 4), "sizes": np.array([4, 4])}
    return graph_of(nodes, {"x": (4, 4), "z": (4, 4)}, weights, values[-2:])
