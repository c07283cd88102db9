"""The vector entry point plays the episodes of Gymnasium's own vector environment, in every mode."""

import zlib
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import irgym  # noqa: F401  (registers)
from irgym.base.errors import IrgymError
from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.reward import LogSpeedup, Shaped, ThroughputGain

PROGRAMS = ("loops://mm/24x20x17", "loops://mm/16x16x16", "loops://bmm/2x8x8x8")
MODES = tuple(AutoresetMode)


class Invented:
    """Costs that depend on the schedule's text alone; counts the requests. One schedule in seven fails."""

    def __init__(self) -> None:
        self.requests = 0

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.requests += 1
        numbers = [zlib.crc32(job.schedule.encode()) for job in jobs]
        return [
            Measurement(Outcome.OK, (1000.0 + number % 1000,)) if number % 7 else Measurement(Outcome.CRASH)
            for number in numbers
        ]


def made(
    vectorised: bool, mode: AutoresetMode = AutoresetMode.NEXT_STEP, count: int = 5, **options: Any
) -> Any:
    settings = {"programs": PROGRAMS, "evaluator": Invented(), "peak_gflops": 100.0, "horizon": 6} | options
    if vectorised:
        how: dict[str, Any] = {"vectorization_mode": "vector_entry_point", "autoreset_mode": mode}
    else:
        how = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": mode}}
    return gymnasium.make_vec("irgym/Loops-v0", num_envs=count, **how, **settings)


def equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key]) for key in first)
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.dtype == object:
        return (
            all(equal(*pair) for pair in zip(first, second, strict=True)) if first.shape else first == second
        )
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def course(env: Any, steps: int = 40) -> list[Any]:
    """Return everything that random steps show; one in five actions does not apply."""
    rng = np.random.default_rng(0)
    shown = [env.reset(seed=7)]
    for _ in range(steps):
        infos = shown[-1][-1]
        masks = infos["action_mask"] if rng.random() > 0.2 else ~infos["action_mask"]
        shown.append(env.step((rng.random(masks.shape) * masks).argmax(axis=1)))
        over = shown[-1][2] | shown[-1][3]
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
            observations, infos = env.reset(options={"reset_mask": over})
            infos["action_mask"] = np.where(over[:, None], infos["action_mask"], shown[-1][-1]["action_mask"])
            shown.append((observations, infos))
    env.close()
    return shown


@pytest.mark.parametrize(
    "options",
    [
        {"reward": ThroughputGain()},
        {"reward": Shaped(LogSpeedup())},
        {"observation": ("features", "runtime")},
    ],
    ids=["dense", "shaped", "dictionary"],
)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_the_episodes_are_those_of_sync(mode, options):
    ours, theirs = (course(made(vectorised, mode, **options)) for vectorised in (True, False))
    assert len(ours) == len(theirs)
    ends = 0
    for step, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mode is AutoresetMode.SAME_STEP and len(mine) == 5:
            mine[4].pop("final_obs", None), other[4].pop("final_obs", None)  # compared below
        for part in range(len(mine)):
            assert equal(mine[part], other[part]), (step, part)
        ends += int((mine[2] | mine[3]).sum()) if len(mine) == 5 else 0
    assert ends >= 10


def test_the_last_observation_is_shown_where_the_next_episode_begins_at_once():
    env, single = made(True, AutoresetMode.SAME_STEP, count=1), made(True, AutoresetMode.DISABLED, count=1)
    env.reset(seed=3), single.reset(seed=3)
    for _ in range(6):
        action = [int(np.flatnonzero(env.action_masks()[0])[0])]
        seen, *_, infos = env.step(action)
        last, *_, own = single.step(action)
    assert np.array_equal(infos["final_obs"][0], last[0]) and not np.array_equal(seen, last)
    assert infos["final_info"]["uri"][0] == own["uri"][0] and infos["final_info"]["schedule"][0]
    assert infos["schedule"][0] == ""


def test_all_costs_of_a_step_are_one_request():
    evaluator = Invented()
    env = made(True, evaluator=evaluator, reward=ThroughputGain(), count=8)
    env.reset(seed=0)
    before = evaluator.requests
    for _ in range(5):
        env.step(env.action_masks().argmax(axis=1))
    assert before == 1 and evaluator.requests <= before + 5


def test_a_table_that_is_full_is_emptied(monkeypatch):
    whole = course(made(True))
    monkeypatch.setattr("irgym.gym.nodes.KEPT", 3)
    again = course(made(True))
    assert all(equal(mine[1], other[1]) for mine, other in zip(whole, again, strict=True))


def test_a_limit_on_steps_pays_the_reward_of_the_end():
    limited, own = made(True, horizon=None, max_episode_steps=3), made(True, horizon=3)
    assert all(equal(mine[1], other[1]) for mine, other in zip(course(limited), course(own), strict=True))


def test_actions_that_are_vectors():
    options = {"programs": ["linalg://matmul/8x8x8"], "evaluator": Invented(), "horizon": 3, "num_envs": 2}
    envs = [
        gymnasium.make_vec("irgym/Linalg-v0", vectorization_mode=mode, **options)
        for mode in ("vector_entry_point", "sync")
    ]
    shown: list[Any] = [env.reset(seed=0) for env in envs]
    for step in range(4):
        assert all(equal(*parts) for parts in zip(*shown, strict=True))
        envs[0].action_space.seed(step)
        actions = envs[0].action_space.sample()
        shown = [env.step(actions) for env in envs]
    for env in envs:
        env.close()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: made(True, count=0), "num_envs must be a whole number of at least 1"),
        (lambda: made(True, "later"), "no autoreset mode 'later': choose among NextStep, SameStep, Disabled"),
        (lambda: made(True).step([0] * 5), "no episode has begun"),
        (lambda: made(True).reset(seed=[1, 2]), "2 seeds for 5 episodes"),
        (lambda: made(True).reset(options={"reset_mask": [True]}), "reset_mask must be an array of 5"),
        (lambda: made(True).reset(options={"speed": 1}), "reset has no option 'speed'"),
        (lambda: made(True, horizn=3), "takes no keyword 'horizn': did you mean horizon"),
    ],
)
def test_mistakes_are_told_in_a_sentence(act, words):
    with pytest.raises(IrgymError, match=words):
        act()


def test_actions_are_checked():
    env = made(True)
    env.reset(seed=0)
    with pytest.raises(IrgymError, match="2 actions for 5 episodes"):
        env.step([0, 0])
    with pytest.raises(IrgymError, match="an action is a whole number from 0 to"):
        env.step([10_000] * 5)


def test_an_episode_that_ended_must_be_begun_where_none_begins_by_itself():
    env = made(True, AutoresetMode.DISABLED, horizon=1)
    env.reset(seed=0)
    env.step([0] * 5)
    with pytest.raises(IrgymError, match="reset_mask"):
        env.step([0] * 5)
