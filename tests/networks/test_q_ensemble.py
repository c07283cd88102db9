"""Ensembles in numpy give the mean of what their members give in torch."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from candidate_states import SPACE, SPEC, counts, masks_of, observations
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.networks.candidates import CandidateSpec
from irgym.networks.encoders import MlpSpec
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_ensemble import QEnsemble
from irgym.networks.q_network import QNetwork
from irgym.policies.layout import FlatLayout, padded_to

LAYOUT = FlatLayout(SPACE)
TILES = ActionSpace((ActionKind("tile", ((8, 16), (1, 2))), ActionKind("stop")))


def ensemble(spec: CandidateSpec, members: int, seed: int) -> QEnsemble:
    torch.manual_seed(seed)
    made = QEnsemble(spec, LAYOUT, members=members)
    for number, member in enumerate(made.members):
        member.encoder.adapt(member.encoder.collate(observations([3, 4], seed + number)))
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, activation="relu", normalise=True, hidden=(6,))])
@given(counts, st.integers(1, 4), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_it_is_the_mean_of_the_members(spec: CandidateSpec, numbers: list[int], members: int, seed: int):
    made = ensemble(spec, members, seed)
    legal = LAYOUT.legal(masks_of(SPACE, numbers, seed))
    legal = torch.as_tensor(padded_to(legal, legal.shape[-1] + 2))
    batch = made.encoder.collate(observations(numbers, seed))
    found = made.forward(batch, legal)
    with torch.inference_mode():
        wanted = sum(member.forward(batch, legal) for member in made.members) / members
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_masks_and_observations_must_agree():
    made = ensemble(SPEC, 2, 0)
    legal = torch.as_tensor(LAYOUT.legal(masks_of(SPACE, [2, 1])))
    with pytest.raises(ValueError, match="an observation has 1 candidates and its mask 2"):
        made.forward(made.encoder.collate(observations([1, 2])), legal)


def test_networks_of_other_encoders_are_averaged_too():
    made = QEnsemble(MlpSpec(4, (8,)), FlatLayout(TILES), members=3)
    batch = made.encoder.collate(list(np.random.default_rng(0).normal(size=(5, 4))))
    wanted = sum(member.forward(batch) for member in made.members) / 3
    torch.testing.assert_close(made.forward(batch), wanted)


def test_a_file_holds_all_members(tmp_path: Path):
    made = ensemble(SPEC, 3, 0)
    TorchPolicy(made, "x").save(tmp_path / "p.pt")
    read = TorchPolicy.load(tmp_path / "p.pt").network
    legal = torch.as_tensor(LAYOUT.legal(masks_of(SPACE, [2, 3])))
    batch = made.encoder.collate(observations([2, 3]))
    torch.testing.assert_close(read.forward(batch, legal), made.forward(batch, legal))
    assert isinstance(read, QEnsemble) and all(isinstance(member, QNetwork) for member in read.members)
