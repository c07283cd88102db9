"""Limits of episodes, and rewards, from the request to the policy's file, and from there to its use."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from passes import URIS

import irgym
from irgym.base.errors import IrgymError
from irgym.cli.main import main
from irgym.core.limits import Limits
from irgym.core.reward import LogSpeedup, Transition
from irgym.policies.plain import PlainPolicy
from irgym.policies.run_folder import RunFolder

pytest.importorskip("torch")

HIDDEN = {"episodes": 4, "hidden": (8,)}


@pytest.fixture
def run(tmp_path: Path, names: list[str]) -> Path:
    """A run with episodes of two steps and two kinds of actions."""
    folder = tmp_path / "run"
    main(
        [
            *("train", "passes", "--run", str(folder), "--iterations", "1", "--horizon", "2"),
            *("--actions", ",".join(names), "--set", "episodes=4", "hidden=8", "validate_every=0"),
        ]
    )
    return folder


@pytest.fixture
def names() -> list[str]:
    kinds = irgym.task(URIS[0]).space.kinds
    return [kind.name for kind in kinds if not kind.ends][:2]


def used(comparison: Any, methods: str) -> set[str]:
    rows = [row for row in comparison.rows if row.method.startswith(methods)]
    return {word for row in rows for word in row.schedule.split()}


def test_a_policy_keeps_its_limits(run: Path, names: list[str]) -> None:
    limits = Limits(2, ",".join(names))
    plain = PlainPolicy.load(RunFolder(run).policy)
    assert plain is not None and plain.limits == limits
    assert irgym.load_policy(run).limits == limits
    config = json.loads(RunFolder(run).config.read_text())
    assert (config["horizon"], config["actions"]) == (2, ",".join(names))
    evaluated = irgym.evaluate(run)
    assert (evaluated.settings["horizon"], evaluated.settings["actions"]) == (2, ",".join(names))
    methods = ["base", f"policy:{run}", f"guided:{run}", "greedy"]
    compared = irgym.compare("passes", methods=methods, comparing=irgym.Comparing(evaluations=40))
    for method in ("raw:", "policy:", "guided:"):
        assert used(compared, method) <= set(names)
        assert all(len(row.schedule.split()) <= 2 for row in compared.rows if row.method.startswith(method))
    assert used(compared, "greedy") - set(names)
    tuned = irgym.tune(URIS[0], policy=run, searching=irgym.Searching(evaluations=20))
    assert set(tuned.schedule.split()) <= set(names) and len(tuned.schedule.split()) <= 2


def test_limits_that_are_given_go_before_the_policys(run: Path, names: list[str]) -> None:
    wide = irgym.Measuring(horizon=6, actions="all")
    evaluated = irgym.evaluate(run, measuring=wide)
    assert (evaluated.settings["horizon"], evaluated.settings["actions"]) == (6, "all")
    compared = irgym.compare(
        "passes",
        methods=[f"guided:{run}", "greedy"],
        comparing=irgym.Comparing(evaluations=60),
        measuring=irgym.Measuring(horizon=1, actions="all"),
    )
    assert all(len(row.schedule.split()) <= 1 for row in compared.rows)
    assert used(compared, "guided") - set(names)


def test_a_run_is_resumed_within_its_limits_only(run: Path) -> None:
    with pytest.raises(IrgymError, match=r"has (actions|horizon) = .*, not None"):
        training = irgym.Training(iterations=2, resume=True, hyperparameters=HIDDEN | {"validate_every": 0})
        irgym.train("passes", run, training=training)


@pytest.mark.parametrize(
    ("measuring", "reason"),
    [
        ({"actions": "jump"}, "there is no action 'jump': choose among"),
        ({"actions": ""}, "actions"),
        ({"horizon": 0}, "at least one step"),
        ({"horizon": 1.5}, "whole number"),
    ],
)
def test_limits_that_make_no_sense(measuring: dict[str, Any], reason: str, tmp_path: Path) -> None:
    for call in (
        lambda where: irgym.tune(URIS[0], measuring=where),
        lambda where: irgym.compare("passes", measuring=where),
        lambda where: irgym.train("passes", tmp_path / "run", measuring=where),
        lambda where: irgym.imitate("passes", tmp_path / "file.pt", measuring=where),
    ):
        with pytest.raises(IrgymError, match=reason):
            call(irgym.Measuring(**measuring))


def test_a_replay_and_the_history_have_no_limits() -> None:
    for call in (lambda where: irgym.replay(URIS[0], "", measuring=where), irgym_history):
        with pytest.raises(IrgymError, match="leave out --horizon and --actions"):
            call(irgym.Measuring(horizon=2))


def irgym_history(where: irgym.Measuring) -> None:
    irgym.history(URIS[0], measuring=where)


def test_imitation_keeps_to_the_limits(tmp_path: Path, names: list[str]) -> None:
    file, limits = tmp_path / "imitated.pt", Limits(3, ",".join(names))
    irgym.imitate(
        "passes",
        file,
        imitating=irgym.Imitating(searched=2, evaluations=20, hyperparameters={"epochs": 1, "hidden": (8,)}),
        measuring=irgym.Measuring(horizon=3, actions=limits.actions),
    )
    assert irgym.load_policy(file).limits == limits


@dataclass(frozen=True)
class Discouraging:
    """The logarithm of the speedup, less a price for each action."""

    price: float = 0.1
    every: int = 0
    shaped: bool = False

    def __call__(self, transition: Transition) -> float:
        assert transition.task.accepts(transition.state, transition.action)
        return LogSpeedup()(transition) - self.price


def test_a_reward_of_the_users_own(tmp_path: Path) -> None:
    def train(reward: Any, folder: str = "run", **options: Any) -> None:
        training = irgym.Training(reward=reward, iterations=1, hyperparameters=HIDDEN, **options)
        irgym.train("passes", tmp_path / folder, training=training)

    train(Discouraging(price=0.5))
    config = json.loads(RunFolder(tmp_path / "run").config.read_text())
    assert config["reward"] == f"{__name__}:Discouraging:price=0.5"
    train(Discouraging(price=0.5), resume=True)
    train(f"{__name__}:Discouraging:price=0.5", resume=True)
    with pytest.raises(IrgymError, match=r"reward = .*price=0.5, not .*Discouraging"):
        train(Discouraging(), resume=True)
    with pytest.raises(IrgymError, match="throughput needs a peak"):
        train("throughput", "other")
    with pytest.raises(IrgymError, match=r"is no reward .it is a class"):
        train(Discouraging, "other")
    assert not (tmp_path / "other").exists()
    first = RunFolder(tmp_path / "run").read_metrics()[0]
    assert first["reward_mean"] < 0 or first["steps"] == 0
