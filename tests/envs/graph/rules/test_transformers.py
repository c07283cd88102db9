"""Transformer layers, as PyTorch's exporter writes them, become ONNX Runtime's fused operators."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from small_graphs import BLOCK, run_in_ort

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight, Weights, weight_of
from irgym.envs.graph.reference.operators import types_of
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules import activations, attention, heads, normalisation, products, scaling

BACKWARDS = {"linear-gemm", "gather-split", "split-hard-swish"}
ALSO = {"turn-weights", "fold-scale"}
FORWARDS = [
    rule
    for rules in (heads, products, attention, activations, normalisation)
    for rule in rules.RULES
    if rule.name not in BACKWARDS and "transpose-batch" not in rule.name
] + [rule for rule in scaling.RULES if rule.name in ALSO]
BATCH, LENGTH, HEADS, SIZE = 2, 6, 4, 5
HIDDEN = HEADS * SIZE
LEAST = -3.4028234663852886e38


class Layer:
    """Writes a graph, operator by operator."""

    def __init__(self, *shape: int) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.types = {"x": TensorType("float32", shape)}
        self.weights: dict[str, Weight] = {}
        self.arrays: dict[str, Any] = {}

    def weight(self, array: Any) -> str:
        array = np.asarray(array)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        name = f"w{len(self.weights)}"
        self.arrays[name], self.weights[name] = array, weight_of(name, array)
        self.types[name] = self.weights[name].type
        return name

    def random(self, *shape: int) -> str:
        return self.weight(0.3 * self.rng.standard_normal(shape))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}.{place}" for place in range(outputs)]
        added = node(operator, inputs, names, **attributes)
        known = [self.arrays.get(name) for name in inputs]
        kinds = types_of(operator, [self.types[name] for name in inputs], attributes, known, outputs)
        self.types.update(zip(names, kinds, strict=True))
        self.nodes.append(added)
        return names if outputs > 1 else names[0]

    def linear(self, x: str, out: int, bias: bool = True) -> str:
        product = self.add("MatMul", x, self.random(self.types[x].shape[-1], out))
        return self.add("Add", product, self.random(out)) if bias else product

    def reshape(self, x: str, *shape: int) -> str:
        return self.add("Reshape", x, self.weight(np.array(shape)))

    def split(self, x: str) -> str:
        heads = self.reshape(x, BATCH, LENGTH, -1, SIZE)
        return self.add("Transpose", heads, perm=(0, 2, 1, 3))

    def attend(self, q: str, k: str, v: str, mask: str = "") -> str:
        """Add PyTorch's scaled_dot_product_attention, and return its result."""
        scale = self.weight(SIZE**-0.25)
        flat = self.reshape(k, -1, LENGTH, SIZE)
        turned = self.reshape(self.add("Transpose", flat, perm=(0, 2, 1)), BATCH, HEADS, SIZE, LENGTH)
        scores = self.add("MatMul", self.add("Mul", q, scale), self.add("Mul", turned, scale))
        shares = self.add("Softmax", self.add("Add", scores, mask) if mask else scores, axis=-1)
        clean = self.add("Where", self.add("IsNaN", shares), self.weight(0.0), shares)
        return self.add("MatMul", clean, v)

    def join(self, x: str, *shape: int) -> str:
        return self.reshape(self.add("Transpose", x, perm=(0, 2, 1, 3)), *shape)

    def graph(self, output: str) -> Graph:
        return Graph.of(self.nodes, self.types, self.weights, ["x"], [output], [("", 20)])


def closed(graph: Graph, rules: Sequence[Rule]) -> Graph:
    """Apply rules while any applies."""
    while True:
        found = (
            (rule, site)
            for rule in rules
            for node in graph.order
            if rule.anchors is None or node.operator in rule.anchors
            for site in rule.sites(graph, node, BLOCK)
        )
        first = next(found, None)
        if first is None:
            return graph
        rule, site = first
        graph = graph.rewritten(rule.rewrite(graph, site, BLOCK))


def check(layer: Layer, output: str, wanted: Iterable[str]) -> Graph:
    before = layer.graph(output)
    after = closed(before, FORWARDS)
    found = Counter(node.operator.removeprefix("com.microsoft.") for node in after.nodes.values())
    assert found == Counter(wanted)
    weights = Weights(layer.arrays)
    feeds = {"x": np.random.default_rng(1).standard_normal(layer.types["x"].shape).astype(np.float32)}
    [first], [second] = (run_in_ort(graph, weights, feeds) for graph in (before, after))
    assert second == pytest.approx(first, rel=1e-4, abs=1e-4)
    return after


