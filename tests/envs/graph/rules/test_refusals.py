"""Algebraic rules on small graphs: where they must not apply, and their results where they do."""

import numpy as np
import pytest
from small_graphs import applied, graph_of, operators_of, run_in_ort, sites_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rules import (
    algebra,
    cutting,
    identities,
    linear,
    movement,
    recurrence,
    reshaping,
    scaling,
)

FILES = (movement, reshaping, cutting, identities, linear, scaling, recurrence, algebra)
RULES = {rule.name: rule for file in FILES for rule in file.RULES}
ONES = np.ones((4, 4))
LEAST = -3.4028234663852886e38


def _products(*more: Node, outputs: tuple[str, ...] = ("y", "z")) -> Graph:
    nodes = [node("MatMul", ["x", "v"], ["y"]), node("MatMul", ["x", "w"], ["z"]), *more]
    return graph_of(nodes, {"x": (3, 4)}, {"v": ONES, "w": 2 * ONES}, outputs)


def test_products_of_one_input_are_merged():
    after = applied(RULES["merge-matmul"], _products())
    assert operators_of(after) == ["MatMul", "Split"]


def test_products_are_not_merged_where_one_needs_the_other():
    nodes = [node("MatMul", ["x", "v"], ["y"]), node("MatMul", ["y", "w"], ["z"])]
    graph = graph_of(nodes, {"x": (4, 4)}, {"v": ONES, "w": 2 * ONES}, ["z"])
    assert not sites_of(RULES["merge-matmul"], graph)
    gate = [
        node("MatMul", ["x", "v"], ["y"]),
        node("Add", ["y", "u"], ["s"]),
        node("MatMul", ["x", "s"], ["z"]),
    ]
    graph = graph_of(gate, {"x": (4, 4), "u": (4, 4)}, {"v": ONES}, ["z"])
    assert not sites_of(RULES["merge-matmul-computed"], graph)


def test_a_split_is_merged_with_a_split_of_its_part_though_one_needs_the_other():
    nodes = [
        node("Split", ["x", "s"], ["a", "b"], axis=0),
        node("Split", ["a", "t"], ["c", "d"], axis=0),
    ]
    graph = graph_of(nodes, {"x": (6, 2)}, {"s": [4, 2], "t": [1, 3]}, ["b", "c", "d"])
    after = applied(RULES["merge-splits"], graph)
    assert operators_of(after) == ["Split"]
    assert after.outputs == graph.outputs


def test_splits_are_not_merged_through_what_is_between():
    nodes = [
        node("Split", ["x", "s"], ["a", "b"], axis=0),
        node("Split", ["a", "t"], ["c", "d"], axis=0),
        node("Relu", ["a"], ["e"]),
    ]
    graph = graph_of(nodes, {"x": (6, 2)}, {"s": [4, 2], "t": [1, 3]}, ["b", "c", "d", "e"])
    assert not sites_of(RULES["merge-splits"], graph)


def test_whole_numbers_are_not_factored():
    whole = TensorType("int64", (2, 2))
    nodes = [
        node("MatMul", ["x", "v"], ["p"]),
        node("MatMul", ["x", "w"], ["q"]),
        node("Add", ["p", "q"], ["y"]),
    ]
    graph = graph_of(nodes, {"x": whole, "v": whole, "w": whole}, {}, ["y"])
    for name in ("factor-left", "merge-sum"):
        assert not sites_of(RULES[name], graph)


