"""Training in which a cost model answers for some of the costs."""

from dataclasses import replace
from pathlib import Path

import dials
import pytest
from trainings import contents

pytest.importorskip("sklearn")

from told import Told, measured

from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.checkpoint import restore
from irgym.agents.training import Setup, train
from irgym.base.errors import IrgymError
from irgym.cost_model.screen import Screen
from irgym.networks.storage import difference
from irgym.policies.run_folder import RunFolder

TASKS = [Told(code) for code in dials.CODES[::3]]
PPO = PPOConfig(iterations=6, episodes=48, hidden=(32,), checkpoint_every=0.0)
CONFIGS = {
    "ppo": PPO,
    "a2c": A2CConfig(iterations=6, episodes=48, hidden=(32,), checkpoint_every=0.0),
    "dqn": DQNConfig(iterations=6, episodes=48, hidden=(16,), updates=4, warmup=64, checkpoint_every=0.0),
}
PROBLEM = replace(dials.problem(), tasks=TASKS)


def screened(evaluator, share: float = 0.4) -> Screen:
    return Screen(evaluator, TASKS, share, seed=0)


def screening() -> Setup:
    return Setup(screen=screened(dials.Inline()))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_share_is_measured_and_only_that_is_told(tmp_path: Path, name: str):
    evaluator, farm = measured(tmp_path)
    train(
        CONFIGS[name],
        replace(PROBLEM, evaluator=evaluator),
        tmp_path / "run",
        Setup(screen=screened(evaluator)),
    )
    rows = RunFolder(tmp_path / "run").read_metrics()
    assert rows[-1]["predicted"] > rows[0]["predicted"]
    # Each call of the farm is one measurement that the cache has from then on, of a state that was asked for.
    assert len(farm.calls) == len(set(map(repr, farm.calls))) == evaluator.misses
    assert len(farm.calls) <= rows[-1]["evaluations"] - rows[-1]["cached"] + len(TASKS)
    # Measured speed-ups are powers of 2, predicted ones are not.
    assert {row["best_speedup"] for row in rows} <= {1.0, 2.0, 4.0, 8.0}
    told = [row for row in rows if row["rank_correlation"] is not None]
    assert told and all(row["prediction_error"] < 1.0 for row in told)


def test_it_learns_as_well_from_fewer_measurements(tmp_path: Path):
    config = replace(PPO, iterations=14, episodes=64, lr=2e-2)
    returns, calls = {}, {}
    for share in (None, 0.3):
        folder = tmp_path / str(share)
        evaluator, farm = measured(folder)
        screen = None if share is None else screened(evaluator, share)
        train(config, replace(PROBLEM, evaluator=evaluator), folder / "run", Setup(screen=screen))
        returns[share] = RunFolder(folder / "run").read_metrics()[-1]["reward_mean"]
        calls[share] = len(farm.calls)
    assert calls[0.3] < 0.5 * calls[None]
    assert returns[0.3] > 0.75 * returns[None] > 0.2


def test_it_resumes_exactly(tmp_path: Path):
    train(PPO, PROBLEM, tmp_path / "whole", screening())
    train(PPO, PROBLEM, tmp_path / "parts", screening(), iterations=3)
    train(PPO, PROBLEM, tmp_path / "parts", screening(), resume=True)
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")
    whole, parts = (restore(RunFolder(tmp_path / name)) for name in ("whole", "parts"))
    del whole["progress"]["seconds"], parts["progress"]["seconds"]
    assert not difference(whole, parts)
    assert contents(tmp_path / "whole")[-1]["predicted"] > 0


def test_validation_is_measured(tmp_path: Path):
    evaluator, farm = measured(tmp_path)
    config = replace(PPO, iterations=4, validate_every=1)
    problem = replace(PROBLEM, evaluator=evaluator)
    train(config, problem, tmp_path / "run", Setup(validation=TASKS[:4], screen=screened(evaluator, 0.1)))
    validated = {call.arguments[1] for call in farm.calls}
    assert {task.code for task in TASKS[:4]} <= validated


def test_without_a_screen_nothing_is_predicted(tmp_path: Path):
    train(replace(PPO, iterations=2), PROBLEM, tmp_path / "run")
    for row in RunFolder(tmp_path / "run").read_metrics():
        assert row["predicted"] == 0 and row["rank_correlation"] is row["prediction_error"] is None


def test_resuming_needs_the_same_screen(tmp_path: Path):
    train(PPO, PROBLEM, tmp_path, replace(screening(), details={"screen": 0.4}), iterations=1)
    with pytest.raises(IrgymError, match=r"screen = 0\.4, not None"):
        train(PPO, PROBLEM, tmp_path, Setup(details={"screen": None}), resume=True)
