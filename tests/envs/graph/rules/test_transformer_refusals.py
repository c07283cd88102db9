"""Rules for transformers: where they must not apply."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from rules_in_ort import typed_graph
from small_graphs import BLOCK

from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules import activations, attention, heads, normalisation, products, scaling

RULES = {
    rule.name: rule
    for rules in (activations, attention, heads, normalisation, products, scaling)
    for rule in rules.RULES
}
LEAST = np.float32(-3.4e38)


def named(name: str) -> Rule:
    return RULES[name]


def applies(
    name: str,
    nodes: Sequence[Node],
    shapes: Mapping[str, tuple[int, ...]],
    arrays: Mapping[str, Any],
    outputs: Sequence[str] = ("y",),
    dtype: str = "float32",
) -> bool:
    graph = typed_graph(nodes, shapes, arrays, outputs, dtype)
    sites = [site for anchor in graph.order for site in named(name).sites(graph, anchor, BLOCK)]
    for site in sites:
        graph.rewritten(named(name).rewrite(graph, site, BLOCK))
    return bool(sites)


SCORES = dict.fromkeys(("x", "a", "s", "n", "y"), (1, 2, 4, 4))


def clean(mask: Any, *before: Node, **shapes: tuple[int, ...]) -> bool:
    nodes = [
        *before,
        node("Add", ["x", "m"], ["a"]),
        node("Softmax", ["a"], ["s"], axis=-1),
        node("IsNaN", ["s"], ["n"]),
        node("Where", ["n", "z", "s"], ["y"]),
    ]
    return applies("softmax-no-nan", nodes, {**SCORES, **shapes}, {"m": mask, "z": np.zeros((), np.float32)})


@pytest.mark.parametrize(
    ("mask", "wanted"),
    [
        (np.zeros((4, 4), np.float32), True),
        (np.full((4, 4), LEAST), True),
        (np.full((4, 4), -np.inf, np.float32), False),
        (np.full((4, 4), np.nan, np.float32), False),
    ],
)
def test_softmax_is_cleaned_only_of_what_cannot_be(mask: Any, wanted: bool):
    assert clean(mask) is wanted


def test_softmax_of_what_may_be_infinite_stays():
    shapes = {"r": (1, 2, 4, 4)}
    assert not clean(np.zeros((4, 4), np.float32), node("Log", ["r"], ["x"]), **shapes)
    assert not clean(np.zeros((4, 4), np.float32), node("Div", ["r", "r"], ["x"]), **shapes)
    assert clean(np.zeros((4, 4), np.float32), node("MatMul", ["r", "r"], ["x"]), **shapes)


def test_two_masks_together_may_overflow():
    nodes = [
        node("Add", ["r", "k"], ["x"]),
        node("Add", ["x", "m"], ["a"]),
        node("Softmax", ["a"], ["s"], axis=-1),
        node("IsNaN", ["s"], ["n"]),
        node("Where", ["n", "z", "s"], ["y"]),
    ]
    arrays = {"m": np.full((4, 4), LEAST), "k": np.full((4, 4), LEAST), "z": np.zeros((), np.float32)}
    assert not applies("softmax-no-nan", nodes, {**SCORES, "r": (1, 2, 4, 4)}, arrays)


def scaled(dtype: str, outputs: Sequence[str]) -> bool:
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Mul", ["m", "s"], ["y"])]
    shapes = dict.fromkeys(("x", "w", "m", "y"), (3, 3))
    return applies("matmul-scale-result", nodes, shapes, {"s": np.array(2, dtype)}, outputs, dtype)


def test_products_of_integers_and_products_used_elsewhere_stay():
    assert scaled("float32", ["y"])
    assert not scaled("int64", ["y"])
    assert not scaled("float32", ["y", "m"])


def normalised(axis: int, rank: int, scale: tuple[int, ...]) -> bool:
    shape = (2, 3, 4, 5)[:rank]
    nodes = [
        node("Add", ["x", "s"], ["t"]),
        node("LayerNormalization", ["t", "g"], ["y"], axis=axis),
    ]
    shapes = dict.fromkeys(("x", "s", "t", "y"), shape)
    return applies("skip-layer-normalization", nodes, shapes, {"g": np.ones(scale, np.float32)})


def test_skip_normalisation_is_of_the_last_axis_and_of_few_dimensions():
    assert normalised(-1, 3, (4,))
    assert normalised(2, 3, (4,))
    assert not normalised(1, 3, (3, 4))
    assert not normalised(-1, 4, (5,))


def test_a_sum_is_returned_only_where_it_is_needed():
    nodes = [node("Add", ["x", "s"], ["t"]), node("LayerNormalization", ["t", "g"], ["y"])]
    shapes = dict.fromkeys(("x", "s", "t", "y"), (2, 3, 4))
    arrays = {"g": np.ones(4, np.float32)}
    assert applies("skip-layer-normalization-sum", nodes, shapes, arrays, ["y", "t"])
    assert not applies("skip-layer-normalization-sum", nodes, shapes, arrays, ["y"])
    assert not applies("skip-layer-normalization", nodes, shapes, arrays, ["y", "t"])


def test_a_sum_that_the_normalisation_itself_needs_otherwise_makes_no_circle():
    nodes = [
        node("Add", ["x", "s"], ["t"]),
        node("ReduceMax", ["t"], ["g"], axes=(0, 1), keepdims=0),
        node("LayerNormalization", ["t", "g"], ["y"]),
    ]
    shapes = {**dict.fromkeys(("x", "s", "t", "y"), (2, 3, 4)), "g": (4,)}
    assert not applies("skip-layer-normalization-sum", nodes, shapes, {}, ["y", "t"])


def pieces(axes: tuple[int, ...], keepdims: int) -> bool:
    """Say whether a layer normalisation is found with axes as attributes, as before operator set 18."""
    mean = {"axes": axes, "keepdims": keepdims}
    nodes = [
        node("ReduceMean", ["x"], ["m"], **mean),
        node("Sub", ["x", "m"], ["d"]),
        node("Pow", ["d", "two"], ["p"]),
        node("ReduceMean", ["p"], ["v"], **mean),
        node("Add", ["v", "e"], ["o"]),
        node("Sqrt", ["o"], ["r"]),
        node("Div", ["d", "r"], ["q"]),
        node("Mul", ["q", "g"], ["k"]),
        node("Add", ["k", "b"], ["y"]),
    ]
    shapes = dict.fromkeys("xdpqky", (4, 4, 4))
    shapes.update(dict.fromkeys("mvor", (4, 4, 1) if keepdims else (4, 4)))
    arrays = {"two": np.array(2, np.float32), "e": np.array(1e-5, np.float32)}
    arrays.update({name: np.ones(4, np.float32) for name in "gb"})
    return applies("layer-normalization", nodes, shapes, arrays)


def test_layer_normalisation_is_over_the_last_axis():
    assert pieces((-1,), 1)
    assert pieces((2,), 1)
    assert not pieces((1,), 1)
    assert not pieces((-1,), 0)


def gelu(half: float, root: float) -> bool:
    nodes = [
        node("Div", ["x", "r"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["f"]),
        node("Mul", ["x", "h"], ["k"]),
        node("Mul", ["k", "f"], ["y"]),
    ]
    numbers = {"r": root, "one": 1.0, "h": half}
    arrays = {name: np.array(number, np.float32) for name, number in numbers.items()}
    return applies("erf-gelu", nodes, dict.fromkeys("xdefky", (3, 4)), arrays)


def test_gelu_is_recognised_by_its_constants():
    assert gelu(0.5, 2**0.5)
    assert not gelu(0.5, 1.4)
    assert not gelu(0.6, 2**0.5)


def multi_head(
    mask: tuple[int, ...], heads: tuple[int, int] = (2, 2), order: Sequence[int] = (0, 2, 1, 3)
) -> bool:
    """Say whether attention is found with a mask, numbers of heads, and an order of axes."""
    nodes = [
        *(node("Reshape", [name, f"s{name}"], [f"{name}3"]) for name in "qkv"),
        *(node("Transpose", [f"{name}3"], [f"{name}4"], perm=tuple(order)) for name in "qkv"),
        node("com.microsoft.FusedMatMul", ["q4", "k4"], ["p"], transB=1, alpha=0.5),
        node("Add", ["p", "m"], ["a"]),
        node("Softmax", ["a"], ["s"], axis=-1),
        node("MatMul", ["s", "v4"], ["o"]),
        node("Transpose", ["o"], ["t"], perm=(0, 2, 1, 3)),
        node("Reshape", ["t", "sy"], ["y"]),
    ]
    counts = {"q": heads[0], "k": heads[1], "v": heads[1]}
    shapes: dict[str, tuple[int, ...]] = {"m": mask, "y": (2, 5, 8), "t": (2, 5, 2, 4)}
    arrays = {"sy": np.array([2, 5, -1])}
    for rule, count in counts.items():
        shapes[rule] = (2, 5, 4 * count)
        shapes[f"{rule}3"] = (2, 5, count, 4)
        shapes[f"{rule}4"] = (2, count, 5, 4)
        arrays[f"s{rule}"] = np.array([2, 5, count, 4])
    shapes.update({"p": (2, 2, 5, 5), "a": (2, 2, 5, 5), "s": (2, 2, 5, 5), "o": (2, 2, 5, 4)})
    return applies("multi-head-attention-masked", nodes, shapes, arrays)


def test_attention_has_a_mask_that_fits_and_equal_heads():
    assert multi_head((1, 1, 5, 5))
    assert multi_head((2, 1, 1, 5))
    assert multi_head((5,))
    assert not multi_head((1, 1, 5, 5), heads=(2, 1))
    assert not multi_head((1, 1, 5, 5), order=(0, 2, 3, 1))


def causal(mask: Any, total: int = 5) -> bool:
    nodes = [
        node("com.microsoft.MultiHeadAttention", ["q", "k", "v", "", "", "m"], ["y"], num_heads=2),
    ]
    shapes = {"q": (1, 5, 8), "k": (1, total, 8), "v": (1, total, 8), "y": (1, 5, 8)}
    return applies("causal-attention", nodes, shapes, {"m": mask})


def test_causal_is_what_masks_all_that_comes_later_and_nothing_else():
    seen = np.tri(5, dtype=bool)
    mask = np.where(seen, 0, LEAST).astype(np.float32)[None, None]
    assert causal(mask)
    assert causal(np.where(seen, 0, -np.inf).astype(np.float32)[None, None])
    assert not causal(np.where(seen, 0, -1e4).astype(np.float32)[None, None])
    assert not causal(np.where(seen, 1, LEAST).astype(np.float32)[None, None])
    assert not causal(np.where(np.tri(5, k=1, dtype=bool), 0, LEAST).astype(np.float32)[None, None])
    assert not causal(np.where(np.tri(5, 6, dtype=bool), 0, LEAST).astype(np.float32)[None, None], 6)


def packed(shared: bool) -> bool:
    nodes = [
        *(node("MatMul", ["x", f"w{name}"], [name]) for name in "qkv"),
        node("com.microsoft.MultiHeadAttention", ["q", "k", "v"], ["y"], num_heads=2),
    ]
    shapes = {"x": (1, 3, 6), **dict.fromkeys("qkvy", (1, 3, 8))}
    arrays = {f"w{name}": np.full((6, 8), place, np.float32) for place, name in enumerate("qkv")}
    return applies("packed-attention", nodes, shapes, arrays, ["y", "k"] if shared else ["y"])


def test_projections_that_are_used_elsewhere_are_not_packed():
    assert packed(shared=False)
    assert not packed(shared=True)


def test_a_sum_of_a_product_with_itself_stays():
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "m"], ["y"])]
    shapes = {"x": (2, 3), "w": (3, 4), "m": (2, 4), "y": (2, 4)}
    assert not applies("matmul-as-gemm", nodes, shapes, {})


def test_a_large_bias_makes_no_gemm_of_rank_two():
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["y"])]
    shapes = {"x": (1, 3), "w": (3, 4), "m": (1, 4)}
    for bias, wanted in (((4,), True), ((1, 4), True), ((5, 4), False), ((1, 1, 4), False)):
        result = np.broadcast_shapes((1, 4), bias)
        assert applies("matmul-as-gemm", nodes, {**shapes, "b": bias, "y": result}, {}) is wanted


def test_a_linear_layer_whose_bias_is_wider_is_no_gemm():
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"])]
    shapes = {"x": (2, 3, 4), "p": (2, 3, 1)}
    for width, wanted in ((1, True), (5, False)):
        arrays = {"w": np.ones((4, 1), np.float32), "b": np.ones(width, np.float32)}
        assert applies("linear-gemm", nodes, {**shapes, "y": (2, 3, width)}, arrays) is wanted


def test_biases_of_keys_that_were_split_into_heads_stay():
    """ONNX Runtime's multi-head attention takes keys and values of rank 4 as split into heads already."""
    nodes = [
        node("Add", ["k", "c"], ["d"]),
        node("com.microsoft.MultiHeadAttention", ["q", "d", "v"], ["y"], num_heads=2),
    ]
    heads, rows = (1, 2, 5, 4), (1, 5, 8)
    for of_heads in (False, True):
        keys = heads if of_heads else rows
        shapes = {"q": (1, 3, 8), "k": keys, "d": keys, "v": keys, "y": (1, 3, 8)}
        arrays = {"c": np.ones(keys[-1], np.float32)}
        assert applies("attention-bias-k", nodes, shapes, arrays) is not of_heads