@pytest.mark.parametrize(
    ("rule", "graph"),
    [
        # the transposition exchanges no axes of size 1
        ("transpose-as-reshape", lambda: ([node("Transpose", ["x"], ["y"], perm=(1, 0))], {"x": (2, 3)}, {})),
        # x + 1 is not x, and x + 0 is not where it makes it larger
        ("remove-idle", lambda: ([node("Add", ["x", "c"], ["y"])], {"x": (2,)}, {"c": 1.0})),
        ("remove-idle", lambda: ([node("Add", ["x", "c"], ["y"])], {"x": (2,)}, {"c": np.zeros((1, 1))})),
        ("remove-idle", lambda: ([node("Cast", ["x"], ["y"], to=11)], {"x": (2,)}, {})),
        ("remove-idle", lambda: ([node("Sub", ["c", "x"], ["y"])], {"x": (2,)}, {"c": 0.0})),
        # a slice that goes back
        (
            "remove-idle",
            lambda: (
                [node("Slice", ["x", "a", "b", "c", "d"], ["y"])],
                {"x": (2,)},
                {"a": [-1], "b": [-9], "c": [0], "d": [-1]},
            ),
        ),
        # a gather along the axis that the product sums over
        (
            "hoist-gather",
            lambda: (
                [node("Gather", ["x", "i"], ["g"], axis=1), node("MatMul", ["g", "w"], ["y"])],
                {"x": (4, 3, 4)[:2]},
                {"i": [0, 1, 2, 1], "w": ONES},
            ),
        ),
        # the bias differs from row to row
        (
            "split-binary",
            lambda: (
                [
                    node("Split", ["x", "s"], ["a", "b"], axis=1),
                    node("Add", ["a", "c"], ["y"]),
                    node("Add", ["b", "c"], ["z"]),
                ],
                {"x": (2, 4)},
                {"s": [2, 2], "c": np.ones((2, 1))},
            ),
        ),
        # one part gets another operator
        (
            "split-up-unary",
            lambda: (
                [
                    node("Split", ["x", "s"], ["a", "b"], axis=1),
                    node("Relu", ["a"], ["y"]),
                    node("Tanh", ["b"], ["z"]),
                ],
                {"x": (2, 4)},
                {"s": [2, 2]},
            ),
        ),
        # the parts are joined in another order
        (
            "cancel-split",
            lambda: (
                [node("Split", ["x", "s"], ["a", "b"], axis=1), node("Concat", ["b", "a"], ["y"], axis=1)],
                {"x": (2, 4)},
                {"s": [2, 2]},
            ),
        ),
        # what is joined is of one type, and what it is made of is not
        (
            "concat-unary",
            lambda: (
                [
                    node("Cast", ["x"], ["a"], to=1),
                    node("Cast", ["z"], ["b"], to=1),
                    node("Concat", ["a", "b"], ["y"], axis=0),
                ],
                {"x": TensorType("int64", (2,)), "z": TensorType("float64", (2,))},
                {},
            ),
        ),
        (
            "concat-binary",
            lambda: (
                [
                    node("Greater", ["x", "x"], ["a"]),
                    node("Greater", ["z", "z"], ["b"]),
                    node("Concat", ["a", "b"], ["y"], axis=0),
                ],
                {"x": TensorType("int64", (2,)), "z": TensorType("float64", (2,))},
                {},
            ),
        ),
        # the index is not known
        (
            "gather-of-concat",
            lambda: (
                [node("Concat", ["x", "x"], ["c"], axis=0), node("Gather", ["c", "i"], ["y"], axis=0)],
                {"x": (2, 4), "i": TensorType("int64", ())},
                {},
            ),
        ),
        # the second operand is a vector, and the reshape makes a matrix of the result
        (
            "reshape-up-batch",
            lambda: (
                [node("MatMul", ["x", "z"], ["p"]), node("Reshape", ["p", "s"], ["y"])],
                {"x": (3, 1), "z": (1,)},
                {"s": [3, 1]},
            ),
        ),
        *[
            # a factor that a mask is made of, times something else, is infinite, and minus itself no number
            (rule, lambda nodes=nodes, more=more: (nodes, {"x": (2, 4), "z": (2, 4)}, {"c": LEAST, **more}))
            for rule, nodes, more in (
                (
                    "distribute-mul",
                    [node("Sub", ["x", "z"], ["s"]), node("Mul", ["s", "c"], ["y"])],
                    {},
                ),
                (
                    "scale-bias",
                    [node("Add", ["x", "b"], ["s"]), node("Mul", ["s", "c"], ["y"])],
                    {"b": 2.0},
                ),
                (
                    "merge-muls",
                    [node("Mul", ["x", "c"], ["s"]), node("Mul", ["s", "b"], ["y"])],
                    {"b": 2.0},
                ),
                (
                    "associate-first",
                    [node("Mul", ["x", "c"], ["s"]), node("Mul", ["s", "z"], ["y"])],
                    {},
                ),
                *(
                    (rule, [node("MatMul", ["x", "w"], ["p"]), node("Mul", ["p", "c"], ["y"])], {"w": ONES})
                    for rule in ("scale-into-left", "scale-into-right", "fold-scale")
                ),
                (
                    "fold-scale-of-input",
                    [node("Mul", ["x", "c"], ["s"]), node("MatMul", ["s", "w"], ["y"])],
                    {"w": ONES},
                ),
            )
        ],
        # a factor that may be infinite is not moved into a sum of products
        (
            "scale-into-left",
            lambda: (
                [node("MatMul", ["x", "w"], ["p"]), node("Mul", ["p", "c"], ["y"])],
                {"x": (2, 4), "c": ()},
                {"w": ONES},
            ),
        ),
    ],
)
def test_a_rule_does_not_apply(rule, graph):
    nodes, inputs, weights = graph()
    made = [value for node in nodes for value in node.outputs]
    used = {value for node in nodes for value in node.inputs}
    assert not sites_of(
        RULES[rule], graph_of(nodes, inputs, weights, [value for value in made if value not in used])
    )


