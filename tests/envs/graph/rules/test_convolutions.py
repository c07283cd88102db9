"""Rules of convolutions: sound on random instances, and not applied where they would not be."""

import pytest
from rule_runs import check

from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules.convolutions import RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rules_keep_what_is_computed(rule: Rule):
    check(rule, 200)
