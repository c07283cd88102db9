"""Evaluation, snapshots and loggers during training: what they record, and that they change no weight."""

import math
from dataclasses import replace
from typing import Any

import dials
import pytest
from remembering import Remembering
from trainings import contents

from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.checkpoint import restore
from irgym.agents.evaluation import evaluate_policy
from irgym.agents.training import Setup, train
from irgym.base.errors import IrgymError
from irgym.networks import storage
from irgym.networks.policy import TorchPolicy
from irgym.networks.storage import difference
from irgym.policies.run_folder import RunFolder

COMMON: dict[str, Any] = {"iterations": 4, "episodes": 8, "hidden": (8,), "normalise_observations": True}
Q = {"updates": 2, "minibatch": 8, "warmup": 8, "replay": 128}
CONFIGS = {
    "ppo": PPOConfig(**COMMON, value_epochs=1, epsilon=0.1),
    "a2c": A2CConfig(**COMMON),
    "dqn": DQNConfig(**COMMON, **Q),
}
CODES, OTHERS = dials.CODES[7::30], dials.CODES[5::40]
PLAIN = Setup(environment="dials", loggers=())
APART = ("eval_speedup", "eval_entropy", "programs")


def watching(*loggers: Remembering) -> Setup:
    tasks = dials.problem(OTHERS).tasks
    return replace(PLAIN, evaluation=tasks, evaluate_every=2, snapshot_every=2, loggers=loggers)


@pytest.mark.parametrize("name", CONFIGS)
def test_evaluation_changes_nothing_in_what_is_learnt(name: str, tmp_path):
    config, runs = CONFIGS[name], [tmp_path / "plain", tmp_path / "watched"]
    train(config, dials.problem(CODES), runs[0], PLAIN)
    train(config, dials.problem(CODES), runs[1], watching())
    learnt = [
        [{key: value for key, value in row.items() if key not in APART} for row in contents(run)]
        for run in runs
    ]
    assert learnt[0] == learnt[1]
    assert not difference(*[restore(RunFolder(run))["learner"] for run in runs])
    assert [row["eval_speedup"] is not None for row in contents(runs[1])] == [False, True, False, True]


def test_an_evaluated_run_resumes_exactly(tmp_path):
    whole, parts, log = tmp_path / "whole", tmp_path / "parts", Remembering()
    train(CONFIGS["ppo"], dials.problem(CODES), whole, watching())
    train(CONFIGS["ppo"], dials.problem(CODES), parts, watching(), iterations=1)
    train(CONFIGS["ppo"], dials.problem(CODES), parts, watching(log), resume=True)
    assert contents(parts) == contents(whole)
    files = [RunFolder(run).snapshots() for run in (whole, parts)]
    assert list(files[0]) == list(files[1]) == [2, 4]
    for iteration in (2, 4):
        assert not difference(*[storage.read(file[iteration], "policy") for file in files])
    assert log.calls[0][:2] == ("start", 1) and log.calls[-1] == ("end",)
    assert [call[:2] for call in log.calls if call[0] == "metrics"] == [("metrics", n) for n in (2, 3, 4)]
    artefacts = [call[1:] for call in log.calls if call[0] == "artefact"]
    assert artefacts == [(2, "policy-000002.pt"), (4, "policy-000004.pt"), (4, "policy.pt")]


def test_an_evaluation_has_the_costs_of_the_greedy_schedules(tmp_path):
    problem, log = dials.problem(CODES), Remembering()
    policy = train(replace(CONFIGS["ppo"], iterations=2), problem, tmp_path / "run", watching(log))
    tasks = dials.problem(OTHERS).tasks
    found = evaluate_policy(policy, tasks, problem)
    for task, row in zip(tasks, found.programs, strict=True):
        state = task.initial()
        for _ in range(task.horizon):
            if not task.terminal(state):
                [action] = policy.act([task.observe(state, "")], [task.mask(state)], None)
                state = task.step(state, action)
        last = evaluated(problem, task, state)
        assert (row.program, row.cost) == (task.uri, last)
        assert row.speedup == evaluated(problem, task, task.initial()) / last
    gains = [row.speedup for row in found.programs if row.speedup is not None]
    assert math.isclose(found.speedup or 0.0, math.prod(gains) ** (1 / len(gains)))
    [values] = [call[2] for call in log.calls if call[:2] == ("metrics", 2)]
    assert values["eval/speedup_mean"] == found.speedup and values["eval/entropy"] == found.entropy
    for row in found.programs:
        assert values[f"eval/cost/{row.program}"] == row.cost
        assert values[f"eval/speedup/{row.program}"] == row.speedup
    assert {name for name in values if name.startswith("eval/")}.isdisjoint(log.calls[1][2])


def evaluated(problem, task, state) -> float:
    [measurement] = problem.evaluator.evaluate([task.job(state)])
    return measurement.cost


def test_gradients_are_reported_before_clipping_and_the_phases_add_up(tmp_path):
    for name, config in CONFIGS.items():
        clipped = replace(config, max_grad_norm=1e-6)
        train(clipped, dials.problem(CODES), tmp_path / name, watching())
        rows = RunFolder(tmp_path / name).read_metrics()
        assert all(row["grad_norm"] > 1e-5 for row in rows)
        assert (
            (rows[0]["value_grad_norm"] is not None) == (rows[0]["values_s"] is not None) == (name == "ppo")
        )
        phases = ("collecting_s", "measuring_s", "learning_s", "values_s", "evaluating_s")
        total = sum(row[phase] or 0.0 for row in rows for phase in phases)
        assert math.isclose(total, rows[-1]["seconds"], rel_tol=1e-6)
        assert rows[1]["evaluating_s"] > rows[0]["evaluating_s"]


@pytest.mark.parametrize("name", CONFIGS)
def test_every_agent_starts_from_a_run_folder_or_a_file(name: str, tmp_path):
    config, run = CONFIGS[name], tmp_path / "run"
    first = train(config, dials.problem(CODES), run, PLAIN, iterations=1)
    for start in (run, run / "policy.pt"):
        learner = replace(config, start=str(start), seed=9).build(dials.problem(CODES))
        assert not difference(learner.policy().network.state_dict(), first.network.state_dict())
    if name == "dqn":
        assert not difference(learner.target.state_dict(), first.network.state_dict())
    other = CONFIGS["ppo" if name == "dqn" else "dqn"]
    with pytest.raises(IrgymError, match="whose network differs: start from one of"):
        replace(other, start=str(run)).build(dials.problem(CODES))


def test_a_policy_starts_from_an_artefact(tmp_path, monkeypatch):
    train(CONFIGS["dqn"], dials.problem(CODES), tmp_path / "run", PLAIN, iterations=1)
    asked: list[str] = []

    def fetch(name: str):
        asked.append(name)
        return tmp_path / "run/policy.pt"

    monkeypatch.setattr("irgym.loggers.wandb.WandbLogger.fetch", staticmethod(fetch))
    learner = replace(CONFIGS["dqn"], start="wandb:me/irgym/policy-1:v3").build(dials.problem(CODES))
    assert asked == ["me/irgym/policy-1:v3"]
    kept = TorchPolicy.load(tmp_path / "run/policy.pt")
    assert not difference(learner.policy().network.state_dict(), kept.network.state_dict())
