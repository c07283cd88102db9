import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from irgym.base.errors import IrgymError, StorageError
from irgym.core.actions import ActionSpace
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.kinds import ActionKind
from irgym.networks import storage
from irgym.networks.actor_critic import Actor, ActorCritic
from irgym.networks.encoders import ENCODERS, MlpSpec, spec_for, spec_from_dict
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_network import QNetwork
from irgym.policies.layout import AutoregressiveLayout, FlatLayout, StructuredLayout

SPACE = ActionSpace(
    (ActionKind("up"), ActionKind("split", ((2, 4, 8), (0, 1))), ActionKind("stop", ends="episode"))
)
SPEC = MlpSpec(6, (8, 8))


def networks():
    torch.manual_seed(0)
    autoregressive = Actor(SPEC, AutoregressiveLayout(SPACE))
    assert autoregressive.pair_scores is not None
    torch.nn.init.normal_(autoregressive.pair_scores)
    return [
        Actor(SPEC, StructuredLayout(SPACE)),
        autoregressive,
        Actor(SPEC, FlatLayout(SPACE)),
        QNetwork(SPEC, FlatLayout(SPACE)),
    ]


def inputs(count=4):
    rng = np.random.default_rng(0)
    masks = [SPACE.mask([True, True, i % 2 == 0], [True, False, True, True, True]) for i in range(count)]
    return list(rng.normal(size=(count, 6)).astype(np.float32)), masks


@pytest.mark.parametrize("network", networks(), ids=["structured", "autoregressive", "flat", "q"])
def test_a_saved_policy_acts_like_the_original(network, tmp_path):
    policy = TorchPolicy(network, "loops", ("x86-64-v3", "x86-64-v4"))
    policy.save(tmp_path / "policy.pt")
    again = TorchPolicy.load(tmp_path / "policy.pt")
    assert (again.environment, again.space) == ("loops", SPACE)
    assert again.targets == ("x86-64-v3", "x86-64-v4")
    observations, masks = inputs()
    for observation, mask in zip(observations, masks, strict=True):
        legal = SPACE.legal(mask)
        states = [observation] * len(legal), [mask] * len(legal), legal
        logs = policy.log_probability(*states)
        assert np.array_equal(logs, again.log_probability(*states))
        assert np.exp(logs).sum() == pytest.approx(1.0)
    assert policy.act(observations, masks, None) == again.act(observations, masks, None)
    sampled = [p.act(observations, masks, np.random.default_rng(7)) for p in (policy, again)]
    assert sampled[0] == sampled[1]
    assert all(SPACE.allows(mask, action) for mask, action in zip(masks, sampled[0], strict=True))


@pytest.mark.parametrize("kind", [Actor, QNetwork])
def test_a_policy_remembers_what_it_observes(kind: type[Actor | QNetwork], tmp_path):
    network = kind(MlpSpec(6), FlatLayout(SPACE), "counts,target")
    TorchPolicy(network).save(tmp_path / "policy.pt")
    assert TorchPolicy.load(tmp_path / "policy.pt").observation == "counts,target"


def test_no_states_no_actions():
    policy = TorchPolicy(networks()[0])
    assert policy.act([], [], None) == []


def test_another_width_or_space_is_refused():
    policy = TorchPolicy(networks()[0])
    _, masks = inputs(1)
    policy.check(SPACE, np.zeros(6))
    with pytest.raises(IrgymError, match="observations of 6 values but was given 7"):
        policy.act([np.zeros(7)], masks, None)
    with pytest.raises(IrgymError, match="other actions"):
        policy.check(ActionSpace((ActionKind("up"),)), np.zeros(6))


def test_shared_and_separate_critics():
    batch = torch.zeros(3, 6)
    for shared in (True, False):
        network = ActorCritic(SPEC, StructuredLayout(SPACE), shared)
        scores, values = network(batch)
        assert scores.shape == (3, 3, 3)
        assert torch.equal(values, network.values(batch))
        assert (network.critic is None) == shared


def test_privileged_numbers_reach_the_value_and_never_the_scores():
    network = ActorCritic(SPEC, StructuredLayout(SPACE), shared=False, privileged=2)
    batch = torch.as_tensor(np.stack(inputs()[0]))
    outputs = [network(batch, torch.full((4, 2), value)) for value in (0.5, 0.9)]
    assert torch.equal(outputs[0][0], outputs[1][0])
    assert (outputs[0][1] != outputs[1][1]).all()
    assert torch.equal(outputs[1][1], network.values(batch, torch.full((4, 2), 0.9)))
    for missing in (None, torch.zeros(4, 3)):
        with pytest.raises(ValueError, match="2 numbers"):
            network.values(batch, missing)


def test_a_policys_file_holds_the_statistics_of_its_inputs(tmp_path):
    spec = MlpSpec(6, (8, 8), normalise=True)
    for network in (Actor(spec, FlatLayout(SPACE)), QNetwork(spec, FlatLayout(SPACE))):
        network.encoder.adapt(torch.as_tensor(np.random.default_rng(1).normal(5, 3, (50, 6))))
        policy = TorchPolicy(network, "loops")
        policy.save(tmp_path / "policy.pt")
        again = TorchPolicy.load(tmp_path / "policy.pt")
        assert again.network.spec == spec
        actions = policy.act(*inputs(), None)
        states = *inputs(), actions
        assert np.array_equal(policy.log_probability(*states), again.log_probability(*states))


