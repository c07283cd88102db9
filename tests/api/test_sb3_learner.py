"""Algorithms of Stable-Baselines3 by name: trained, saved, resumed, and their models as policies."""

import json
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from passes import PASSES, URIS, PassTask

import irgym
from irgym.agents.naming import agent_named
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError, StorageError, UnsuitedPolicyError
from irgym.cli.main import main
from irgym.core.reward_names import reward_from
from irgym.envs.loops.environment import LOOPS
from irgym.loggers.events import without_tensorflow
from irgym.measure.evaluators import Inline
from irgym.networks.policy import TorchPolicy
from irgym.policies.foreign import adapted, network_of
from irgym.policies.plain import PlainPolicy
from irgym.policies.policy import playing
from irgym.policies.sb3 import Sb3Policy
from irgym.policies.sb3_files import load_archive, read_network

without_tensorflow()  # Stable-Baselines3 imports TensorBoard, which takes half a minute with it
sb3_contrib = pytest.importorskip("sb3_contrib")
stable_baselines3 = pytest.importorskip("stable_baselines3")

SMALL = {"steps": 32, "environments": 2, "hidden": (8,)}
OPTIONS: dict[str, dict[str, Any]] = {
    "TRPO": {"n_steps": 16, "batch_size": 16},
    "MaskablePPO": {"n_steps": 16, "batch_size": 16, "n_epochs": 1},
    "RecurrentPPO": {"n_steps": 8, "batch_size": 8, "n_epochs": 1},
    "QRDQN": {"learning_starts": 8, "buffer_size": 100, "batch_size": 8},
}
TASK = PassTask(URIS[0])


class Seen(gymnasium.Env[Any, Any]):
    """Random observations of the size that the passes' task shows, and as many actions."""

    def __init__(self) -> None:
        self.observation_space = TASK.views[next(iter(TASK.views))].space()
        self.action_space = gymnasium.spaces.Discrete(len(TASK.space.flat))

    def reset(self, **options: Any):
        return self.observation_space.sample(), {}

    def step(self, action: Any):
        return self.observation_space.sample(), 0.0, True, False, {}


def model(name: str, **options: Any) -> Any:
    kind = getattr(sb3_contrib, name, None) or getattr(stable_baselines3, name)
    policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    return kind(policy, Seen(), seed=0, device="cpu", policy_kwargs=options or {"net_arch": [8, 6]})


@pytest.mark.parametrize("name", OPTIONS)
def test_an_algorithm_by_name_trains_is_saved_and_resumes(name: str, tmp_path: Path):
    agent = "trpo" if name == "TRPO" else f"sb3:{name}"
    training = irgym.Training(agent=agent, iterations=1, hyperparameters=SMALL | OPTIONS[name])
    trained = irgym.train("passes", tmp_path, training=training)
    assert isinstance(trained, Sb3Policy) and trained.environment == "passes"
    again = irgym.Training(agent=agent, iterations=2, resume=True, hyperparameters=SMALL | OPTIONS[name])
    irgym.train("passes", tmp_path, training=again)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2] and rows[1]["env_steps"] > rows[0]["env_steps"] >= 32
    comparison = irgym.evaluate(tmp_path, evaluating=irgym.Evaluating(limit=2))
    assert {row.method.split(":")[0] for row in comparison.rows} == {"policy", "raw"}
    assert all(row.cost is not None for row in comparison.rows)


def test_a_resumption_has_the_networks_optimisers_and_counts():
    config = agent_named("trpo")(**SMALL, **OPTIONS["TRPO"])

    problem = Problem([PassTask(uri) for uri in URIS], Inline(), reward_from(PASSES, "default"))
    first, second = config.build(problem), config.build(problem)
    first.iterate()
    second.load_state_dict(first.state_dict())
    assert second.iteration == 1 and second.model.num_timesteps == first.model.num_timesteps
    for weights, others in zip(
        first.model.policy.parameters(), second.model.policy.parameters(), strict=True
    ):
        assert torch.equal(weights, others)


@pytest.mark.parametrize("name", ["PPO", "A2C", "DQN", *OPTIONS, "ARS"])
def test_a_models_file_gives_the_scores_of_the_model(name: str, tmp_path: Path):
    made = model(name)
    made.save(tmp_path / "model.zip")
    policy = load_archive(tmp_path / "model.zip", TASK)
    made.observation_space.seed(0)  # scores of an untrained network may be nearly equal
    seen = np.stack([made.observation_space.sample() for _ in range(6)])
    memory = [(np.tile(h, (6, 1)), np.tile(c, (6, 1))) for h, c in policy.network.memory]
    scores, after = policy.network.scores(seen, memory, len(TASK.space.flat))
    chosen, state = made.predict(seen, deterministic=True)
    assert scores.argmax(axis=1).tolist() == chosen.tolist()
    if memory:
        again, _ = made.predict(seen, state=state, episode_start=np.zeros(6, bool), deterministic=True)
        assert (
            policy.network.scores(seen, after, len(TASK.space.flat))[0].argmax(axis=1).tolist()
            == again.tolist()
        )
        np.testing.assert_allclose(after[0][0], state[0][0], atol=1e-5)
    assert adapted(made, TASK).observation == policy.observation


def test_a_recurrent_policy_remembers_its_episodes():
    policy = adapted(model("RecurrentPPO"), TASK)
    remembering = playing(policy)
    assert remembering is not None and playing(adapted(model("PPO"), TASK)) is None
    seen, mask = TASK.observe(TASK.initial()), TASK.mask(TASK.initial())
    for episodes in ([3, 5], [5], [3]):
        remembering.act(episodes, [seen] * len(episodes), [mask] * len(episodes), None)
    both = remembering._memory  # type: ignore[attr-defined]
    assert np.allclose(both[3][0][0], both[5][0][0]) and np.abs(both[3][0][0]).max() > 0


