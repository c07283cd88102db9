"""Features of rules: distinct for all rules, similar for similar ones."""

import numpy as np

from irgym.envs.graph.rewriting.traits import traits_of
from irgym.envs.graph.rules.catalogue import RULES

TRAITS = traits_of(RULES)
PLACES = {rule.name: place for place, rule in enumerate(RULES)}


def distance(first: str, other: str) -> float:
    return float(np.linalg.norm(TRAITS[PLACES[first]] - TRAITS[PLACES[other]]))


def test_all_rules_can_be_told_apart():
    assert len({row.tobytes() for row in TRAITS}) == len(RULES)


def test_rules_of_one_kind_are_alike():
    assert distance("block-max-pool", "block-average-pool") < distance("block-max-pool", "packed-attention")
    assert distance("lstm-cell", "gru-cell") < distance("lstm-cell", "conv-relu")


def test_the_other_way_round_is_another_rule():
    assert distance("conv-mul", "mul-conv") > 0


def test_a_rule_alone_has_the_operators_before_and_after():
    [row] = traits_of([RULES[PLACES["conv-relu"]]])  # no word is shared
    assert set(row) <= {0.0, 1.0}
    assert row.sum() == 3.0  # Relu and the convolution before, the convolution after
