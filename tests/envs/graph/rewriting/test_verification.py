"""Verification catches unsound rules: those of X-RLflow, and common mistakes."""

from dataclasses import replace

import numpy as np
import pytest
from small_graphs import BLOCK, applied, graph_of, operators_of, sites_of

from irgym.envs.graph.ir.node import node
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, array, pick, sample
from irgym.envs.graph.rewriting.verification import RuleError, verify
from irgym.envs.graph.rules.catalogue import RULES

SOUND = {rule.name: rule for rule in RULES}


def _product(rng: Rng) -> Sample:
    values = {
        "x": array(rng, 1, 2, 5, 5),
        "w": array(rng, 3, 2, 3, 3),
        "b": array(rng, 3),
        "m": array(rng, 3, 1, 1),
    }
    return sample(values, "w b m")


def _rows(rng: Rng) -> Sample:
    shape = pick(rng, (2, 3), (3, 2), (2, 2))
    return sample({"x": array(rng, *shape), "b": array(rng, 1, *shape), "s": [3, -1]}, "s")


def _differently_joined(rng: Rng) -> Sample:
    return sample({"xs": [array(rng, 2, 2), array(rng, 2, 2)]}, attributes={"k": pick(rng, 0, 1)})


def _not_uniform(rng: Rng) -> Sample:
    xs = [array(rng, 2, 2), array(rng, 2, 2)]
    values = {"xs": xs, "w": array(rng, *pick(rng, (2, 1), (2,)))}
    return sample(values, "w", attributes={"k": 0}, operators={"u": "Add"})


def changed(name: str, **changes: str) -> Rule:
    return replace(SOUND[name], name=f"planted-{name}", **changes)


PLANTED = [
    # create_conv_mul of X-RLflow multiplies the weights and forgets the bias.
    Rule(
        "xrlflow-conv-mul",
        before="y = Mul(c := Conv(x, w, b), m)",
        where="w.constant and m.constant",
        after="y = Conv(x, multiply(w, reshape(m, (m.shape[0], 1, 1, 1))), **c)",
        sample=_product,
    ),
    # the same, with the bias, but not multiplied
    Rule(
        "conv-mul-bias",
        before="y = Mul(c := Conv(x, w, b), m)",
        where="w.constant and m.constant",
        after="y = Conv(x, multiply(w, reshape(m, (m.shape[0], 1, 1, 1))), b, **c)",
        sample=_product,
    ),
    changed("merge-transposes", after="y = Transpose(x, perm=composed(q, p))"),
    changed("transpose-down-concat", after="y = Transpose(Concat(*xs, axis=k), perm=p)"),
    changed("transpose-up-softmax", after="y = Same(u, Transpose(x, perm=p), axis=k)"),
    changed("transpose-down-matmul", where="True", after="y = MatMul(a, b)"),
    changed("merge-slices", after="y = Slice(x, *cut)"),
    changed("gather-of-slice", after="y = Gather(x, i, axis=k)"),
    changed("cancel-concat", after="ys = xs"),
    changed(
        "merge-sum",
        after="y = MatMul(Concat(b, a, axis=a.rank - 1), concat(0, w, v))",
        where="w.constant and v.constant",
    ),
    changed("factor-right", after="y = MatMul(Add(a, b), w)"),
    changed(
        "bias-through", after="y = Add(MatMul(a, w), b)", where="b.constant and w.shape[0] == w.shape[1]"
    ),
    changed("fold-scale-of-input", after="y = MatMul(x, multiply(w, c))", where="w.shape[0] == w.shape[1]"),
    changed("split-binary", after="ys = Split(Same(u, concat(0, *bs), x), s, outputs=len(ys), axis=k)"),
    changed(
        "gemm-as-matmul",
        after="y = MatMul(a, w) if not b else Add(MatMul(a, w), b)",
        where="a.shape[0] == a.shape[1]",
    ),
    changed("sum-of-convs", after="y = Same(c, Concat(x, z, axis=1), concat(1, w, v))"),
    changed("share", where="c.operator == d.operator", after="zs = xs"),
    # the weight differs along the axis that is joined
    replace(SOUND["concat-scaled"], name="planted-concat-scaled", where="True", sample=_not_uniform),
    # a sum is broadcast to more axes than the reshape made
    Rule(
        "broadcast-away",
        before="y = Add(Reshape(x, s), b)",
        after="y = Add(x, b)",
        sample=_rows,
    ),
    Rule(
        "wrong-axis",
        before="y = Relu(Concat(*xs, axis=k))",
        after="y = Concat(*[Relu(x) for x in xs], axis=0)",
        sample=_differently_joined,
    ),
]


def _caught(rule: Rule) -> list[Exception]:
    """Return the errors of `verify` on instances to which a rule applies."""
    errors: list[Exception] = []
    for seed in range(200):
        try:
            verify(rule, np.random.default_rng(seed), BLOCK)
        except (RuleError, OperatorError, ValueError) as error:
            if "does not apply" not in str(error):
                errors.append(error)
    return errors


@pytest.mark.parametrize("rule", PLANTED, ids=lambda rule: rule.name)
def test_an_unsound_rule_is_caught(rule: Rule):
    assert _caught(rule)


def test_xrlflows_rule_is_caught_by_its_results():
    assert "is off by" in str(_caught(PLANTED[0])[0])


def test_a_rule_that_takes_a_value_away_that_others_use_is_caught():
    rule = replace(SOUND["merge-transposes"], name="planted", shared=())
    assert not _caught(rule)  # it is sound, and the engine refuses it where the first transposition is shared
    first = node("Transpose", ["x"], ["t"], perm=(1, 0, 2))
    nodes = [first, node("Transpose", ["t"], ["y"], perm=(0, 2, 1)), node("Relu", ["t"], ["z"])]
    graph = graph_of(nodes, {"x": (2, 3, 4)}, {}, ["y", "z"])
    assert not sites_of(rule, graph)
    assert operators_of(applied(SOUND["merge-transposes"], graph)) == ["Relu", "Transpose", "Transpose"]
