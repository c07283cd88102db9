"""Learning on a GPU: on a pretended one everywhere, and on a real one where torch sees it."""

from dataclasses import replace
from typing import Any

import dials
import graph_states
import numpy as np
import pretended
import pytest
import rewriting
import torch
from learners import SMALL

from irgym.agents.algorithms import ppo, q_learner
from irgym.agents.devices import device_named, learning_text
from irgym.agents.imitation.cloning import ImitationConfig, clone
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.imitation.outcomes import all_outcomes
from irgym.agents.imitation.values import ValuesConfig, learn_values
from irgym.agents.training import train
from irgym.base.errors import IrgymError
from irgym.core.schedule import Schedule
from irgym.networks import storage
from irgym.networks.actor_critic import Actor
from irgym.networks.policy import TorchPolicy
from irgym.networks.ragged import Ragged
from irgym.networks.storage import difference
from irgym.networks.transfer import moved
from irgym.policies.layout import LAYOUTS

CPU = torch.device("cpu")
PPO_ALL = {"minibatch": 16, "started": 4, "imitation": 0.5, "normalise_observations": True}
LEARNERS: dict[str, Any] = {
    "ppo": replace(SMALL["ppo"], **PPO_ALL),
    "ppo-values": replace(SMALL["ppo"], value_epochs=1, reuse="random", normalise_over="minibatch"),
    "ppo-linked": replace(SMALL["ppo"], actions="autoregressive", recompute=True),
    "a2c": replace(SMALL["a2c"], normalise_observations=True),
    "dqn": replace(SMALL["dqn"], normalise_observations=True),
}
PROBLEMS = {"dials": lambda: dials.problem(dials.CODES[7::30]), "candidates": rewriting.problem}
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pretended.PretendedCuda:
    return pretended.pretend(monkeypatch)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_pretended_gpu_learns_as_the_cpu_does(name, problem, gpu):
    config = replace(LEARNERS[name], device="cpu")
    plain = config.build(PROBLEMS[problem]())
    for _ in range(3):
        plain.iterate()
    with gpu:
        learner = replace(config, device="cuda").build(PROBLEMS[problem]())
        for _ in range(3):
            learner.iterate()
        assert all(gpu.has(weights) for weights in learner.network.parameters())
        assert not any(gpu.has(weights) for weights in learner.policy().network.parameters())
        saved = moved(learner.state_dict(), CPU)
    assert gpu.pinned
    assert difference(moved(plain.state_dict(), CPU), saved) == ""
    own, other = plain.policy().network.state_dict(), learner.policy().network.state_dict()
    assert difference(dict(own), dict(other)) == ""


@pytest.mark.parametrize("name", ["ppo-values", "dqn"])
def test_a_checkpoint_goes_on_on_another_device(name, gpu, tmp_path):
    config = LEARNERS[name]
    with gpu:
        first = replace(config, device="cuda").build(dials.problem(dials.CODES[7::30]))
        first.iterate()
        storage.write(tmp_path / "state.pt", {"kind": "checkpoint", **first.state_dict()})
        first.iterate()
        wanted = moved(first.state_dict(), CPU)
    second = replace(config, device="cpu").build(dials.problem(dials.CODES[7::30]))
    second.load_state_dict(storage.read(tmp_path / "state.pt", "checkpoint"))
    second.iterate()
    assert difference(wanted, moved(second.state_dict(), CPU)) == ""
    with gpu:
        third = replace(config, device="cuda").build(dials.problem(dials.CODES[7::30]))
        third.load_state_dict(storage.read(tmp_path / "state.pt", "checkpoint"))
        third.iterate()
        assert difference(wanted, moved(third.state_dict(), CPU)) == ""