def test_equal_computations_are_shared_and_different_ones_are_not():
    nodes = [
        node("Softmax", ["x"], ["a"], axis=0),
        node("Softmax", ["x"], ["b"], axis=0),
        node("Softmax", ["x"], ["c"], axis=1),
        node("Add", ["a", "b"], ["d"]),
        node("Add", ["d", "c"], ["y"]),
    ]
    graph = graph_of(nodes, {"x": (2, 3)}, {}, ["y"])
    assert sorted(site.name for site in sites_of(RULES["share"], graph)) == ["a", "b"]
    after = applied(RULES["share"], graph)
    assert operators_of(after) == ["Add", "Add", "Softmax", "Softmax"]
    assert not sites_of(RULES["share"], after)


def test_outputs_keep_their_names():
    nodes = [node("Transpose", ["x"], ["t"], perm=(1, 0)), node("Transpose", ["t"], ["y"], perm=(1, 0))]
    after = applied(RULES["cancel-transposes"], graph_of(nodes, {"x": (2, 3)}, {}, ["y"]))
    assert (after.outputs, operators_of(after)) == (("y",), ["Identity"])


def test_an_unrolled_recurrence_multiplies_its_inputs_once():
    """In two steps of h = tanh(x[t] V + h W), hoisting and sharing leave a single product of x."""
    nodes: list[Node] = []
    state = "h"
    for step in "01":
        nodes += [
            node("Gather", ["x", f"i{step}"], [f"x{step}"], axis=0),
            node("MatMul", [f"x{step}", "v"], [f"p{step}"]),
            node("MatMul", [state, "w"], [f"q{step}"]),
            node("Add", [f"p{step}", f"q{step}"], [f"s{step}"]),
            node("Tanh", [f"s{step}"], [f"h{step}"]),
        ]
        state = f"h{step}"
    rng = np.random.default_rng(0)
    weights = {"v": rng.standard_normal((4, 4)), "w": rng.standard_normal((4, 4)), "i0": 0, "i1": 1}
    graph = graph_of(nodes, {"x": (2, 1, 4), "h": (1, 4)}, weights, [state])
    after = graph
    for name in ("hoist-gather", "hoist-gather", "share"):
        after = applied(RULES[name], after)
    assert [node.operator for node in after.order].count("MatMul") == 3
    feeds = {"x": rng.standard_normal((2, 1, 4), np.float32), "h": rng.standard_normal((1, 4), np.float32)}
    [wanted], [got] = (run_in_ort(program, Weights({}), feeds) for program in (graph, after))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_equal_rewrites_give_equal_graphs():
    graph = _products(node("Relu", ["y"], ["r"]), outputs=("r", "z"))
    digests = [applied(RULES["merge-matmul"], graph).digest for _ in range(2)]
    assert digests[0] == digests[1] != graph.digest
