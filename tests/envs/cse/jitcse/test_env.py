"""The JIT CSE gymnasium's environment: rewards, ends of episodes and `info` as documented."""

from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from cse_table import Table
from gymnasium.utils.env_checker import check_env

from irgym.base.errors import IrgymError, RenderModeError
from irgym.envs.cse.jitcse.env import INVALID_ACTION_LIMIT, MAX_CSE, JitCseEnv
from irgym.envs.cse.jitcse.methods import CompiledMethod
from irgym.envs.cse.jitcse.on_superpmi import JitCompiler
from irgym.envs.cse.jitcse.results import KEYS, Results, results_callback
from irgym.envs.cse.jitcse.wrappers import NormalizeFeaturesWrapper, OptimalCseWrapper, RemoveFeaturesWrapper
from irgym.envs.cse.superpmi.session import Collection

pytestmark = pytest.mark.filterwarnings("ignore:.*maximum value is infinity:UserWarning")


@pytest.fixture
def env() -> JitCseEnv:
    return JitCseEnv(["some"], Table)


def test_spaces_are_the_originals(env: JitCseEnv):
    assert env.action_space == gymnasium.spaces.Discrete(17)
    assert env.observation_space.shape == (16, 22) and len(env.observation_columns) == 22
    env.action_space.seed(0)  # an action that does not compile would drop the only method
    check_env(env, skip_render_check=True)


def test_an_episode(env: JitCseEnv):
    seen, info = env.reset()
    assert info["no_cse_method"].perf_score == 100 and info["heuristic_method"].perf_score == 90
    assert seen[:5, 6].tolist() == [1] * 5 and not seen[5:].any()
    seen, reward, terminated, truncated, info = env.step(3)
    assert (reward, terminated, truncated) == (1.0, False, False) and info["action_is_valid"]
    assert (info["previous"].perf_score, info["current"].perf_score) == (100, 80) and not seen[3, 6]
    _, reward, *_ = env.step(2)
    assert reward == pytest.approx(5 * (80 - 85) / 80)
    _, reward, terminated, truncated, info = env.step(16)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert (info["heuristic_score"], info["no_cse_score"], info["final_score"]) == (90, 100, 85)
    assert info["total_reward"] == pytest.approx(1 - 25 / 80)


def test_actions_that_do_not_apply_cost_and_finally_end_the_episode(env: JitCseEnv):
    seen, _ = env.reset()
    for number in range(1, INVALID_ACTION_LIMIT + 1):
        after, reward, terminated, truncated, info = env.step(16 if number % 2 else 9)
        assert reward == -0.05 and not terminated and info["invalid_actions"] == number
        assert not info["action_is_valid"] and np.array_equal(seen, after)
        assert truncated == (number == INVALID_ACTION_LIMIT)
    assert "final_score" not in info
    env.reset()
    env.step(0)
    assert not env.step(0)[4]["action_is_valid"], "it is shared already"


def test_stopping_at_once_may_be_allowed():
    env = JitCseEnv(["some"], Table, stop_at_once=True)
    env.reset()
    assert env.action_masks()[16] and env.step(16)[2]


def test_a_method_that_cannot_be_compiled_is_drawn_no_more():
    env = JitCseEnv(["broken", "some"], Table)
    for seed in range(8):
        assert env.reset(seed=seed)[1]["method_index"] == "some"
    assert env.methods == ["some"]
    _, reward, terminated, truncated, info = env.step(4)
    assert (reward, terminated, truncated) == (-0.05, False, True) and info["action_is_valid"]
    with pytest.raises(IrgymError, match="no method can be compiled"):
        env.reset()


def test_a_refused_method_ends_the_episode_and_leaves_the_environment_whole():
    env = gymnasium.make("irgym/JitCse-v0", methods=["some"], compiler=Table)
    with pytest.raises(IrgymError, match="broken cannot be used: it is broken"):
        env.reset(options={"method": "broken"})
    with pytest.raises(IrgymError, match="no episode has begun"):
        env.step(3)
    assert env.reset(seed=0)[1]["method_index"] == "some"
    assert env.step(3)[1] == 1.0
    with pytest.raises(IrgymError, match="broken cannot be used: it is broken"):
        env.reset(options={"method": "broken"})
    with pytest.raises(IrgymError, match="no episode has begun"):
        env.step(3)


def test_a_mask_always_has_an_action(env: JitCseEnv):
    env.reset()
    for action in (*range(5), 16):
        env.step(action)
        assert env.action_masks().any()
    assert env.action_masks()[16]


