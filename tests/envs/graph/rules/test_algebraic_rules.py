import numpy as np
import pytest
from small_graphs import BLOCK, in_float32, run_in_ort

from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import verify
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
RULES = [rule for file in FILES for rule in file.RULES]
SEEDS = 200


def named(rule: Rule) -> str:
    return rule.name


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_keeps_what_is_computed(rule: Rule):
    for seed in range(SEEDS):
        verify(rule, np.random.default_rng(seed), BLOCK)


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_onnx_runtime_agrees_with_what_a_rule_makes(rule: Rule):
    for seed in range(4):
        instance = in_float32(verify(rule, np.random.default_rng(seed), BLOCK))
        graph = instance.graph
        before = run_in_ort(graph, instance.weights, instance.feeds)
        for site in rule.sites(graph, graph.nodes[instance.anchor], BLOCK):
            rewritten = graph.rewritten(rule.rewrite(graph, site, BLOCK))
            after = run_in_ort(rewritten, instance.weights, instance.feeds)
            for wanted, got in zip(before, after, strict=True):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_rules_have_names_of_their_own_and_say_where_they_are_from():
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.source for rule in RULES)
