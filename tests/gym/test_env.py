"""The Gymnasium view of tasks, on loops: with a made-up cost where measuring is beside the point."""

import pickle
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import irgym
from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.capabilities import ideal_cost
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.datasets import dataset_named
from irgym.core.reward import (
    LogSpeedup,
    PeriodicImprovement,
    RelativeImprovement,
    Reward,
    Shaped,
    ThroughputGain,
)
from irgym.core.schedule import Schedule, replay
from irgym.envs.loops.observing.observations import VIEWS
from irgym.gym import nodes
from irgym.gym.env import TaskEnv

PROGRAMS = ("loops://mm/24x20x17", "loops://mm/16x16x16", "loops://bmm/2x8x8x8")
OBSERVATIONS = tuple(VIEWS)
VECTORS = ("features", "loops_tensor", "stride_tensor", "5_prev_actions_tensor")
Make = Callable[..., TaskEnv]


class Invented:
    """Costs that depend on the schedule's text alone; the texts asked for are kept."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.asked += [job.schedule for job in jobs]
        costs = [1000.0 + zlib.crc32(job.schedule.encode()) % 1000 for job in jobs]
        return [Measurement(Outcome.OK, (cost,)) for cost in costs]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[gymnasium.Env[Any, Any]] = []

    def build(**options: Any) -> TaskEnv:
        settings = {"programs": PROGRAMS, "evaluator": Invented(), "peak_gflops": 100.0} | options
        made.append(gymnasium.make("irgym/Loops-v0", **settings))
        return cast(TaskEnv, made[-1].unwrapped)

    yield build
    for env in made:
        env.close()


def text(env: TaskEnv, index: int) -> str:
    return env.task.space.text(env.task.space.flat[index])


def place(env: TaskEnv, action: str) -> int:
    return env.task.space.flat_index(env.task.space.parse(action))


def random_legal(env: TaskEnv, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(env.action_masks())))


def test_import_registers():
    assert irgym and "irgym/Loops-v0" in gymnasium.registry


@pytest.mark.parametrize("observation", [None, *OBSERVATIONS, OBSERVATIONS], ids=str)
def test_gymnasiums_checks_pass(make: Make, observation: Any):
    with warnings.catch_warnings():
        # Features have no bounds that hold for every program.
        warnings.filterwarnings("ignore", message=".*infinity")
        check_env(make(observation=observation))


@pytest.mark.parametrize("reward", [ThroughputGain(), LogSpeedup(), RelativeImprovement()], ids=str)
def test_gymnasiums_checks_pass_with_each_reward(make: Make, reward: Reward):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*infinity")
        check_env(make(reward=reward))


@pytest.mark.parametrize("observation", [*VECTORS, VECTORS], ids=str)
def test_stable_baselines_checks_pass(make: Make, observation: Any):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        # Matrices are meant to be flattened.
        warnings.filterwarnings("ignore", message=".*(unconventional shape|vectorized|nested).*")
        checker.check_env(make(observation=observation))


def test_mask_agrees_with_the_task(make: Make):
    env, rng = make(), np.random.default_rng(0)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        for _ in range(10):
            legal = env.task.space.legal(env.task.mask(env.state))
            mask = env.action_masks()
            assert [env.task.space.flat[index] for index in np.flatnonzero(mask)] == legal
            np.testing.assert_array_equal(info["action_mask"], mask)
            _, _, terminated, truncated, info = env.step(random_legal(env, rng))
            if terminated or truncated:
                break


def test_illegal_action_changes_nothing_but_the_step_count(make: Make):
    env = make(horizon=2)
    first, _ = env.reset(options={"program": "loops://mm/16x16x16"})
    assert not env.action_masks()[place(env, "up")]
    observation, reward, terminated, truncated, info = env.step(place(env, "up"))
    np.testing.assert_array_equal(observation, first)
    assert (reward, terminated, truncated, info["applied"], info["schedule"]) == (
        0.0,
        False,
        False,
        False,
        "",
    )
    *_, truncated, info = env.step(place(env, "up"))
    assert truncated and len(env.schedule) == 0


def test_stop_terminates_and_the_horizon_truncates(make: Make):
    env = make(horizon=3)
    env.reset(seed=0)
    *_, terminated, truncated, info = env.step(place(env, "stop"))
    assert terminated and not truncated and info["action_mask"].any()  # vector environments ask for one more
    env.reset(seed=0)
    ends = [env.step(place(env, action))[2:4] for action in ("down", "up", "down")]
    assert ends == [(False, False), (False, False), (False, True)]


def test_stop_at_the_horizon_is_an_end_not_a_cut(make: Make):
    env = make(horizon=1)
    env.reset(seed=0)
    assert env.step(place(env, "stop"))[2:4] == (True, False)


def test_reward_of_an_episode_telescopes(make: Make):
    env, rng = make(reward=ThroughputGain(every=1)), np.random.default_rng(1)
    for seed in range(4):
        env.reset(seed=seed)
        first, total, done = env.cost(), 0.0, False
        while not done:
            _, reward, terminated, truncated, _ = env.step(random_legal(env, rng))
            total, done = total + reward, terminated or truncated
        ideal = ideal_cost(env.task, 100.0)
        assert ideal is not None
        assert total == pytest.approx(ideal / env.cost() - ideal / first)


def test_only_first_and_last_state_are_measured_where_the_reward_needs_no_more(make: Make):
    evaluator = Invented()
    env = make(evaluator=evaluator, reward=LogSpeedup(), horizon=4)
    env.reset(options={"program": "loops://mm/16x16x16"})
    for action in ("split_8", "down", "swap_down"):
        _, reward, _, _, info = env.step(place(env, action))
        assert reward == 0.0
    assert len(evaluator.asked) == 1 and "cost" not in info and "speedup" not in info
    _, reward, _, truncated, info = env.step(place(env, "up"))
    assert truncated and len(evaluator.asked) == 2
    assert reward == pytest.approx(np.log10(info["speedup"]))
    assert evaluator.asked[-1] == env.state.nest.text()


def test_a_reward_every_few_steps_measures_those_states_alone(make: Make):
    evaluator = Invented()
    env = make(evaluator=evaluator, reward=PeriodicImprovement(every=2, between=0.5), horizon=5)
    env.reset(options={"program": "loops://mm/16x16x16"})
    first, rewards, states = env.cost(), [], [env.state.nest.text()]
    for action in ("split_8", "down", "swap_down", "up", "split_4"):
        rewards.append(env.step(place(env, action))[1])
        states.append(env.state.nest.text())
    assert evaluator.asked == list(dict.fromkeys(states[step] for step in (0, 2, 4, 5)))
    costs = [Invented().evaluate([cast(Job, SimpleNamespace(schedule=state))])[0].cost for state in states]
    paid = [100 * (costs[before] - costs[after]) / first for before, after in ((0, 2), (2, 4), (4, 5))]
    assert rewards == pytest.approx([0.5, paid[0], 0.5, paid[1], paid[2]])


def test_a_state_is_measured_once_in_an_episode(make: Make):
    evaluator = Invented()
    env = make(evaluator=evaluator, reward=ThroughputGain(), observation=("runtime", "flops"))
    env.reset(options={"program": "loops://mm/16x16x16"})
    for action in ("down", "up", "split_4", "merge"):
        env.step(place(env, action))
    assert len(evaluator.asked) == len(set(evaluator.asked)) == 2


def test_info_names_program_and_schedule(make: Make):
    env, rng = make(), np.random.default_rng(2)
    _, info = env.reset(seed=3)
    for _ in range(8):
        _, _, terminated, truncated, info = env.step(random_legal(env, rng))
        if terminated or truncated:
            break
    assert info["uri"] in PROGRAMS
    task = ENVIRONMENTS.load("loops").task(info["uri"])
    assert replay(task, Schedule.parse(info["schedule"], task.space)) == env.state


def test_seeds_fix_programs_and_observations(make: Make):
    def episode(seed: int) -> list[Any]:
        env, rng = make(), np.random.default_rng(seed)
        seen: list[Any] = []
        for start in range(6):
            observation, info = env.reset(seed=seed if start == 0 else None)
            seen += [info["uri"], observation.tobytes()]
            seen.append(env.step(random_legal(env, rng))[0].tobytes())
        return seen

    assert episode(7) == episode(7)
    assert episode(7) != episode(8)
    assert len(set(episode(7)[::3])) > 1


def test_dataset_and_split_choose_the_programs(make: Make):
    env = make(programs=None, dataset="mm64_128_16_range", split="test")
    dataset = ENVIRONMENTS.load("loops").dataset("mm64_128_16_range")
    assert env.programs == dataset.test
    _, info = env.reset(seed=0)
    assert info["uri"] in dataset.test


def test_holdout_divides_the_dataset_as_on_the_command_line(make: Make):
    grid = "mm:m=64:128:16,n=64:128:16,k=32"
    whole = dataset_named(ENVIRONMENTS.load("loops"), grid, 0.4)
    for split in ("train", "test"):
        env = make(programs=None, dataset=grid, split=split, holdout=0.4)
        assert env.programs == whole.split(split) and len(env.programs) > 5
    copied = pickle.loads(pickle.dumps(env))
    assert copied.programs == env.programs
    copied.close()


def test_renders_the_nest(make: Make):
    env = make(render_mode="ansi")
    env.reset(options={"program": "loops://mm/16x16x16"})
    env.step(place(env, "split_8"))
    assert env.render() == env.task.describe(env.state)
    assert str(env.render()).splitlines()[0] == "-> for m (2 x 8)"
    silent = make()
    silent.reset(seed=0)
    assert silent.render() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"programs": []}, "at least one URI"),
        ({"programs": ["loops://mm/0x1x1"]}, "at least 1"),
        ({"observation": "smell"}, "no observation 'smell': choose among features"),
        ({"observation": []}, "at least one of features"),
        ({"programs": None, "split": "both"}, "choose train, test or all"),
        ({"programs": None, "dataset": "mine"}, "no data set 'mine'"),
        ({"programs": None, "dataset": ""}, "dataset is '', which names nothing"),
        ({"programs": None, "dataset": []}, "dataset is .., which names nothing"),
        ({"programs": None, "holdout": 1}, "a share of 1 for testing"),
        ({"programs": None, "holdout": "x"}, "must be a number, not 'x'"),
        ({"holdout": 0.2}, "programs and a data set exclude each other"),
        ({"horizon": 0}, "at least 1"),
        ({"backend": "gpu"}, "no back end 'gpu'"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(make: Make, options: dict[str, Any], message: str):
    with pytest.raises(IrgymError, match=message):
        make(**options)


def test_an_objective_that_a_program_lacks_is_refused(make: Make):
    env = make(objective="time")
    assert env.reset(seed=0)[1]["objective"] == "time"
    with pytest.raises(IrgymError, match="no objective 'size': choose time"):
        make(objective="size")


@pytest.mark.parametrize("base", [RelativeImprovement(), LogSpeedup()], ids=str)
def test_shaped_rewards_use_the_potentials_of_an_analysed_task(
    make: Make, monkeypatch: pytest.MonkeyPatch, base: Reward
):
    analysed: list[Any] = []

    def remember(task: Any) -> Any:
        analysed.append(task)
        return task

    monkeypatch.setattr(capabilities, "analysed", remember)
    monkeypatch.setattr(nodes, "potential", lambda task, state: float(len(state.nest.text())))
    plain = make(horizon=4, reward=base)
    shaped = make(horizon=4, reward=Shaped(base, gamma=0.9))
    for env in (plain, shaped):
        env.reset(options={"program": "loops://mm/16x16x16"})
    for number, action in enumerate(("split_8", "down", "swap_down", "up")):
        before = float(len(shaped.state.nest.text()))
        index = place(plain, action)
        expected = plain.step(index)[1] - before
        expected += 0.9 * len(plain.state.nest.text()) if number < 3 else 0.0
        assert shaped.step(index)[1] == pytest.approx(expected)
    # The first program at construction, then the chosen one; a task is asked once however often it is played.
    assert len(analysed) == 2
    shaped.reset(options={"program": "loops://mm/16x16x16"})
    assert len(analysed) == 2


def test_actions_can_be_restricted(make: Make):
    env = make(actions="up,down,split_4", horizon=10)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        legal = env.task.space.legal(env.task.mask(env.state))
        assert {env.task.space.text(action) for action in legal} <= {"up", "down", "split_4"}
        place_of = np.flatnonzero(env.action_masks())
        *_, terminated, truncated, info = env.step(int(rng.choice(place_of)))
        assert info["applied"] and not terminated
    assert truncated
    assert not env.step(place(env, "stop"))[-1]["applied"]
    with pytest.raises(IrgymError, match="no action 'jump'"):
        make(actions="jump")
    with pytest.raises(IrgymError, match="actions must be a text, not 5"):
        make(actions=5)


def test_reward_that_needs_the_peak_says_so(make: Make):
    env = make(peak_gflops=None)
    env.reset(seed=0)
    with pytest.raises(IrgymError, match="give peak_gflops"):
        env.step(place(env, "stop"))


def test_maskable_ppo_takes_legal_actions_only(make: Make):
    sb3_contrib = pytest.importorskip("sb3_contrib")
    env = make(horizon=6)
    steps: list[bool] = []
    step = env.step

    def watched(action: Any) -> Any:
        result = step(action)
        steps.append(result[-1]["applied"])
        return result

    env.step = watched
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=16, n_epochs=1, device="cpu")
    model.learn(64)
    assert len(steps) == 64 and all(steps)


def test_runs_in_a_vector_environment():
    def build() -> gymnasium.Env[Any, Any]:
        return gymnasium.make(
            "irgym/Loops-v0", programs=PROGRAMS, evaluator=Invented(), peak_gflops=100.0, horizon=3
        )

    envs = gymnasium.vector.SyncVectorEnv([build, build])
    observations, info = envs.reset(seed=0)
    assert observations.shape[0] == 2 and info["action_mask"].shape[0] == 2
    for _ in range(8):
        mask = np.stack(envs.call("action_masks"))
        observations, *_ = envs.step(mask.argmax(axis=1))
    assert np.isfinite(observations).all()
    envs.close()


@pytest.mark.parametrize("mode", gymnasium.vector.AutoresetMode)
def test_every_mask_of_a_vector_environment_has_an_action(mode: gymnasium.vector.AutoresetMode):
    def build() -> gymnasium.Env[Any, Any]:
        return gymnasium.make("irgym/Loops-v0", programs=PROGRAMS, evaluator=Invented(), peak_gflops=100.0)

    envs = gymnasium.vector.SyncVectorEnv([build, build], autoreset_mode=mode)
    _, info = envs.reset(seed=0)
    ended = 0
    for step in range(40):
        actions = [
            space.sample(mask.astype(np.int8))
            for space, mask in zip([envs.single_action_space] * 2, info["action_mask"], strict=True)
        ]
        assert all(mask[action] for mask, action in zip(info["action_mask"], actions, strict=True))
        stop = place(cast(TaskEnv, envs.envs[0].unwrapped), "stop")
        *_, terminated, truncated, info = envs.step(
            np.array([stop if step % 3 == 2 else actions[0], actions[1]])
        )
        ended += int((terminated | truncated).sum())
        if mode is gymnasium.vector.AutoresetMode.DISABLED and (terminated | truncated).any():
            _, reset = envs.reset(options={"reset_mask": terminated | truncated})
            info["action_mask"] = np.stack(envs.call("action_masks"))
            assert reset
    assert ended >= 10
    envs.close()


def test_the_mask_after_an_end_has_an_action_that_changes_nothing(make: Make):
    env = make()
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step(place(env, "stop"))
    mask = info["action_mask"]
    assert terminated and mask.sum() == 1 and mask[0]
    after, reward, terminated, _, info = env.step(0)
    np.testing.assert_array_equal(after, observation)
    assert (reward, terminated, info["applied"]) == (0.0, True, False)


@pytest.mark.parametrize("identity", sorted(name for name in gymnasium.registry if name.startswith("irgym/")))
def test_unknown_keywords_are_refused_in_one_sentence(identity: str):
    with pytest.raises(
        IrgymError, match=r"takes no keyword 'tarket': did you mean target\? choose among .*target"
    ):
        gymnasium.make(identity, tarket="x86-64-v3")


def test_measures_on_the_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    env = gymnasium.make("irgym/Loops-v0", programs=["loops://mm/32x32x32"], observation="runtime")
    task_env = cast(TaskEnv, env.unwrapped)
    observation, info = env.reset(seed=0)
    assert 1e2 < info["cost"] < 1e8 and info["speedup"] == 1.0
    assert observation[0] == pytest.approx(info["cost"] * 1e-9)
    env.step(place(task_env, "split_8"))
    _, reward, terminated, _, info = env.step(place(task_env, "stop"))
    assert terminated and np.isfinite(reward) and info["cost"] > 0
    env.close()
    env.close()
    assert (tmp_path / "costs.sqlite").exists()


@pytest.mark.parametrize("first", ["reset", "task", "state", "cost", "action_masks", "horizon", "render"])
def test_with_an_outline_no_program_is_opened_early(first: str, monkeypatch: pytest.MonkeyPatch):
    loops = ENVIRONMENTS.load("loops")
    monkeypatch.setattr(loops, "outline", (loops.task(PROGRAMS[0]).space, VIEWS))
    opened: list[str] = []
    make_task = loops.task

    def task(uri: str, *others: Any) -> Any:
        opened.append(uri)
        return make_task(uri, *others)

    monkeypatch.setattr(loops, "task", task)
    env = TaskEnv("loops", evaluator=Invented(), peak_gflops=100.0, render_mode="ansi")
    assert not opened and env.observation_space.shape is not None
    found = getattr(env, first)
    _ = found() if callable(found) else found
    assert len(opened) == 1
    env.reset(seed=0)
    env.step(int(np.flatnonzero(env.action_masks())[0]))
    eager = TaskEnv("loops", programs=[PROGRAMS[0]], evaluator=Invented())
    assert opened[-1] == PROGRAMS[0] and eager.action_space == env.action_space
