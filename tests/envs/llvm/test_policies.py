"""The shipped policies on modules that they were not trained on."""

from pathlib import Path

import pytest

from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.schedule import replay
from irgym.policies.plain import PlainPolicy
from irgym.search.rollouts import outcome, rollout

LLVM = ENVIRONMENTS.load("llvm")
POLICIES = {name: path for name, path in LLVM.policies().items() if name != "default"}
OBSERVATIONS = {"packages": "", "graphs": "graph"}


def test_one_is_of_counts_and_another_of_graphs():
    assert LLVM.policies()["default"] == POLICIES["packages"]
    assert {name: PlainPolicy.load(path).observation for name, path in POLICIES.items()} == OBSERVATIONS


@pytest.mark.parametrize("name", POLICIES)
def test_they_are_small_and_close_to_oz(name: str):
    path: Path = POLICIES[name]
    assert path.stat().st_size < 1_500_000
    policy = PlainPolicy.load(path)
    for kernel in ("sorting", "signals"):
        task = LLVM.task(f"llvm://kernels/{kernel}.c")
        policy.check(task.space, task.observe(task.initial(), policy.observation))
        [way] = rollout(task, policy, 1, None)
        found = outcome(task, way).state.node.total
        o1, oz = (replay(task, task.pipeline(pipeline)).node.total for pipeline in ("o1", "oz"))
        assert found < o1 and found <= 1.01 * oz
