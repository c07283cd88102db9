import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import passes
import pytest

from irgym.base.errors import IrgymError
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.limits import Limits, limited
from irgym.core.reward import (
    LogSpeedup,
    NegativeCost,
    PeriodicImprovement,
    RelativeImprovement,
    Reward,
    Saving,
    Shaped,
    ThroughputGain,
    check_reward,
    reference_state,
)
from irgym.core.reward_names import REWARDS, reward_from, reward_names, reward_text

HOME = passes.PassEnvironment()  # its default is RelativeImprovement, and only it has `negative`

OWN = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Priced:
    price: float = 0.5
    every: int = 0
    shaped: bool = False

    def __call__(self, transition):
        return -self.price

class Plain:
    every, shaped = 0, False

    def __init__(self, price=1, name="x"):
        self.price, self.name = price, name

    def __call__(self, transition):
        return self.price

class Old(Plain):
    def __call__(self, costs, final):
        return 0.0

broken = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, with rewards of a user."""
    (tmp_path / "own_rewards.py").write_text(OWN)
    (tmp_path / "failing_rewards.py").write_text("1 / 0")
    (tmp_path / "needy_rewards.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    for name in ("own_rewards", "failing_rewards", "needy_rewards"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "own_rewards"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("default", RelativeImprovement()),
        ("negative", NegativeCost()),
        ("negative:scale=3", NegativeCost(scale=3.0)),
        ("terminal", LogSpeedup()),
        ("dense", RelativeImprovement(every=1)),
        ("saving", Saving()),
        ("saving:pipeline=core,failure=-2", Saving("core", failure=-2.0)),
        ("shaped:reward=saving:pipeline=core", Shaped(Saving("core"))),
        ("throughput:every=1", ThroughputGain(every=1)),
        ("log-speedup:every=2,failure=-1", LogSpeedup(every=2, failure=-1.0)),
        ("negative-cost:scale=0.5", NegativeCost(scale=0.5)),
        ("periodic:every=3,between=0", PeriodicImprovement(every=3, between=0.0)),
        ("shaped", Shaped(RelativeImprovement())),
        ("shaped:gamma=0.5", Shaped(RelativeImprovement(), gamma=0.5)),
        ("shaped:weight=2,reward=periodic:every=2", Shaped(PeriodicImprovement(2), weight=2.0)),
        ("irgym.core.reward:LogSpeedup:base=2", LogSpeedup(base=2.0)),
    ],
)
def test_rewards_by_name_and_the_text_that_names_them_again(text: str, wanted: Reward) -> None:
    reward = reward_from(HOME, text)
    assert reward == wanted
    assert reward_from(HOME, reward_text(reward)) == reward
    assert reward_text(text) == text


def test_objects_are_taken_as_they_are() -> None:
    reward = LogSpeedup(base=2.0)
    assert reward_from(HOME, reward) is reward
    assert reward_from(HOME, None) is HOME.default_reward
    assert reward_text(reward) == "irgym.core.reward:LogSpeedup:base=2.0"


def test_a_reward_names_the_pipeline_that_it_is_scaled_by() -> None:
    task = HOME.task(passes.URIS[0])
    folded = task.ops
    for name in ("fold0", "fold1", "fold2", "fold3"):
        folded = passes.apply(name, folded)
    for reward in (Saving("core"), Shaped(Saving("core"))):
        state = reference_state(reward, limited(task, Limits(horizon=1)))
        assert state is not None and state.ops == folded
    for reward in (Saving(), RelativeImprovement(), Shaped(RelativeImprovement())):
        assert reference_state(reward, task) is None
    check_reward(Saving("core"), task)
    with pytest.raises(IrgymError, match="choose core"):
        check_reward(Saving("cpu"), task)
    with pytest.raises(IrgymError, match="no pipeline 'core'"):
        check_reward(Saving("core"), ENVIRONMENTS.load("loops").task("loops://mm/8x8x8"))


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_every_environment_has_every_general_reward(name: str) -> None:
    environment = ENVIRONMENTS.load(name)
    assert set(REWARDS.names()) <= set(reward_names(environment))
    for reward in reward_names(environment):
        assert reward_from(environment, reward).every >= 0


def test_rewards_of_a_module_in_the_current_folder(module: str) -> None:
    priced: Any = reward_from(HOME, f"{module}:Priced:price=2")
    assert (priced.price, priced.every) == (2.0, 0)
    assert reward_from(HOME, reward_text(priced)) == priced
    plain: Any = reward_from(HOME, f"{module}:Plain:price=2.5,name=y")
    assert (plain.price, plain.name) == (2.5, "y")
    assert reward_text(plain) == f"{module}:Plain:price=2.5,name=y"
    shaped: Any = reward_from(HOME, f"shaped:reward={module}:Priced:every=1")
    assert shaped.shaped and shaped.every == 1
    assert "" not in sys.path


REFUSED = {
    "joy": "passes has no reward 'joy': choose among default, negative, terminal, dense",
    "": "has no reward ''",
    "dense:5": "'5' is no parameter",
    "dense:every=1,every=2": "given twice",
    "dense:x=1": "has no parameter 'x': choose among failure, every",
    "dense:every=-1": "must be 0 or more",
    "dense:every=often": "must be a whole number",
    "dense:shaped=true": "has no parameter 'shaped'",
    "periodic:every=0": "must be 1 or more",
    "shaped:reward=joy": "has no reward 'joy'",
    "shaped:reward=shaped": "shaped already",
    "shaped:gamma=2": "must be 0 to 1",
    "log-speedup:base=1": "must be more than 1",
    "nowhere.at_all:Reward": "there is no module nowhere",
    "irgym.core.reward:Nothing": "irgym.core.reward has no class Nothing",
    "irgym.core.reward:asks": "cannot be made",
    "own_rewards:broken": "has no class broken",
    "own_rewards:Plain:colour=1": "cannot be made",
    "own_rewards:Old": "one argument, the transition",
    "failing_rewards:X": "cannot be imported .ZeroDivisionError",
    "needy_rewards:X": "needs no_such_package: install it",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_reward_is_refused_in_a_sentence(module: str, text: str) -> None:
    with pytest.raises(IrgymError, match=REFUSED[text]) as refused:
        reward_from(HOME, text)
    assert "\n" not in str(refused.value)


@dataclass(frozen=True)
class Unasked:
    shaped: bool = False

    def __call__(self, transition: Any) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("reward", "reason"),
    [
        (LogSpeedup, "it is a class"),
        (5, "cannot be called"),
        (Unasked(), "no attribute every"),
        (lambda costs, final: 0.0, "no attribute every and no attribute shaped"),
    ],
)
def test_objects_that_are_no_rewards(reward: Any, reason: str) -> None:
    with pytest.raises(IrgymError, match=reason):
        reward_from(HOME, reward)


def test_a_reward_that_needs_a_bound_is_refused_where_there_is_none() -> None:
    task = HOME.task(HOME.dataset("all").train[0])
    for reward in (ThroughputGain(), Shaped(ThroughputGain())):
        with pytest.raises(IrgymError, match="throughput needs a peak"):
            check_reward(reward, task)
    check_reward(LogSpeedup(), task)