def test_imitation_and_values_learn_there_too(gpu):
    task = dials.problem().tasks[0]
    shown = [Demonstration(task, Schedule.parse("turn_0_1 turn_1_2 turn_2_3", dials.SPACE), 1.0)]
    cloning = ImitationConfig(epochs=2, hidden=(8,), device="cpu")
    problem = rewriting.problem()
    found = [program for _, program in all_outcomes(problem.tasks[:3], problem.evaluator, 500)]
    known = [program for program in found if program is not None]
    values = ValuesConfig(epochs=2, hidden=(8,), device="cpu")
    plain = [clone(cloning, shown), learn_values(values, known)]
    with gpu:
        there = [
            clone(replace(cloning, device="cuda"), shown),
            learn_values(replace(values, device="cuda"), known),
        ]
        assert not any(gpu.has(weights) for policy in there for weights in policy.network.parameters())
    assert gpu.pinned
    for own, other in zip(plain, there, strict=True):
        assert difference(dict(own.network.state_dict()), dict(other.network.state_dict())) == ""


@pytest.mark.parametrize("options", [{}, {"attention": "gat", "no_op": True}])
def test_graphs_are_encoded_where_they_are(options, gpu):
    rng = np.random.default_rng(0)
    layout = LAYOUTS["flat"](rewriting.problem().tasks[0].space)
    actor = Actor(replace(graph_states.SPEC, **options), layout)
    batch = actor.encoder.collate([graph_states.observation(rng) for _ in range(5)])
    actor.encoder.adapt(batch)
    part = slice(1, 4)
    plain = torch.autograd.grad(actor.forward(actor.encoder.select(batch, part)).sum(), actor.scores.weight)
    with gpu:
        actor.to("cuda")
        there = moved(batch, torch.device("cuda"))
        scores = actor.forward(actor.encoder.select(there, part))
        actor.encoder.adapt(there)
        scores.sum().backward()
        assert gpu.has(scores)
        assert torch.equal(plain[0], actor.scores.weight.grad.cpu())


def test_the_pretended_gpu_finds_what_is_on_another_device(gpu):
    with gpu:
        there = torch.ones(3).to("cuda")
        assert there.device.type == "cuda" and (there + 1).device.type == "cuda"
        with pytest.raises(RuntimeError, match="same device"):
            there + torch.arange(3)
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        rows = Ragged(there, torch.tensor([1, 2]).to("cuda"))
        assert gpu.has(rows.owners) and gpu.has(rows.select(slice(0, 1)).rows)


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_batch_that_stays_on_the_cpu_is_found(name, gpu, monkeypatch):
    monkeypatch.setattr({"ppo": ppo, "dqn": q_learner}[name], "moved", lambda value, device: value)
    with gpu, pytest.raises(RuntimeError, match="same device"):
        learner = replace(LEARNERS[name], device="cuda").build(dials.problem(dials.CODES[7::30]))
        for _ in range(3):
            learner.iterate()


def test_names_of_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_named("cpu") == device_named("auto") == CPU
    assert learning_text(SMALL["ppo"]) == "learning on cpu" and learning_text(object()) == ""
    for name in ("gpu", "cuda:", "cuda:x", "CUDA", ""):
        with pytest.raises(IrgymError, match=f"there is no device '{name}': choose auto, cpu, cuda"):
            device_named(name)
    with pytest.raises(IrgymError, match="torch sees no GPU for device cuda:1: choose auto or cpu"):
        device_named("cuda:1")


def test_names_of_gpus(gpu):
    assert device_named("auto") == device_named("cuda") == device_named("cuda:0") == torch.device("cuda", 0)
    assert device_named("cpu") == CPU
    assert learning_text(SMALL["ppo"]) == "learning on cuda:0 (pretended)"
    with pytest.raises(IrgymError, match="there is no device cuda:1: choose a number below 1"):
        device_named("cuda:1")


@CUDA
@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_policy_of_a_real_gpu_loads_on_the_cpu(name, tmp_path):
    config = replace(LEARNERS[name], device="cuda")
    train(config, rewriting.problem(), tmp_path / "run", iterations=2)
    policy = TorchPolicy.load(tmp_path / "run" / "policy.pt")
    assert policy.finite and all(weights.device == CPU for weights in policy.network.parameters())
    resumed = replace(config, device="cpu")
    train(resumed, rewriting.problem(), tmp_path / "run", resume=True, iterations=3)
