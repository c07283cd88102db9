"""Policies without torch against the same policies with it."""

import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import candidate_states
import graph_states
import numpy as np
import pytest
import torch
from candidate_states import counts
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import IrgymError, StorageError
from irgym.core.actions import ActionSpace, Mask
from irgym.core.candidates import CandidateObservation
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.graph_observation import GraphObservation
from irgym.core.kinds import ActionKind
from irgym.networks import storage
from irgym.networks.actor_critic import Actor
from irgym.networks.candidates import CandidateSpec
from irgym.networks.encoders import MlpSpec
from irgym.networks.graphs import GraphSpec
from irgym.networks.lstm import LstmSpec
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_ensemble import QEnsemble
from irgym.networks.q_network import QNetwork
from irgym.policies.files import read_arrays
from irgym.policies.layout import LAYOUTS
from irgym.policies.plain import PlainPolicy

SPACE = ActionSpace(
    (ActionKind("up"), ActionKind("split", ((2, 4, 8), (0, 1))), ActionKind("stop", ends="episode"))
)


def inputs(count: int):
    rng = np.random.default_rng(count)
    masks = [SPACE.mask([True, True, i % 2 == 0], [True, False, True, True, True]) for i in range(count)]
    return list(rng.normal(size=(count, 6)).astype(np.float32)), masks


def both(network: Any, path: Path) -> tuple[TorchPolicy, PlainPolicy]:
    torch_policy = TorchPolicy(network, "loops", ("x86-64-v3",))
    torch_policy.save(path)
    plain = PlainPolicy.load(path)
    assert plain is not None
    return torch_policy, plain


@settings(max_examples=30, deadline=None)
@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    hidden=st.lists(st.integers(1, 9), max_size=3).map(tuple),
    activation=st.sampled_from(["tanh", "relu"]),
    normalise=st.booleans(),
    count=st.integers(1, 5),
)
def test_scores_and_actions_are_those_of_torch(
    tmp_path_factory, layout, hidden, activation, normalise, count
):
    network = Actor(MlpSpec(6, hidden, activation, normalise), LAYOUTS[layout](SPACE), "counts")
    torch.nn.init.normal_(network.scores.weight)
    if network.pair_scores is not None:
        torch.nn.init.normal_(network.pair_scores)
    network.encoder.adapt(torch.randn(20, 6))
    with_torch, plain = both(network, tmp_path_factory.mktemp("policy") / "policy.pt")
    observations, masks = inputs(count)
    expected, legal = with_torch.scores(observations, masks)
    scores, same = plain.scores(observations, masks)
    assert np.allclose(scores, expected, atol=1e-4, rtol=1e-4) and np.array_equal(same, legal)
    assert plain.act(observations, masks, None) == with_torch.act(observations, masks, None)
    for temperature in (0.5, 2.0):
        drawn = [
            policy.act(observations, masks, np.random.default_rng(3), temperature)
            for policy in (with_torch, plain)
        ]
        assert drawn[0] == drawn[1]
    assert (plain.environment, plain.targets, plain.observation) == ("loops", ("x86-64-v3",), "counts")
    assert plain.space == SPACE


