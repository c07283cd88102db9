"""Rules in graphs with open sizes: what they make is right at all sizes, or they do not apply."""

from dataclasses import replace

import pytest
from fuzz.fuzzer import Tally
from fuzz.graph import open_sizes

from irgym.envs.graph.rules.catalogue import RULES

SOUND = {rule.name: rule for rule in RULES}


@pytest.mark.parametrize("seed", range(0, 10, 5))
def test_rules_keep_what_random_graphs_compute_at_all_sizes(seed: int):
    tally = Tally()
    for each in range(seed, seed + 5):
        tally.merge(open_sizes.run(each))
    assert not tally.findings
    assert len(tally.reached["rules"]) > 20 and tally.counts["sites in the reference"] > 150
    assert tally.notes["rewrites in ONNX Runtime"] > 100


def test_a_rule_for_one_size_is_found(monkeypatch: pytest.MonkeyPatch):
    wrong = replace(SOUND["merge-relus"], name="planted", before="y = Neg(x)", after="y = Relu(x)", shared=())
    monkeypatch.setattr(open_sizes, "RULES", (wrong,))
    tally = Tally()
    for seed in range(3):
        tally.merge(open_sizes.run(seed))
    assert any("planted@" in finding and "'n': 1" in finding for finding in tally.findings)
