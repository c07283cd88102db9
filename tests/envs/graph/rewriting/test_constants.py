"""Conditions on merged and moved constants: their products must stay ordinary numbers of their type."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_graphs import BLOCK, run_in_ort

from irgym.envs.graph.ir.computing import computed
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.magnitudes import Magnitude, magnitude_of
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.reading import read
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Stored, Weights, literal, weight_of
from irgym.envs.graph.reference.operators import types_of
from irgym.envs.graph.rewriting.building import RuleError
from irgym.envs.graph.rewriting.constants import computes, reassociates
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rules.catalogue import RULES

CASES = Path(__file__).parents[3] / "cases" / "graph"
FINDER = Finder(RULES, BLOCK)
BY_NAME = {rule.name: rule for rule in RULES}


def graph_in(kind: str, nodes: list[Node], x: tuple[int, ...], weights: Mapping[str, Any]) -> Graph:
    """Return a graph with an input x and an output y in a precision."""
    own = {name: literal(array, kind) for name, array in weights.items()}
    types = {"x": TensorType(kind, x)} | {name: weight.type for name, weight in own.items()}
    for added in nodes:
        given = [types[name] for name in added.inputs]
        types.update(zip(added.outputs, types_of(added.operator, given, dict(added.attributes)), strict=True))
    return Graph.of(nodes, types, own, ["x"], ["y"], [("", 20)])


def reached(graph: Graph, depth: int, most: int = 60) -> Iterator[tuple[str, Graph]]:
    """Return the graphs after all sequences of rewrites up to a length, with the last rule."""
    seen, frontier = {graph.digest}, [graph]
    for _ in range(depth):
        following: list[Graph] = []
        for state in frontier:
            for pairs in FINDER.all(state).values():
                for (place, _), (site,) in pairs:
                    after = state.rewritten(FINDER.rules[place].rewrite(state, site, BLOCK))
                    if after.digest not in seen and len(seen) < most:
                        seen.add(after.digest)
                        following.append(after)
                        yield FINDER.rules[place].name, after
        frontier = following


def taken(graph: Graph) -> set[str]:
    """Return the names of the rules that apply to a graph."""
    return {FINDER.rules[place].name for pairs in FINDER.all(graph).values() for (place, _), _ in pairs}


def scaled(kind: str, first: str, second: str, a: float, b: float) -> Graph:
    """Return x @ w, followed by two operators with a constant each."""
    nodes = [
        node("MatMul", ["x", "w"], ["u"]),
        node(first, ["u", "a"], ["v"]),
        node(second, ["v", "b"], ["y"]),
    ]
    w = np.random.default_rng(0).normal(size=(3, 2)).round(2)
    return graph_in(kind, nodes, (2, 3), {"w": w, "a": a, "b": b})


@pytest.mark.parametrize("name", ["merge_matmul_scales", "merge_div_denormal"])
def test_no_rewrite_of_a_file_makes_infinities_or_zeros(name: str):
    graph, arrays = read(CASES / f"{name}.onnx")
    weights = Weights(arrays)
    ordinary = np.random.default_rng(1).normal(size=graph.types["x"].shape).astype(np.float32)
    feeds = [{"x": np.zeros_like(ordinary)}, {"x": ordinary}, {"x": ordinary * np.float32(1e-30)}]
    wanted = [run_in_ort(graph, weights, feed)[0] for feed in feeds]
    for rule, after in reached(graph, 3):
        for feed, expected in zip(feeds, wanted, strict=True):
            np.testing.assert_allclose(run_in_ort(after, weights, feed)[0], expected, 1e-4, err_msg=rule)


EXTREMES = [
    ("float32", "Mul", "Mul", 1e25, 1e25),
    ("float32", "Mul", "Mul", 1e-25, 1e-25),
    ("float32", "Mul", "Mul", 1e25, 1e-25),
    ("float32", "Div", "Div", 1e-25, 1e-25),
    ("float32", "Div", "Div", 1e-40, 1.0),
    ("float32", "Mul", "Div", 1e25, 1e-25),
    ("float32", "Mul", "Mul", np.inf, 2.0),
    ("float32", "Mul", "Mul", np.nan, 2.0),
    ("float16", "Mul", "Mul", 300.0, 300.0),
    ("float16", "Mul", "Mul", 1e-3, 1e-3),
    ("float16", "Div", "Div", 1e-3, 1e-3),
    ("float64", "Mul", "Mul", 1e200, 1e200),
    ("float64", "Mul", "Mul", 1e-200, 1e-200),
]


@pytest.mark.parametrize(("kind", "first", "second", "a", "b"), EXTREMES)
def test_no_rewrite_changes_what_extreme_factors_make(kind: str, first: str, second: str, a: float, b: float):
    graph = scaled(kind, first, second, a, b)
    ordinary = np.random.default_rng(1).normal(size=(2, 3)).astype(kind)
    small = (ordinary * (1e-2 if kind == "float16" else 1e-20)).astype(kind)
    feeds = [{"x": np.zeros_like(ordinary)}, {"x": ordinary}, {"x": small}]
    wanted = [run_in_ort(graph, Weights({}), feed)[0] for feed in feeds]
    for rule, after in reached(graph, 2):
        for feed, expected in zip(feeds, wanted, strict=True):
            got = run_in_ort(after, Weights({}), feed)[0]
            np.testing.assert_allclose(got, expected, 1e-2 if kind == "float16" else 1e-5, err_msg=rule)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_ordinary_factors_are_merged(kind: str):
    assert {"merge-muls", "associate-first"} <= taken(
        graph_in(
            kind,
            [node("Mul", ["x", "a"], ["v"]), node("Mul", ["v", "b"], ["y"])],
            (2, 3),
            {"a": 0.5, "b": 0.25},
        )
    )


def test_numbers_that_round_what_is_added_to_them_are_not_merged():
    nodes = [node("Add", ["x", "a"], ["v"]), node("Add", ["v", "b"], ["y"])]
    magic = 1.5 * 2.0**23
    graph = graph_in("float32", nodes, (4,), {"a": magic, "b": -magic})
    x = np.array([0.3, 1.5, 2.7, -0.6], np.float32)
    assert "merge-adds" not in taken(graph)
    for rule, after in reached(graph, 2):
        [got] = run_in_ort(after, Weights({}), {"x": x})
        assert np.array_equal(got, np.rint(x)), rule
    assert "merge-adds" in taken(graph_in("float32", nodes, (4,), {"a": 3.0, "b": -3.0}))
    assert "merge-adds" in taken(graph_in("float32", nodes, (4,), {"a": -1e9, "b": 5.0}))


def test_a_mask_that_would_become_infinite_is_not_merged():
    nodes = [node("Add", ["x", "a"], ["v"]), node("Add", ["v", "b"], ["y"])]
    least = float(np.finfo(np.float32).min)
    assert "merge-adds" not in taken(graph_in("float32", nodes, (4,), {"a": least, "b": least}))


def stored(name: str, array: np.ndarray, **changes: Any) -> Stored:
    weight = weight_of(name, array)
    assert isinstance(weight, Stored)
    return weight


def test_large_weights_are_judged_by_their_bounds():
    rng = np.random.default_rng(3)
    w = rng.normal(size=(20, 20)).astype(np.float32)
    plain = stored("w", w)
    assert plain.magnitude == magnitude_of(w) and plain.least == np.abs(w).min() > 0
    half, huge, tiny = (literal(number, "float32") for number in (0.5, 3e38, 1e-38))
    for number, sound in ((half, True), (huge, False), (tiny, False)):
        made = computed("multiply", plain, number)
        assert isinstance(made, Computed) and made.sound is sound
    # One element far below what rounding leaves of the others does not count.
    w[0, 0] = 1e-42
    made = computed("multiply", stored("w", w), half)
    assert isinstance(made, Computed) and made.sound


def test_quotients_by_zero_and_roots_of_nothing_are_not_sound():
    zero, ones = literal(0.0, "float32"), literal(np.ones(3), "float32")
    assert not _sound(computed("divide", ones, zero))
    assert not _sound(computed("deviation", literal(np.zeros(3), "float32"), 0.0))
    assert _sound(computed("deviation", literal(np.zeros(3), "float32"), 1e-5))
    assert _sound(computed("multiply", ones, zero))


def _sound(weight: Any) -> bool:
    assert isinstance(weight, Computed)
    return weight.sound


def test_bfloat16_has_bounds_too():
    import ml_dtypes

    array = np.array([1e30, 2.0, 0.0], ml_dtypes.bfloat16)
    weight = stored("w", array)
    assert weight.magnitude.greatest > 9e29 and weight.zeros and weight.least == 2.0
    assert not _sound(computed("multiply", weight, weight))


@pytest.mark.parametrize("function", ["add", "subtract", "multiply", "divide", "matmul"])
def test_bounds_hold_what_is_computed(function: str):
    rng = np.random.default_rng(7)
    for _ in range(200):
        a, b = (rng.normal(size=(9, 9)) * 10.0 ** rng.integers(-8, 8, (9, 9)) for _ in range(2))
        made = computed(function, stored("a", a), stored("b", b))
        array = np.abs(Weights({"a": a, "b": b}).array(made))
        known = made.magnitude
        assert isinstance(known, Magnitude) and array.max() <= known.greatest * (1 + 1e-12)
        if function != "matmul":
            assert known.least * (1 - 1e-12) <= array[array > 0].min(initial=np.inf)


def test_a_rule_that_forgets_its_condition_is_guarded():
    """The engine checks the condition, so that no rule has to repeat it."""

    def sampled(_: np.random.Generator) -> Sample:
        return Sample({"x": np.ones(3), "a": np.array(2.0), "b": np.array(2.0)}, frozenset("ab"))

    careless = Rule(
        "careless",
        before="y = Mul(Mul(x, a), b)",
        after="y = Mul(x, multiply(a, b))",
        where="a.constant and b.constant and a.number < b.number or a.number == b.number",
        sample=sampled,
    )
    nodes = [node("Mul", ["x", "a"], ["v"]), node("Mul", ["v", "b"], ["y"])]
    for a, b, places in ((1e25, 1e25, 0), (1e-25, 1e-25, 0), (3.0, 5.0, 1)):
        graph = graph_in("float32", nodes, (3,), {"a": a, "b": b})
        assert len(list(careless.sites(graph, graph.nodes["y"], BLOCK))) == places
    assert reassociates(careless.before, careless.after) and computes(careless.before, careless.after)


def test_weights_that_are_no_numbers_take_no_part_in_merged_layers():
    """A first step with a zero state needs no weights of the state: 0 times NaN would be NaN."""
    names = ("merge-lstm", "merge-gru", "append-lstm", "lstm-cell", "gru-cell", "associate-left", "merge-sum")
    assert all(BY_NAME[name].moves_products for name in names)


def test_rules_that_only_move_are_not_guarded():
    for name in ("cancel-transposes", "concat-unary", "conv-relu", "reorder-mul"):
        assert not BY_NAME[name].moves_products


def test_the_guard_is_an_error_where_a_site_was_made_up():
    nodes = [node("Mul", ["x", "a"], ["v"]), node("Mul", ["v", "b"], ["y"])]
    good = graph_in("float32", nodes, (3,), {"a": 2.0, "b": 2.0})
    bad = graph_in("float32", nodes, (3,), {"a": 1e25, "b": 1e25})
    rule = BY_NAME["merge-muls"]
    [site] = rule.sites(good, good.nodes["y"], BLOCK)
    with pytest.raises(RuleError, match="merge-muls makes constants"):
        rule.rewrite(bad, site, BLOCK)