def test_draws_are_the_environments_own():
    def drawn(seed: int) -> list[str]:
        env = JitCseEnv([f"m{n}" for n in range(50)], Table)
        return [env.reset(seed=seed)[1]["method_index"]] + [env.reset()[1]["method_index"] for _ in range(5)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_masks_say_what_applies(env: JitCseEnv):
    env.reset()
    assert env.action_masks().tolist() == [True] * 5 + [False] * 12
    env.step(1)
    assert env.action_masks().tolist() == [True, False, True, True, True] + [False] * 11 + [True]


def test_the_best_choice_has_a_bonus(env: JitCseEnv):
    wrapped = OptimalCseWrapper(env)
    wrapped.reset()
    assert wrapped.step(3)[1] == pytest.approx(1.0 + 0.05)
    wrapped.reset()
    assert wrapped.step(0)[1] == pytest.approx(0.5), "another one saves more"
    assert wrapped.step(1)[1] == pytest.approx(-0.005), "it changes nothing"
    assert wrapped.step(16)[1] == pytest.approx(-0.01), "more could be saved"
    wrapped.reset()
    assert wrapped.step(16)[1] == pytest.approx(-0.05), "nothing is shared yet"


def test_normalised_observations(env: JitCseEnv):
    wrapped = RemoveFeaturesWrapper(NormalizeFeaturesWrapper(env))
    seen, _ = wrapped.reset()
    assert wrapped.observation_space.shape == seen.shape == (16, 20) and wrapped.observation_space.contains(
        seen
    )
    assert seen.max() <= 1 and not seen[5:].any()


def test_results_are_means_over_finished_episodes():
    results = Results()
    results.add({"current": None})
    assert results.take() == {}
    for final, chosen in ((90.0, (1, 2)), (120.0, ())):
        method = CompiledMethod("m", "m", final, (), chosen)
        info = {"final_score": final, "heuristic_score": 100.0, "no_cse_score": 120.0, "current": method}
        results.add(info | {"invalid_actions": 1})
    assert results.take() == pytest.approx(dict(zip(KEYS, (-0.05, 0.125, 0.5, 1.0, 1.0), strict=True)))
    assert results.take() == {}


@pytest.mark.timed
def test_on_superpmi(make_collection: Callable[..., Collection]):
    env = JitCseEnv(["6", "3", "13"], lambda: JitCompiler(make_collection()))
    _, info = env.reset(options={"method": "6"})
    assert (info["no_cse_method"].perf_score, info["heuristic_method"].perf_score) == (106, 88)
    assert env.step(5)[1] == pytest.approx(5 * 6 / 106) and env.step(16)[4]["final_score"] == 100
    env.close()


@pytest.fixture
def on_llvm() -> Iterator[Callable[[], gymnasium.Env]]:
    made: list[gymnasium.Env] = []

    def make() -> gymnasium.Env:
        made.append(gymnasium.make("irgym/JitCse-v0", methods=["cse://kernels/sorting.c#quick_sort"]))
        return made[-1]

    yield make
    for compiler in made:
        compiler.close()


def test_on_llvm(on_llvm):
    env = on_llvm()
    check_env(env.unwrapped, skip_render_check=True)
    _, info = env.reset(seed=0)
    best = min(
        range(len(info["current"].cse_candidates)),
        key=lambda place: env.unwrapped.compiler.compile(info["method_index"], [place]).perf_score,
    )
    _, reward, _, _, info = env.step(best)
    assert reward == pytest.approx(
        5 * (info["previous"].perf_score - info["current"].perf_score) / info["previous"].perf_score
    )


def test_a_script_of_stable_baselines_trains_unchanged(on_llvm, tmp_path: Path):
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure

    model = PPO("MlpPolicy", make_vec_env(on_llvm, n_envs=2), n_steps=32, batch_size=16, n_epochs=1, seed=0)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(total_timesteps=128, callback=results_callback())
    model.logger.close()
    columns = (tmp_path / "progress.csv").read_text().partition("\n")[0].split(",")
    assert {f"results/{key}" for key in KEYS} <= set(columns)
    model.save(tmp_path / "model.zip")
    env = on_llvm()
    seen, _ = env.reset()
    done = False
    while not done:
        action, _ = PPO.load(tmp_path / "model.zip").predict(seen, deterministic=False)
        seen, _, terminated, truncated, info = env.step(int(action))
        done = terminated or truncated
    assert info["invalid_actions"] <= INVALID_ACTION_LIMIT and MAX_CSE == 16


def test_a_text_in_place_of_a_print(capsys: pytest.CaptureFixture[str]):
    env = JitCseEnv(["some"], Table, render_mode="ansi")
    assert env.render() == ""
    env.reset(seed=0)
    assert str(env.render()).startswith("some (some): heuristic") and not capsys.readouterr().out
    printed = JitCseEnv(["some"], Table)
    printed.reset(seed=0)
    assert printed.render() is None and capsys.readouterr().out == f"{env.render()}\n"
    with pytest.raises(RenderModeError, match="choose ansi or human"):
        JitCseEnv(["some"], Table, render_mode="rgb_array")
