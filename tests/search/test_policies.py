"""Which file a policy's name means."""

from pathlib import Path

import pytest

from irgym.base.errors import IrgymError
from irgym.core.environment import DEFAULT, Environment, policies_in
from irgym.policies.run_folder import RunFolder
from irgym.search.policies import policy_path


@pytest.fixture
def shipping(environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment with a policy for all targets, one for x86-64-v3, and none of that for aarch64."""
    for name in ("all", "all-x86-64-v3", "narrow"):
        (tmp_path / f"{name}.pt").write_bytes(b"policy")
    shipped = policies_in(tmp_path, "all", {"x86-64-v3": "narrow", "aarch64": "gone"})
    monkeypatch.setattr(environment, "policies", lambda: shipped)
    return environment


def test_the_default_is_that_of_the_target(shipping: Environment) -> None:
    meant = {target: policy_path(DEFAULT, shipping, target).stem for target in ("x86-64-v3", "x86-64-v4")}
    assert meant == {"x86-64-v3": "narrow", "x86-64-v4": "all"}
    assert policy_path(DEFAULT, shipping).stem == "all"


def test_a_policy_that_is_named_itself_is_taken_on_every_target(shipping: Environment) -> None:
    assert policy_path("all", shipping, "x86-64-v3").stem == "all"
    assert policy_path("narrow", shipping, "x86-64-v4").stem == "narrow"
    assert policy_path("default-x86-64-v3", shipping, "x86-64-v4").stem == "narrow"


def test_a_target_whose_policy_does_not_ship_has_the_general_one(shipping: Environment) -> None:
    assert policy_path(DEFAULT, shipping, "aarch64").stem == "all"
    assert sorted(shipping.policies()) == ["all", "all-x86-64-v3", "default", "default-x86-64-v3", "narrow"]
    with pytest.raises(IrgymError, match="one of all-x86-64-v3, all, narrow, default"):
        policy_path("best", shipping, "x86-64-v3")


def test_the_policy_of_a_run_that_has_learned_nothing_is_refused(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.create({"environment": "loops", "agent": "PPOConfig", "config": {"start": ""}})
    folder.policy.touch()
    with pytest.raises(IrgymError, match="has not finished an iteration, so its policy is untrained"):
        policy_path(tmp_path, None)
    folder.append_metrics({"iteration": 1})
    assert policy_path(tmp_path, None) == folder.policy
    folder.create({"environment": "loops", "agent": "PPOConfig", "config": {"start": "imitated.pt"}})
    assert policy_path(tmp_path, None) == folder.policy
