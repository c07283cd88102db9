"""All rules, in the order of checking: what others rest on comes first."""

from irgym.conformance.rule import PairRule, Rule, StateRule
from irgym.conformance.rules.capabilities import CAPABILITY_RULES
from irgym.conformance.rules.environments import ENVIRONMENT_RULES
from irgym.conformance.rules.exports import EXPORT_RULES
from irgym.conformance.rules.jobs import JOB_RULES, KEY_RULES
from irgym.conformance.rules.masks import MASK_RULES
from irgym.conformance.rules.observations import OBSERVATION_RULES
from irgym.conformance.rules.values import VALUE_RULES

STATE_RULES: tuple[StateRule, ...] = (
    *MASK_RULES[:2],
    *JOB_RULES[:1],
    *VALUE_RULES,
    *MASK_RULES[2:],
    *JOB_RULES[1:],
    *OBSERVATION_RULES,
    *EXPORT_RULES,
    *CAPABILITY_RULES,
)

PAIR_RULES: tuple[PairRule, ...] = KEY_RULES

RULES: dict[str, Rule] = {rule.name: rule for rule in (*ENVIRONMENT_RULES, *STATE_RULES, *PAIR_RULES)}
"""The rules by name."""

OBJECTIVE_RULES = frozenset(rule.name for rule in (*JOB_RULES, *KEY_RULES)) - {"validates"}
"""Names of the rules that are checked under every objective."""
