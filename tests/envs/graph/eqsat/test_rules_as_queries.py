"""Every rule is found in an e-graph wherever it is found in a graph."""

from dataclasses import replace

import numpy as np
import pytest
from small_graphs import BLOCK, DOUBLE, SINGLE

from irgym.envs.graph.eqsat.queries import queries
from irgym.envs.graph.eqsat.saturation import ITSELF, Limits, is_multi, saturate
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import weight_of
from irgym.envs.graph.rewriting.language import parse_pattern
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import Instance, verify
from irgym.envs.graph.rules.catalogue import RULES


def single(instance: Instance) -> Graph:
    """Return the graph of an instance in float32, the only type of ONNX Runtime's contrib operators."""

    def of(kind: TensorType) -> TensorType:
        return TensorType("float32", kind.shape) if kind.dtype == "float64" else kind

    graph, weights = instance.graph, {}
    nodes = {
        name: replace(node, attributes=(("to", SINGLE),)) if node.attributes == (("to", DOUBLE),) else node
        for name, node in graph.nodes.items()
    }
    for name, weight in graph.weights.items():
        array = instance.weights.array(weight)
        weights[name] = weight_of(name, array.astype(of(weight.type).dtype))
    return replace(
        graph, nodes=nodes, types={name: of(kind) for name, kind in graph.types.items()}, weights=weights
    )


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.name not in ITSELF], ids=lambda rule: rule.name
)
def test_a_rule_finds_instances_of_its_pattern(rule: Rule):
    graph = single(verify(rule, np.random.default_rng(3), BLOCK))
    sites = list(rule.sites(graph, graph.nodes[anchor_of(rule, graph)], BLOCK))
    assert sites
    before = Tensors(graph, BLOCK)
    after = saturate(graph, [rule], BLOCK, Limits(iterations=1)).tensors
    # A value that becomes a constant keeps its number.
    assert (after.egraph.nodes, set(after.weights)) != (before.egraph.nodes, set(before.weights))


def anchor_of(rule: Rule, graph: Graph) -> str:
    return next(name for name in graph.nodes if list(rule.sites(graph, graph.nodes[name], BLOCK)))


def arities(*known: tuple[int, int]):
    return lambda operator: frozenset(known)


def test_queries_have_fixed_numbers_of_operators_and_values():
    [both, left] = queries(
        parse_pattern("y = Relu(c := Conv(x, w, [b]))"),
        lambda operator: frozenset({"Conv": {(3, 1), (2, 1)}, "Relu": {(1, 1)}}[operator]),
    )
    assert [atom.operator for atom in both] == ["Relu", "Conv"]
    assert {len(query[1].inputs) for query in (both, left)} == {2, 3}
    assert len(queries(parse_pattern("y = Add(Mul(a, b), c)"), arities((2, 1)))) == 4, "operands exchanged"
    joined = "y = Concat(*ts, axis=k); *ts = [MatMul(x, w) for w in ws]"
    found = queries(
        parse_pattern(joined), lambda operator: frozenset({(2, 1)} if operator == "MatMul" else {(3, 1)})
    )
    assert [[atom.inputs for atom in query] for query in found] == [
        [("ts.0", "ts.1", "ts.2"), ("x", "ws.0"), ("x", "ws.1"), ("x", "ws.2")]
    ]


def test_multi_pattern_rules():
    multi = {rule.name for rule in RULES if is_multi(rule)}
    assert {"merge-matmul", "merge-gemm", "merge-conv"} <= multi
    assert multi.isdisjoint({"split-up-unary", "split-two", "cancel-transposes", "concat-matmul-columns"})
