"""Conditions of rules on unusual shapes: a rule applies only where its result keeps the type."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from small_graphs import BLOCK, applied, graph_of, sites_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.rules.catalogue import RULES

BY_NAME = {rule.name: rule for rule in RULES}
Shapes = Mapping[str, tuple[int, ...]]


def convolution_and_sum(z: tuple[int, ...]) -> Graph:
    """Return the sum of a convolution with a result of 1 by 1 and another input, possibly broadcast."""
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Add", ["c", "z"], ["y"])]
    return graph_of(nodes, {"x": (1, 2, 3, 3), "z": z}, {"w": np.ones((4, 2, 3, 3))}, ["y"])


def blocked_sum(z: tuple[int, ...]) -> Graph:
    nodes = [
        Node("com.microsoft.nchwc.Conv", ("x", "w"), ("c",)),
        node("Add", ["c", "z"], ["y"]),
    ]
    inputs = {"x": (1, BLOCK, 3, 3), "z": z}
    return graph_of(nodes, inputs, {"w": np.ones((BLOCK, BLOCK, 3, 3))}, ["y"])


def products(rows: Sequence[int], columns: Sequence[int], whole: Sequence[int], kind: str) -> Graph:
    """Return a product of heads in the batch dimension, with a reshaped result, as in DeBERTa."""
    a, b = (2, 3, 4, 6), (2, 3, 6, 6)
    nodes = [
        node("Reshape", ["a", "i"], ["g"]),
        node("Reshape", ["b", "j"], ["h"]),
        Node(kind, ("g", "h"), ("m",)),
        node("Reshape", ["m", "s"], ["y"]),
    ]
    shapes = {"i": np.array(rows), "j": np.array(columns), "s": np.array(whole)}
    return graph_of(nodes, {"a": a, "b": b}, shapes, ["y"])


def transposed(left: tuple[int, ...], right: tuple[int, ...], order: tuple[int, ...]) -> Graph:
    nodes = [node("Transpose", ["x"], ["t"], perm=order), node("MatMul", ["t", "w"], ["y"])]
    return graph_of(nodes, {"x": left, "w": right}, {}, ["y"])


def tanh_gelu(shape: tuple[int, ...]) -> Graph:
    nodes = [node("Gelu", ["x"], ["y"], approximate="tanh")]
    return graph_of(nodes, {"x": shape}, {}, ["y"])


def layer_normalisation(shape: tuple[int, ...]) -> Graph:
    nodes = [
        node("ReduceMean", ["x", "axes"], ["m"], keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["p"]),
        node("ReduceMean", ["p", "axes"], ["v"], keepdims=1),
        node("Add", ["v", "e"], ["o"]),
        node("Sqrt", ["o"], ["r"]),
        node("Div", ["d", "r"], ["q"]),
        node("Mul", ["q", "g"], ["y"]),
    ]
    weights: dict[str, Any] = {"axes": np.array([-1]), "e": np.array(1e-5), "g": np.ones(shape[-1])}
    return graph_of(nodes, {"x": shape}, weights, ["y"])


HEADS = [6, 4, 6], [6, 6, 6]
FUSED = "com.microsoft.FusedMatMul"

CASES = {
    "conv-sum": (
        "conv-sum",
        convolution_and_sum((1, 4, 1, 1)),
        [convolution_and_sum((1, 4, 5, 5)), convolution_and_sum((3, 4, 1, 1)), convolution_and_sum((1,))],
    ),
    "blocked-conv-sum": ("blocked-conv-sum", blocked_sum((1, BLOCK, 1, 1)), [blocked_sum((1, BLOCK, 5, 5))]),
    "split-batch-product": (
        "split-batch-product",
        products(*HEADS, [2, 3, 4, 6], "MatMul"),
        [products(*HEADS, [2, 3, 1, 24], "MatMul"), products(*HEADS, [2, 3, 6, 4], "MatMul")],
    ),
    "fused-split-batch-product": (
        "fused-split-batch-product",
        products(*HEADS, [2, 3, 4, 6], FUSED),
        [products(*HEADS, [2, 3, 1, 24], FUSED)],
    ),
    "transpose-batch": (
        "matmul-transpose-batch-left",
        transposed((4, 2, 3), (2, 3, 5), (1, 0, 2)),
        [transposed((4, 2, 3), (7, 2, 3, 5), (1, 0, 2)), transposed((4, 2, 3), (3, 5), (1, 0, 2))],
    ),
    "fast-gelu": ("fast-gelu", tanh_gelu((1,)), [tanh_gelu(())]),
    "layer-normalization": (
        "layer-normalization-product-unbiased",
        layer_normalisation((2, 3)),
        [layer_normalisation((2, 0)), layer_normalisation((0, 3))],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rules_apply_where_their_result_has_the_type_and_nowhere_else(case: str):
    name, good, others = CASES[case]
    rule = BY_NAME[name]
    after = applied(rule, good)
    assert after.types["y"] == good.types["y"]
    for graph in others:
        assert sites_of(rule, graph) == []