def test_activations_are_those_of_the_model(tmp_path: Path):
    made = model("PPO", net_arch=[8], activation_fn=torch.nn.ReLU)
    made.save(tmp_path / "model.zip")
    assert read_network(tmp_path / "model.zip").activation == network_of(made).activation == "relu"
    odd = model("PPO", net_arch=[8], activation_fn=torch.nn.ELU)
    with pytest.raises(IrgymError, match="train one with Tanh or ReLU"):
        network_of(odd)


def test_files_that_are_no_models_are_told_apart(tmp_path: Path):
    with pytest.raises(StorageError, match="there is no model at"):
        read_network(tmp_path / "none.zip")
    (tmp_path / "text").write_text("no zip")
    with pytest.raises(StorageError, match="no model of Stable-Baselines3"):
        read_network(tmp_path / "text")
    model("PPO").save(tmp_path / "model.zip")
    for load in (PlainPolicy.load, TorchPolicy.load):
        with pytest.raises(StorageError, match="is a model of Stable-Baselines3, no policy of irgym"):
            load(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", b"nonsense")
    with pytest.raises(StorageError, match="is damaged"):
        read_network(tmp_path / "bad.zip")


def test_a_model_of_another_size_does_not_suit(tmp_path: Path):
    made = model("PPO")
    made.save(tmp_path / "model.zip")
    with pytest.raises(UnsuitedPolicyError, match="no observation of"):
        load_archive(tmp_path / "model.zip", LOOPS.task("loops://mm/8x8x8"))


def test_a_model_is_a_row_of_a_comparison_and_leads_a_search(tmp_path: Path, capsys: Any):
    made = model("DQN")
    made.save(tmp_path / "model.zip")
    file = f"sb3:{tmp_path / 'model.zip'}"
    main(
        ["compare", "passes", "--methods", f"base,{file}", "--limit", "1", "--json", str(tmp_path / "c.json")]
    )
    rows = json.loads((tmp_path / "c.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["base", f"policy:{file}", f"raw:{file}"]
    assert all(row["cost"] for row in rows)
    main(["evaluate", file, "--environment", "passes", "--limit", "2"])
    assert "geometric mean over 2 programs" in capsys.readouterr().out
    assert irgym.tune(URIS[0], policy=made, searching=irgym.Searching(evaluations=5)).cost > 0


def first(observation: Any, mask: Any) -> int:
    return int(np.flatnonzero(mask)[0])


def test_policies_from_python_are_methods_with_names():
    methods = ["base", first, first, ("mine", first), model("PPO")]
    comparison = irgym.compare("passes", URIS[:1], methods=methods)
    assert [row.method for row in comparison.rows if not row.method.startswith("raw:")] == [
        "base", "policy:first", "policy:first-2", "policy:mine", "policy:PPO",
    ]  # fmt: skip
    assert (
        irgym.evaluate(first, environment="passes", evaluating=irgym.Evaluating(limit=1)).rows[0].method
        == "policy:first"
    )


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: irgym.compare("passes", URIS[:1], methods=[3]), "3 is no policy"),
        (lambda: irgym.compare("passes", URIS[:1], methods=[("a b", first)]), "'a b' cannot name a policy"),
        (
            lambda: irgym.compare("passes", URIS[:1], methods=[("a", first), ("a", first)]),
            "two policies have",
        ),
        (lambda: irgym.evaluate(first), "its environment must be named"),
        (lambda: irgym.evaluate("sb3:m.zip"), "its environment must be named"),
        (lambda: agent_named("nope"), "no agent 'nope': choose among .*trpo, or sb3:NAME"),
        (lambda: agent_named("sb3:nope"), "no algorithm 'nope'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(act: Any, words: str):
    with pytest.raises(IrgymError, match=words):
        act()


def test_a_function_that_chooses_what_does_not_apply_fails_its_row():
    comparison = irgym.compare(
        "passes", URIS[:1], methods=["base", ("wrong", lambda observation, mask: 10_000)]
    )
    assert "does not apply" in comparison.rows[1].detail


def test_hyper_parameters_are_the_algorithms_own():
    config = agent_named("sb3:maskable-ppo")
    assert config(clip_range=0.3).clip_range == 0.3 and config().n_steps == 2048
    with pytest.raises(IrgymError, match=r"n_steps of sb3:MaskablePPO is 0.5: choose a whole number"):
        config(n_steps=0.5)


def test_a_function_of_a_file_returns_a_policy(tmp_path: Path):
    source = "def make():\n    return lambda observation, mask: int(mask.nonzero()[0][0])\n"
    (tmp_path / "agent.py").write_text(source)
    comparison = irgym.compare("passes", URIS[:1], methods=[f"policy:{tmp_path / 'agent.py'}:make"])
    assert all(row.cost is not None for row in comparison.rows)
    with pytest.raises(IrgymError, match="has no function none: name one that returns a policy"):
        irgym.compare("passes", URIS[:1], methods=[f"policy:{tmp_path / 'agent.py'}:none"])


def test_the_library_is_given_the_device(monkeypatch: pytest.MonkeyPatch):
    given: list[str] = []

    def built(kind: Any, envs: Any, **options: Any):
        given.append(options["device"])
        raise IrgymError("built")

    monkeypatch.setattr("irgym.agents.algorithms.sb3_learner.built", built)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    problem = Problem([TASK], Inline(), reward_from(LOOPS, "default"))
    for device in ("auto", "cuda:1", "cpu"):
        with pytest.raises(IrgymError, match="built"):
            agent_named("trpo")(device=device).build(problem)
    assert given == ["cuda:0", "cuda:1", "cpu"]