def test_files_without_normalisation_are_read():
    values = SPEC.to_dict()
    assert spec_from_dict(values) == SPEC
    del values["normalise"]
    assert spec_from_dict(values) == SPEC
    with pytest.raises(IrgymError, match="install the version that made it"):
        spec_from_dict({**values, "kind": "crystal-ball"})


class Graph:
    """An observation that is no array."""

    encoder = "crystal-ball"


def test_an_observation_names_its_encoder(monkeypatch):
    assert spec_for(np.zeros((2, 3)), (8, 8), "tanh") == SPEC
    assert spec_for([0.0] * 6, (8, 8), "tanh", normalise=True) == MlpSpec(6, (8, 8), normalise=True)
    with pytest.raises(IrgymError, match="no encoder 'crystal-ball': choose among mlp"):
        spec_for(Graph(), (8,), "tanh")

    class Ball(MlpSpec):
        @classmethod
        def suited_to(cls, observation, hidden, activation, *, normalise=False):
            assert isinstance(observation, Graph)
            return cls(1, tuple(hidden), activation, normalise, kind="crystal-ball")

    monkeypatch.setattr(sys.modules["irgym.networks.encoders"], "Ball", Ball, raising=False)
    monkeypatch.setitem(ENCODERS.builtin, "crystal-ball", "irgym.networks.encoders:Ball")
    spec = spec_for(Graph(), (8,), "relu")
    assert isinstance(spec, Ball) and spec_from_dict(spec.to_dict()).build().shape == (1,)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
def test_a_truncated_policy_is_refused(share, tmp_path):
    path = tmp_path / "policy.pt"
    TorchPolicy(networks()[0]).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StorageError, match="truncated"):
        TorchPolicy.load(path)


def test_a_policy_with_a_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "policy.pt"
    network = networks()[0]
    TorchPolicy(network).save(path)
    content = bytearray(path.read_bytes())
    place = content.find(network.scores.weight.detach().numpy().tobytes())
    content[place + 10] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(StorageError, match="damaged"):
        TorchPolicy.load(path)


HARM = Path(tempfile.gettempdir()) / "irgym-was-harmed"


class Harmful:
    def __reduce__(self):
        return (open, (str(HARM), "w"))


def foreign_files():
    buffers = {}
    for name, content in {
        "list": [1, 2],
        "checkpoint": {"kind": "checkpoint"},
        "incomplete": {"kind": "policy", "format": 1},
        "newer": {"kind": "policy", "format": 99},
        "harmful": {"kind": "policy", "format": 1, "weights": Harmful()},
    }.items():
        buffer = io.BytesIO()
        torch.save(content, buffer)
        buffers[name] = buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "hello")
    return {**buffers, "zip": buffer.getvalue(), "text": b"hello", "empty": b""}


@pytest.mark.parametrize("name", foreign_files())
def test_foreign_files_are_refused(name, tmp_path):
    path = tmp_path / "policy.pt"
    path.write_bytes(foreign_files()[name])
    with pytest.raises(StorageError) as caught:
        TorchPolicy.load(path)
    assert "\n" not in str(caught.value)
    assert not HARM.exists()


def test_missing_file(tmp_path):
    with pytest.raises(StorageError, match="there is no policy"):
        TorchPolicy.load(tmp_path / "none.pt")
    with pytest.raises(StorageError, match="cannot read"):
        TorchPolicy.load(tmp_path)


@pytest.mark.parametrize("module", ["irgym.agents", "irgym.agents.algorithms.ppo", "irgym.networks.policy"])
def test_without_torch_one_sentence_says_what_to_install(module):
    script = f"""
import sys, importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
from irgym.base.errors import BackendError
try:
    import {module}
except BackendError as error:
    assert "torch" not in sys.modules
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "torch is not installed: run pip install 'irgym[learn]'\n"


def test_the_names_of_agents_are_known_without_importing_torch():
    script = (
        "import sys, irgym.agents; assert 'torch' not in sys.modules; print(*irgym.agents.AGENTS.names())"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split()[:2] == ["ppo", "dqn"]


def test_a_policy_whose_file_names_no_targets(tmp_path):
    path = tmp_path / "policy.pt"
    TorchPolicy(networks()[0], "loops", ("x86-64-v3",)).save(path)
    content = storage.read(path, "policy")
    del content["targets"]
    storage.write(path, content)
    assert TorchPolicy.load(path).targets == ()


def test_policies_that_ship_name_their_targets():
    shipped = {
        (name, policy): path
        for name in ("loops", "linalg", "graph", "hlo")
        for policy, path in ENVIRONMENTS.load(name).policies().items()
        if policy.startswith("default")
    }
    targets = {names: TorchPolicy.load(path).targets for names, path in shipped.items()}
    assert targets == {
        ("loops", "default"): ("x86-64-v4", "x86-64-v3"),
        ("linalg", "default"): ("x86-64-v4",),
        ("linalg", "default-x86-64-v3"): ("x86-64-v3",),
        ("graph", "default"): ("x86-64-v4",),
        ("hlo", "default"): (),
    }
