"""Every hyper-parameter of every algorithm, from its declaration: its range, and that nothing else passes."""

import math
from dataclasses import fields, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import dials
import pytest
from learners import FARMED, SMALL
from trainings import contents

from irgym.agents import AGENTS
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.checkpoint import restore
from irgym.agents.hyperparameters import Hyperparameters
from irgym.agents.imitation.cloning import ImitationConfig, clone
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.imitation.expert_iteration import Searches
from irgym.agents.optimisation import DivergedError
from irgym.agents.training import train
from irgym.base.errors import IrgymError, StorageError
from irgym.base.values import Range
from irgym.core.reward import LogSpeedup, Transition
from irgym.core.schedule import Schedule
from irgym.networks import storage
from irgym.networks.policy import TorchPolicy
from irgym.policies.run_folder import RunFolder
from irgym.search import SEARCHES
from irgym.search.budget import Budget

CONFIGS: list[Any] = [
    *(AGENTS.load(name)() for name in AGENTS.builtin),
    ImitationConfig(),
    Searches(SEARCHES.load("random")(), Budget(1), 1),
]
NUMBERS = [
    (config, field.name, get_type_hints(type(config), include_extras=True)[field.name])
    for config in CONFIGS
    for field in fields(config)
    if isinstance(getattr(config, field.name), int | float | tuple | None)
    and not isinstance(getattr(config, field.name), bool)
]
IDS = [f"{type(config).__name__}-{name}" for config, name, _ in NUMBERS]


def test_the_declarations_are_found():
    assert {type(config) for config in CONFIGS} >= {type(config) for config in SMALL.values()}
    assert all(isinstance(config, Hyperparameters) for config in CONFIGS)
    assert len(NUMBERS) > 90


@pytest.mark.parametrize(("config", "name", "hint"), NUMBERS, ids=IDS)
def test_every_number_declares_a_range_and_keeps_to_it(config: Any, name: str, hint: Any):
    assert get_origin(hint) is Annotated, "declare a range"
    kind, *annotations = get_args(hint)
    [limits] = [annotation for annotation in annotations if isinstance(annotation, Range)]
    several = get_origin(kind) is tuple
    whole = int in (kind, *get_args(kind))
    bad: list[Any] = [math.nan, math.inf, -math.inf, "1", True, 10**400, [[]]]
    good: list[Any] = [None] if type(None) in get_args(kind) else []
    bad += [0.5] if whole else []
    for limit, way in ((limits.low, -1), (limits.high, 1)):
        if limit is not None:
            bad.append(limit + way if whole else math.nextafter(limit, way * math.inf))
            good.append(int(limit) if whole else limit)
    bad += [limit for limit in (limits.above, limits.below) if limit is not None]
    for value in good:
        replace(config, **{name: (value,) if several else value})
    for value in bad:
        with pytest.raises(IrgymError) as caught:
            replace(config, **{name: (value,) if several else value})
        shown = f"({value!r},)" if several else str(value)
        assert str(caught.value).startswith(f"{name} of {config.name} is {shown}: choose ")
        assert str(limits) in str(caught.value) and "\n" not in str(caught.value)


LEARNERS: dict[str, Any] = {
    **{name: config for name, config in SMALL.items() if name not in FARMED},
    "ppo-apart": replace(SMALL["ppo"], value_epochs=1),
}


def with_values(config: Any, **values: Any) -> Any:
    """Return a configuration with the values that are of its hyper-parameters."""
    known = {field.name for field in fields(config)}
    return replace(config, **{name: value for name, value in values.items() if name in known})


class PlantedNan:
    """A reward that is no number at a later call."""

    shaped = False
    every = 0

    def __init__(self, call: int) -> None:
        self.calls = 0
        self.call = call

    def __call__(self, transition: Transition) -> float:
        self.calls += 1
        return math.nan if self.calls == self.call else LogSpeedup()(transition)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_diverged_training_stops_and_replaces_nothing(name: str, tmp_path):
    problem = dials.problem(dials.CODES[:4])
    config = with_values(LEARNERS[name], lr=1e30, lr_end=1e30, iterations=40)
    with pytest.raises(DivergedError, match=r"diverged .* lower lr or max_grad_norm"):
        train(config, problem, tmp_path / "run")
    whole(tmp_path / "run")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_reward_that_is_no_number_stops_the_training(name: str, tmp_path):
    """Within a warm-up too, before a gradient step could tell."""
    problem = dials.problem(dials.CODES[:4], PlantedNan(100))
    config = with_values(LEARNERS[name], warmup=200, replay=200, iterations=40)
    with pytest.raises(DivergedError, match=r"diverged .* nan\)"):
        train(config, problem, tmp_path / "run")
    whole(tmp_path / "run")
    assert len(contents(tmp_path / "run")) > 0


def whole(run) -> None:
    """The last checkpoint and the policy are there, finite, and of the same iteration."""
    assert TorchPolicy.load(run / "policy.pt").finite
    done = restore(RunFolder(run))["progress"]["iteration"]
    assert len(contents(run)) == done


def test_weights_that_are_not_finite_are_neither_written_nor_read(tmp_path):
    policy = PPOConfig(hidden=(8,)).build(dials.problem(dials.CODES[:4])).policy()
    policy.save(tmp_path / "policy.pt")
    content = storage.read(tmp_path / "policy.pt", "policy")
    next(iter(content["weights"].values())).fill_(math.nan)
    storage.write(tmp_path / "bad.pt", content)
    with pytest.raises(StorageError, match="not finite"):
        TorchPolicy.load(tmp_path / "bad.pt")
    next(iter(policy.network.state_dict().values())).fill_(math.inf)
    before = (tmp_path / "policy.pt").read_bytes()
    with pytest.raises(IrgymError, match="not finite"):
        policy.save(tmp_path / "policy.pt")
    assert (tmp_path / "policy.pt").read_bytes() == before


def test_imitation_that_diverges_gives_no_policy():
    task = dials.problem(dials.CODES[:1]).tasks[0]
    schedules = ["turn_0_1 turn_1_2 stop", "stop", "reset turn_2_2 stop"]
    shown = [Demonstration(task, Schedule.parse(text, task.space), 1.0) for text in schedules]
    with pytest.raises(DivergedError):
        clone(ImitationConfig(lr=1e30, lr_end=1e30, hidden=(8,), activation="relu"), shown)