def test_an_encoder_layer_becomes_six_operators():
    layer = Layer(BATCH, LENGTH, HIDDEN)
    q, k, v = (layer.split(layer.linear("x", HIDDEN)) for _ in range(3))
    seen = np.ones((BATCH, 1, 1, LENGTH), bool)
    seen[0, ..., 4:] = False
    mask = layer.weight(np.where(seen, 0, LEAST))
    attended = layer.linear(layer.join(layer.attend(q, k, v, mask), BATCH, LENGTH, HIDDEN), HIDDEN)
    scale, shift = layer.random(HIDDEN), layer.random(HIDDEN)
    first = layer.add("LayerNormalization", layer.add("Add", attended, "x"), scale, shift, axis=-1)
    inner = layer.add("Gelu", layer.linear(first, 3 * HIDDEN), approximate="none")
    total = layer.add("Add", layer.linear(inner, HIDDEN), first)
    output = layer.add("LayerNormalization", total, scale, shift, axis=-1)
    products, normal = ["MatMul"] * 3, ["SkipLayerNormalization"] * 2
    check(layer, output, ["Expand", "Attention", "BiasGelu", *products, *normal])


def test_packed_projections_and_a_causal_mask_become_causal_packed_attention():
    layer = Layer(BATCH, LENGTH, HIDDEN)
    rows = layer.reshape("x", -1, HIDDEN)
    packed = layer.add("Gemm", rows, layer.random(HIDDEN, 3 * HIDDEN), layer.random(3 * HIDDEN))
    whole = layer.reshape(packed, BATCH, LENGTH, 3 * HIDDEN)
    q, k, v = (layer.split(part) for part in layer.add("Split", whole, outputs=3, axis=2, num_outputs=3))
    mask = layer.weight(np.where(np.tri(LENGTH, dtype=bool), 0, LEAST)[None, None].repeat(BATCH, 0))
    joined = layer.join(layer.attend(q, k, v, mask), BATCH * LENGTH, HIDDEN)
    product = layer.add("Gemm", joined, layer.random(HIDDEN, 7), layer.random(7))
    after = check(layer, layer.reshape(product, BATCH, LENGTH, 7), ["Attention", "MatMul", "Add"])
    [attended] = [node for node in after.nodes.values() if "Attention" in node.operator]
    assert attended.attribute("unidirectional") == 1
    assert attended.inputs[3:] == ()


def test_attention_whose_sequence_comes_first_becomes_packed_attention():
    layer = Layer(BATCH, LENGTH, HIDDEN)
    turned = layer.add("Transpose", "x", perm=(1, 0, 2))
    stacked = layer.reshape(layer.linear(turned, 3 * HIDDEN), LENGTH, BATCH, 3, HIDDEN)
    stacked = layer.add("Unsqueeze", stacked, layer.weight(np.array([0])))
    stacked = layer.add("Transpose", stacked, perm=(3, 1, 2, 0, 4))
    stacked = layer.add("Squeeze", stacked, layer.weight(np.array([-2])))
    flat: list[str] = []
    for place in range(3):
        part = layer.add("Gather", stacked, layer.weight(np.array(place)), axis=0)
        part = layer.reshape(part, LENGTH, BATCH * HEADS, SIZE)
        flat.append(layer.add("Transpose", part, perm=(1, 0, 2)))
    q, k, v = (layer.reshape(part, BATCH, HEADS, LENGTH, SIZE) for part in flat)
    joined = layer.add("Transpose", layer.attend(q, k, v), perm=(2, 0, 1, 3))
    rows = layer.reshape(joined, LENGTH * BATCH, HIDDEN)
    product = layer.add("Gemm", rows, layer.random(HIDDEN, HIDDEN), layer.random(HIDDEN), transB=1)
    whole = layer.reshape(product, LENGTH, BATCH, HIDDEN)
    check(layer, layer.add("Transpose", whole, perm=(1, 0, 2)), ["Attention", "MatMul", "Add"])


def test_heads_that_are_needed_elsewhere_stay():
    layer = Layer(BATCH, LENGTH, HIDDEN)
    q, k, v = (layer.split(layer.linear("x", HIDDEN)) for _ in range(3))
    joined = layer.join(layer.attend(q, k, v), BATCH, LENGTH, HIDDEN)
    kept = layer.join(layer.add("Relu", k), BATCH, LENGTH, HIDDEN)
    projections = ["MatMul", "Add", "MatMul", "MatMul"]
    moves = ["Reshape", "Transpose", "Relu", "Transpose", "Reshape"]
    output = layer.add("Add", joined, kept)
    check(layer, output, ["MultiHeadAttention", *projections, *moves, "Add"])
