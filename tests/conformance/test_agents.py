"""Every built-in agent keeps the rules; planted violations are each found under their rule."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass, replace
from typing import Any

import dials
import numpy as np
import pytest
import torch
from learners import FARMED, SMALL
from ordering import ORDERING

import irgym
from irgym.agents import AGENTS
from irgym.agents.algorithms.a2c import A2C, A2CConfig
from irgym.agents.algorithms.dqn import DQN, DQNConfig
from irgym.agents.episodes.rollout import rollout
from irgym.agents.hyperparameters import Episodes
from irgym.agents.learner import NEEDED
from irgym.base.errors import IrgymError
from irgym.conformance.errors import ConformanceError
from irgym.conformance.rules.agents import AGENT_RULES
from irgym.conformance.training import check_training
from irgym.core.objective import TIME
from irgym.networks.policy import TorchPolicy
from irgym.policies import heads

PROBLEM = dials.problem(dials.CODES[7::30])
SCALAR = {"a2c": (A2C, A2CConfig), "dqn": (DQN, DQNConfig)}


def built_by(learner: Any, agent: str = "a2c") -> Any:
    """Return a small configuration that builds a learner of another class."""
    kind = type(SMALL[agent])
    wrong = type("Wrong", (kind,), {"build": lambda self, problem: learner(self, problem)})
    return wrong(**{name: getattr(SMALL[agent], name) for name in vars(SMALL[agent])})


def violation(config: Any, **keywords: Any) -> ConformanceError:
    with pytest.raises(ConformanceError) as caught:
        check_training(config, PROBLEM, **keywords)
    assert caught.value.subject == type(config).__name__ and "\n" not in str(caught.value)
    return caught.value


def test_every_agent_has_a_small_configuration():
    assert set(SMALL) == set(AGENTS.builtin)
    assert all(type(config) is AGENTS.load(name) for name, config in SMALL.items())


@pytest.mark.parametrize("name", [name for name in SMALL if name not in FARMED])
def test_agents_keep_the_rules(name: str):
    """Those that need no farm; `test_apex.py` checks Ape-X."""
    check_training(SMALL[name], PROBLEM)


class Flat(A2C):
    """One choice among all actions, so that every choice is an action."""

    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(replace(config, actions="flat"), problem)


class TakesForbiddenActions(Flat):
    def collect(self, *arguments: Any) -> Any:
        def choose(batch: Any, legal: Any) -> heads.Draw:
            scores = np.zeros(legal.shape, np.float32)
            return heads.sample(scores, np.ones_like(legal), self.layout, self.rng)

        return rollout(self.problem.tasks * 2, self.problem, self.encoder, self.layout, choose)


class PlaysHalf(A2C):
    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(replace(config, episodes=4), problem)


class LosesCosts(A2C):
    def iterate(self) -> Any:
        outcomes, statistics = super().iterate()
        return replace(outcomes, last=outcomes.last[1:]), statistics


class ReturnsAnArray(A2C):
    def iterate(self) -> Any:
        return super().iterate()[0].returns, None


class ReportsNan(A2C):
    def iterate(self) -> Any:
        outcomes, statistics = super().iterate()
        return outcomes, replace(statistics, value_loss=math.nan)


class ReportsATensor(A2C):
    def iterate(self) -> Any:
        outcomes, statistics = super().iterate()
        return outcomes, replace(statistics, entropy=torch.tensor(1.0))


class BlindPolicy(TorchPolicy):
    def act(self, observations: Any, masks: Any, rng: Any, temperature: float = 1.0) -> Any:
        scores, legal = self.scores(observations, masks)
        return self.layout.actions(self.best(-scores, np.ones_like(legal)), masks)


class ActsBlindly(Flat):
    def policy(self) -> TorchPolicy:
        return BlindPolicy(self.network.actor)


class NeverLearns(A2C):
    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.descent.step = lambda loss: None  # type: ignore[method-assign]


class DrawsFromNumpy(A2C):
    def iterate(self) -> Any:
        self.rng = np.random.default_rng(np.random.randint(1 << 30))  # noqa: NPY002
        return super().iterate()


class DrawsFromPython(A2C):
    def iterate(self) -> Any:
        self.rng = np.random.default_rng(random.getrandbits(32))
        return super().iterate()


class DrawsFromTorch(A2C):
    def iterate(self) -> Any:
        self.rng = np.random.default_rng(int(torch.randint(1 << 30, ())))
        return super().iterate()


class AsksTheClock(A2C):
    def iterate(self) -> Any:
        self.rng = np.random.default_rng(time.perf_counter_ns())
        return super().iterate()


class IgnoresItsSeed(A2C):
    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(replace(config, seed=0), problem)


class KeepsAnObject(A2C):
    def state_dict(self) -> Any:
        return {**super().state_dict(), "layout": self.layout}


class KeepsAFunction(A2C):
    def state_dict(self) -> Any:
        return {**super().state_dict(), "loss": lambda: None}


class HidesItsState(A2C):
    """Anneals by a count that its state leaves out."""

    steps = 0

    def iterate(self) -> Any:
        self.steps += 1
        self.iteration = self.steps
        return super().iterate()


class ForgetfulPolicy(TorchPolicy):
    def save(self, path: Any) -> None:
        with torch.no_grad():
            for weights in self.network.parameters():
                weights.neg_()
        super().save(path)
        with torch.no_grad():
            for weights in self.network.parameters():
                weights.neg_()


class SavesAnotherPolicy(A2C):
    def policy(self) -> TorchPolicy:
        return ForgetfulPolicy(self.network.actor)


class HasAnotherConfig(A2C):
    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.config = SMALL["dqn"]


class CannotBeBuilt(A2C):
    def __init__(self, config: Any, problem: Any) -> None:
        raise KeyError("encoder")


LEARNERS: dict[type[A2C], tuple[str, str]] = {
    HasAnotherConfig: ("build", "`config` is not the configuration"),
    CannotBeBuilt: ("build", "it raises KeyError: 'encoder'"),
    TakesForbiddenActions: ("masked", "which the mask forbids"),
    PlaysHalf: ("episodes", "an iteration has 4 episodes, and `episodes` is 8"),
    LosesCosts: ("episodes", "the lengths [8, 7, 8, 8]"),
    ReturnsAnArray: ("episodes", "no Outcomes with Statistics"),
    ReportsNan: ("statistics", "value_loss of iteration 1 is nan"),
    ReportsATensor: ("statistics", "entropy of iteration 1 is tensor"),
    ActsBlindly: ("acting", "which the mask forbids"),
    NeverLearns: ("learning", "takes no gradient step"),
    DrawsFromNumpy: ("seeds", "same seed differs in"),
    DrawsFromPython: ("seeds", "same seed differs in"),
    DrawsFromTorch: ("seeds", "same seed differs in"),
    AsksTheClock: ("seeds", "same seed differs in"),
    IgnoresItsSeed: ("seeds", "the seeds 0 and 1 are equal"),
    KeepsAnObject: ("state", "raises StorageError"),
    KeepsAFunction: ("state", "it raises"),
    HidesItsState: ("resumption", "lacks something that decides it"),
    SavesAnotherPolicy: ("policy-file", "gives other actions on dials://"),
}


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_a_wrong_learner_is_found(learner: type[A2C]):
    rule, words = LEARNERS[learner]
    found = violation(built_by(learner), iterations=2)
    assert found.rule == rule and words in found.detail


PARTS = [(agent, part) for agent in SCALAR for part in SMALL[agent].build(PROBLEM).state_dict()]


@pytest.mark.parametrize(("agent", "part"), PARTS)
def test_an_unfinished_state_is_found(agent: str, part: str):
    base = SCALAR[agent][0]

    class Forgets(base):  # type: ignore[misc, valid-type]
        def load_state_dict(self, state: Any) -> None:
            super().load_state_dict({**state, part: self.state_dict()[part]})

    skip = {rule.name: "not about resumption" for rule in AGENT_RULES if rule.name != "resumption"}
    assert violation(built_by(Forgets, agent), iterations=2, skip=skip).rule == "resumption"


def of_values(**members: Any) -> Any:
    """Return the configuration of a class with other checks of its values."""
    kind = dataclass(frozen=True)(type("Wrong", (A2CConfig,), {**members, "__annotations__": {}}))
    return kind(hidden=(8,), episodes=8)


def refuse(kind: type[Exception], message: str) -> Callable[[Any], None]:
    def check(config: Any) -> None:
        try:
            A2CConfig.__post_init__(config)
        except IrgymError as error:
            raise kind(message) from error

    return check


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (of_values(__post_init__=lambda self: None), "and must raise an IrgymError"),
        (of_values(__post_init__=refuse(ValueError, "no")), "raises ValueError: no, and must raise"),
        (of_values(__post_init__=refuse(IrgymError, "no:\nno")), "in more than one sentence"),
    ],
    ids=["accepted", "another error", "two lines"],
)
def test_values_that_are_not_refused_are_found(config: Any, words: str):
    found = violation(config)
    assert found.rule == "values" and words in found.detail


def test_a_value_beyond_a_range_is_tried():
    def check(config: Any) -> None:
        if config.gamma != 3:  # what is twice the limit of 1, and one more
            A2CConfig.__post_init__(config)

    found = violation(of_values(__post_init__=check))
    assert found.rule == "values" and found.detail.startswith("gamma = 3 ")


def test_fields_that_training_needs_are_found():
    changing = make_dataclass("Changing", [(name, Any, field(default=1)) for name in NEEDED])
    assert violation(changing()).rule == "fields"
    kept = of_values()
    odd = replace(kept)
    object.__setattr__(odd, "start", {1, 2})
    found = violation(odd)
    assert found.rule == "fields" and "config.json cannot hold" in found.detail


def test_every_rule_is_planted():
    planted = {rule for rule, _ in LEARNERS.values()} | {"fields", "values"}
    assert planted == {rule.name for rule in AGENT_RULES}


@dataclass(frozen=True)
class Little(A2CConfig):
    episodes: Episodes = 2


def test_agents_are_checked_by_name_and_by_class(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(AGENTS.builtin, "little", f"{__name__}:Little")  # type: ignore[arg-type]
    irgym.check_agent("little", ORDERING, ["passes://0"], iterations=2)
    irgym.check_agent(Little, ORDERING, dataset="all", iterations=2)
    with pytest.raises(ConformanceError, match="int breaks the rule 'fields': it is no dataclass"):
        irgym.check_agent(int)  # type: ignore[arg-type]
    with pytest.raises(IrgymError, match="there is no agent 'none'"):
        irgym.check_agent("none")
    with pytest.raises(IrgymError, match="there is no data set 'none'"):
        irgym.check_agent("a2c", dataset="none")


def test_no_time_is_measured(monkeypatch: pytest.MonkeyPatch):
    from irgym.envs.loops.environment import LOOPS

    assert LOOPS.objectives == (TIME,)
    monkeypatch.setattr(type(LOOPS), "bench", lambda *arguments, **keywords: pytest.fail("a bench"))
    irgym.check_agent(Little(hidden=(8,)), LOOPS, ["loops://mm/8x8x8", "loops://mm/8x9x8"], iterations=2)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"iterations": 1}, "too few to interrupt"),
        ({"skip": {"none": "reason"}}, "no rule 'none'"),
        ({"skip": {"seeds": ""}}, "without a reason"),
    ],
)
def test_senseless_arguments_are_refused(keywords: Any, words: str):
    with pytest.raises(IrgymError, match=words):
        check_training(SMALL["a2c"], PROBLEM, **keywords)


def test_generators_and_threads_of_the_process_stay_as_they_are():
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)

    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(()))  # noqa: NPY002

    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    first = drawn()
    random.setstate(before[0])
    np.random.set_state(before[1])  # noqa: NPY002
    torch.set_rng_state(before[2])
    count = torch.get_num_threads()
    check_training(replace(SMALL["a2c"], threads=count + 1), PROBLEM, iterations=2)
    assert drawn() == first and torch.get_num_threads() == count