@pytest.mark.parametrize("kind", ["actor", "q", "q-ensemble"])
@pytest.mark.parametrize(
    ("encoder", "normalise", "activation"),
    [*product(["candidates", "graph"], [False, True], ["tanh", "relu"]), ("gat", True, "tanh")],
)
@given(numbers=counts, seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_candidates_and_graphs_are_scored_as_by_torch(
    tmp_path_factory, kind, encoder, normalise, activation, numbers, seed
):
    torch.manual_seed(seed)
    specs = {
        "candidates": candidate_states.SPEC,
        "graph": graph_states.SPEC,
        "gat": replace(graph_states.SPEC, attention="gat", no_op=True),
    }
    spec = replace(specs[encoder], activation=activation, normalise=normalise)
    layout = LAYOUTS["structured" if kind == "actor" else "flat"](candidate_states.SPACE)
    network = {"actor": Actor, "q": QNetwork, "q-ensemble": partial(QEnsemble, members=3)}[kind](spec, layout)
    rng = np.random.default_rng(seed)
    if encoder == "candidates":
        seen = [candidate_states.observations(numbers, seed) for seed in range(4)]
    else:
        seen = [[graph_states.observation(rng, number) for number in numbers] for _ in range(4)]
    for member in network.members if kind == "q-ensemble" else [network]:
        for observations in seen[1:]:
            member.encoder.adapt(member.encoder.collate(observations))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    with_torch, plain = both(network, tmp_path_factory.mktemp("policy") / "policy.pt")
    masks = candidate_states.masks_of(candidate_states.SPACE, numbers, seed)
    expected, legal = with_torch.scores(seen[0], masks)
    scores, same = plain.scores(seen[0], masks)
    assert np.allclose(scores, expected, atol=1e-3, rtol=1e-3) and np.array_equal(same, legal)


def test_graphs_without_candidates_are_read(tmp_path: Path):
    torch.manual_seed(0)
    spec = GraphSpec(node=3, edge=2, state=0, candidate=0, hidden=(8, 8))
    with_torch, plain = both(Actor(spec, LAYOUTS["structured"](SPACE)), tmp_path / "policy.pt")
    graphs = [graph_states.observation(np.random.default_rng(seed), 0).instance for seed in range(4)]
    _, masks = inputs(4)
    expected, _ = with_torch.scores(graphs, masks)
    assert np.allclose(plain.scores(graphs, masks)[0], expected, atol=1e-4)


@pytest.mark.parametrize("name", ["loops", "linalg", "hlo", "graph", "cse", "llvm"])
def test_policies_that_ship_need_no_torch(name: str):
    for path in set(ENVIRONMENTS.load(name).policies().values()):
        plain, with_torch = PlainPolicy.load(path), TorchPolicy.load(path)
        assert plain is not None
        rng = np.random.default_rng(0)
        space, spec = plain.space, with_torch.network.spec
        numbers = [3, 0, 5, 1, 2, 7, 4, 6]
        owners = [index for index, kind in enumerate(space.kinds) if kind.candidates]
        fixed, params = np.array([not kind.candidates for kind in space.kinds]), rng.random(space.param_count)
        masks = [
            Mask(fixed, params < 0.7, tuple((owners[0], f"n{place}") for place in range(number)))
            if owners
            else space.mask([True] * len(space.kinds), params < 0.7)
            for number in numbers
        ]
        match spec:
            case MlpSpec():
                observations = list(rng.normal(size=(8, spec.inputs)).astype(np.float32))
            case CandidateSpec():
                observations = [
                    CandidateObservation(
                        rng.normal(size=spec.state), rng.normal(size=(number, spec.candidate))
                    )
                    for number in numbers
                ]
            case GraphSpec():
                observations = [
                    GraphObservation(
                        rng.normal(size=(9, spec.node)),
                        rng.normal(size=(12, spec.edge)),
                        rng.integers(0, 9, (12, 2)),
                        rng.normal(size=spec.state),
                        rng.normal(size=(number, spec.candidate)),
                        np.array(
                            [(candidate, rng.integers(9)) for candidate in range(number)], np.int64
                        ).reshape(-1, 2),
                    )
                    for number in numbers
                ]
        assert plain.act(observations, masks, None) == with_torch.act(observations, masks, None)
        assert np.allclose(
            plain.scores(observations, masks)[0], with_torch.scores(observations, masks)[0], atol=1e-3
        )


def test_torch_is_not_imported():
    script = (
        "import sys; from pathlib import Path; from irgym.policies.plain import PlainPolicy;"
        "from irgym.core.catalogue import ENVIRONMENTS;"
        "PlainPolicy.load(ENVIRONMENTS.load('loops').policies()['default']);"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]


def test_other_networks_are_left_to_torch(tmp_path: Path):
    TorchPolicy(Actor(LstmSpec(2, 3, (8,)), LAYOUTS["flat"](SPACE))).save(tmp_path / "lstm.pt")
    assert PlainPolicy.load(tmp_path / "lstm.pt") is None


def test_an_observation_of_another_width_is_refused(tmp_path: Path):
    _, plain = both(Actor(MlpSpec(6), LAYOUTS["flat"](SPACE)), tmp_path / "policy.pt")
    plain.check(SPACE, np.zeros(6))
    with pytest.raises(IrgymError, match="observations of 6 values but was given 7"):
        plain.check(SPACE, np.zeros(7))
    with pytest.raises(IrgymError, match="other actions"):
        plain.check(ActionSpace((ActionKind("up"),)), np.zeros(6))


def test_weights_that_are_not_finite_or_missing_are_refused(tmp_path: Path):
    path = tmp_path / "policy.pt"
    network = Actor(MlpSpec(6), LAYOUTS["flat"](SPACE))
    both(network, path)
    content = storage.read(path, "policy")
    content["weights"]["scores.bias"][0] = float("nan")
    storage.write(path, content)
    with pytest.raises(StorageError, match="not finite"):
        PlainPolicy.load(path)
    del content["weights"]["scores.bias"]
    storage.write(path, content)
    with pytest.raises(StorageError, match="incomplete"):
        PlainPolicy.load(path)


def test_strided_and_shared_tensors_are_read_as_they_are(tmp_path: Path):
    whole = torch.arange(12.0).reshape(3, 4)
    content = {"kind": "x", "a": whole.T, "b": whole[1:, ::2], "c": torch.tensor(3), "d": whole > 5}
    storage.write(tmp_path / "x.pt", content)
    arrays = read_arrays(tmp_path / "x.pt")
    for name in "abcd":
        assert np.array_equal(arrays[name], content[name].numpy())


def test_code_in_a_file_is_not_run(tmp_path: Path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "touched",))

    path = tmp_path / "policy.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", pickle.dumps({"kind": "policy", "evil": Evil()}))
    with pytest.raises(StorageError, match="is no policy"):
        PlainPolicy.load(path)
    assert not (tmp_path / "touched").exists()
