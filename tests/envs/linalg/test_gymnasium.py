"""Gymnasium environments with too many actions to list: vectors with a mask for each component."""

import warnings
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.sb3 import train_sb3
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.core.actions import Action
from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.reward import LogSpeedup
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg.environment import LINALG, LINALG_SWAPS
from irgym.gym.env import TaskEnv

PROGRAMS = ("linalg://matmul/16x32x8", "linalg://conv2d/1x4x10x10x8x3x3", "linalg://softmax/8x16")
IDS = ("irgym/Linalg-v0", "irgym/LinalgSwaps-v0")
SPACES = {"irgym/Linalg-v0": LINALG.space, "irgym/LinalgSwaps-v0": LINALG_SWAPS.space}


class Invented:
    """Costs that depend on the schedule's text alone."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        costs = [1000.0 + zlib.crc32(job.schedule.encode()) % 1000 for job in jobs]
        return [Measurement(Outcome.OK, (cost,)) for cost in costs]


def make(name: str) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(name, programs=PROGRAMS, evaluator=Invented())


def parts(space: gymnasium.spaces.MultiDiscrete, mask: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mask in the form that Gymnasium's sampling takes."""
    return tuple(np.split(mask.astype(np.int8), np.cumsum(space.nvec)[:-1]))


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checks_pass(name: str):
    with warnings.catch_warnings():
        # Features have no bounds that hold for every program.
        warnings.filterwarnings("ignore", message=".*infinity")
        check_env(make(name).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_a_vector_holds_the_kind_and_all_slots_of_all_kinds(name: str):
    space = make(name).action_space
    sizes = [len(choices) for kind in SPACES[name].kinds for choices in kind.slots]
    assert space == gymnasium.spaces.MultiDiscrete([len(SPACES[name].kinds), *sizes])


@pytest.mark.parametrize("name", IDS)
def test_vectors_drawn_by_the_masks_apply(name: str):
    env, kinds = make(name), set[str]()
    space = cast(gymnasium.spaces.MultiDiscrete, env.action_space)
    task_env = cast(TaskEnv, env.unwrapped)
    space.seed(0)
    for seed in range(12):
        _, info = env.reset(seed=seed)
        done = False
        while not done:
            masks = parts(space, info["action_mask"])
            assert all(mask.any() for mask in masks)
            np.testing.assert_array_equal(info["action_mask"], task_env.action_masks())
            _, _, terminated, truncated, info = env.step(space.sample(mask=masks))
            assert info["applied"]
            done = terminated or truncated
        kinds |= {word.partition("_")[0] for word in info["schedule"].split()}
        task = LINALG_SWAPS.task(info["uri"]) if "Swaps" in name else LINALG.task(info["uri"])
        assert replay(task, Schedule.parse(info["schedule"], task.space)) == task_env.state
    assert {"next", "tile", "tile-parallel", "vectorise"} < kinds


def test_every_legal_action_is_among_the_allowed_vectors():
    env, rng = cast(TaskEnv, make(IDS[0]).unwrapped), np.random.default_rng(0)
    space = env.task.space
    env.reset(seed=0)
    for _ in range(200):
        action = space.sample(env.task.mask(env.state), rng)
        allowed = [
            np.flatnonzero(part) for part in np.split(env.action_masks(), np.cumsum(space.dimensions)[:-1])
        ]
        vector = space.vector(action)
        others = np.array([rng.choice(choices) for choices in allowed])
        begin = 1 + sum(len(sizes) for sizes in space.slot_sizes[: action.kind])
        own = [0, *range(begin, begin + len(action.params))]
        assert all(vector[place] in allowed[place] for place in own)
        others[own] = vector[own]
        *_, terminated, truncated, info = env.step(others)
        assert info["applied"] and env.schedule.actions[-1] == action
        if terminated or truncated:
            env.reset()


def test_a_vector_that_does_not_apply_changes_nothing():
    env = cast(TaskEnv, make(IDS[0]).unwrapped)
    first, _ = env.reset(options={"program": PROGRAMS[0]})
    vectorise = env.task.space.vector(env.task.space.parse("vectorise_0"))
    observation, reward, terminated, truncated, info = env.step(vectorise)
    np.testing.assert_array_equal(observation, first)
    assert (reward, terminated, truncated, info["applied"], info["schedule"]) == (
        0.0,
        False,
        False,
        False,
        "",
    )
    *_, info = env.step(env.task.space.vector(env.task.space.parse("tile_8_16_1")))
    assert info["applied"] and info["schedule"] == "tile_8_16_1"


def test_one_action_is_left_at_the_end():
    env = cast(TaskEnv, make(IDS[0]).unwrapped)
    env.reset(options={"program": PROGRAMS[0]})
    *_, terminated, _, info = env.step(env.task.space.vector(Action(0)))
    kinds = len(env.task.space.kinds)
    assert terminated and info["action_mask"][:kinds].sum() == 1


@pytest.mark.skipif(find_spec("sb3_contrib") is None, reason="needs sb3_contrib")
def test_maskable_ppo_takes_legal_vectors_only():
    made: list[Watched] = []

    def watched() -> Watched:
        made.append(Watched("linalg", programs=PROGRAMS, evaluator=Invented()))
        return made[-1]

    policy = train_sb3("maskable-ppo", watched, LINALG.space, steps=64, environments=2, n_steps=32)
    applied = [action for env in made for action in env.applied]
    assert len(applied) == 64 and all(applied)
    task = LINALG.task(PROGRAMS[0])
    state = task.initial()
    for rng in (None, *[np.random.default_rng(seed) for seed in range(10)]):
        [action] = policy.act([task.observe(state)], [task.mask(state)], rng)
        assert task.space.allows(task.mask(state), action)
    with pytest.raises(IrgymError, match="DQN cannot choose among these actions"):
        train_sb3("dqn", watched, LINALG.space, steps=64)


class Watched(TaskEnv):
    """Remembers which actions applied."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.applied: list[bool] = []

    def step(self, action: Any) -> Any:
        result = super().step(action)
        self.applied.append(result[-1]["applied"])
        return result


def test_our_dqn_says_that_it_needs_a_list():
    problem = Problem([LINALG.task(PROGRAMS[0])], Invented(), LogSpeedup())
    with pytest.raises(IrgymError, match="too many for a flat action space"):
        DQNConfig().build(problem)
