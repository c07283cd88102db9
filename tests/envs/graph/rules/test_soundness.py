"""All rules keep the results of random instances, in numpy and in ONNX Runtime."""

from pathlib import Path

import pytest
from rules_in_ort import check_blocked_in_ort, check_in_ort, verify_often

from irgym.envs.graph import rules
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules.catalogue import GROUPS, RULES

BLOCKED = {
    rule.name
    for group in ("convolutions", "winograd", "merging", "pools", "layout")
    for rule in GROUPS[group]
}
"""Rules whose instances may have blocked operators."""


def named(rule: Rule) -> str:
    return rule.name


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_keeps_results_in_numpy(rule: Rule):
    verify_often(rule)


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_keeps_results_in_onnx_runtime(rule: Rule):
    if rule.name in BLOCKED:
        check_blocked_in_ort(rule)
    else:
        check_in_ort(rule)


def test_rules_have_unique_names_and_a_source():
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.source for rule in RULES)


def test_each_module_is_a_group():
    [folder] = rules.__path__
    assert set(GROUPS) == {path.stem for path in Path(folder).glob("*.py")} - {"__init__", "catalogue"}
