"""All rules on odd instances, in ONNX Runtime and in numpy: a short run of `fuzz/graph_rules.py`."""

from collections.abc import Iterator
from dataclasses import replace

import graph_rules
import graph_sequences
import pytest

from irgym.envs.graph.rules.catalogue import RULES

pytestmark = pytest.mark.filterwarnings(
    r"ignore:os\.fork\(\) was called:RuntimeWarning"  # of JAX, if another test has imported it: not used here
)

INSTANCES = 5
"""Number of odd instances of each rule."""

SEQUENCES = 40


@pytest.fixture(scope="module")
def check() -> Iterator[graph_rules.Checker]:
    checker = graph_rules.Checker()
    yield checker
    checker.close()


@pytest.mark.parametrize("part", range(6))
def test_rules_keep_what_odd_instances_compute(check: graph_rules.Checker, part: int):
    valid = applied = 0
    for rule in RULES[part::6]:
        for number in range(INSTANCES):
            result = check(rule, 0, number)
            said = result.fault and graph_rules.shown(
                graph_rules.instance(rule, 0, number), result.fault, number
            )
            assert result.fault is None, f"{rule.name}\n{said}"
            valid += result.valid
            applied += result.sites
    assert valid > 80 and applied > 40


def test_an_unsound_rule_is_found_and_its_instance_made_smaller():
    """Without a condition on the rank, ONNX Runtime refuses the replacement for a scalar."""
    rule = next(rule for rule in RULES if rule.name == "fast-gelu")
    careless = replace(rule, where="x.floating")
    checker = graph_rules.Checker([careless])
    try:
        for number in range(300):
            fault = checker(careless, 0, number).fault
            if fault is not None:
                break
        assert fault is not None and fault.kind == "refused"
        odd, smaller = graph_rules.smallest(checker, careless, 0, number, fault)
    finally:
        checker.close()
    assert len(odd.steps) <= len(graph_rules.instance(careless, 0, number).steps)
    assert [kind.shape for kind in smaller.graph.types.values()] == [(), ()]


def test_random_sequences_end_without_failures():
    sequences = graph_sequences.Sequences(graph_sequences.Options(families=False))
    told = [sequences.run(lambda _: None, number) for number in range(SEQUENCES)]
    assert [result.wrong for result in told if result.wrong] == []
    assert sum(result.failures for result in told) == 0
    assert sum(len(result.rules) for result in told) > SEQUENCES
    assert sum(result.ran for result in told) > SEQUENCES // 8
