import pytest
from rules_in_ort import check_in_ort, verify_often

from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules.attention import RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_keeps_what_is_computed(rule: Rule):
    verify_often(rule)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_onnx_runtime_runs_what_a_rule_makes(rule: Rule):
    check_in_ort(rule)
