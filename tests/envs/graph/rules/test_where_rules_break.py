"""An unsound rule, which `fuzz/graph/rules.py` must find."""

from contextlib import closing
from dataclasses import replace

import pytest
from fuzz.graph.rules import Checker, instance, smallest

from irgym.envs.graph.rules.catalogue import RULES

pytestmark = pytest.mark.filterwarnings(
    r"ignore:os\.fork\(\) was called:RuntimeWarning"  # of JAX, if another test has imported it: not used here
)


def test_an_unsound_rule_is_found_and_its_instance_made_smaller():
    """Without a condition on the rank, ONNX Runtime refuses the replacement for a scalar."""
    rule = next(rule for rule in RULES if rule.name == "fast-gelu")
    careless = replace(rule, where="x.floating")
    with closing(Checker([careless])) as check:
        for number in range(300):
            fault = check(careless, 0, number).fault
            if fault is not None:
                break
        assert fault is not None and fault.kind == "refused"
        odd, smaller = smallest(check, careless, 0, number, fault)
    assert len(odd.steps) <= len(instance(careless, 0, number).steps)
    assert [kind.shape for kind in smaller.graph.types.values()] == [(), ()]
