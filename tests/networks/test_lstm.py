import numpy as np
import pytest
import torch

from irgym.base.errors import IrgymError
from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import spec_for, spec_from_dict
from irgym.networks.lstm import LstmSpec
from irgym.networks.policy import TorchPolicy
from irgym.policies.layout import StructuredLayout

SPACE = ActionSpace((ActionKind("next"), ActionKind("tile", ((0, 4, 8), (0, 4, 8)))))


def test_rows_in_another_order_are_another_observation():
    encoder = LstmSpec(3, 5, (8, 6)).build()
    rows = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    batch = encoder.collate([rows, rows[::-1], rows])
    features = encoder(batch)
    assert features.shape == (3, 6) == (3, encoder.features)
    torch.testing.assert_close(features[0], features[2])
    assert not torch.allclose(features[0], features[1], atol=1e-3)


def test_batches_come_apart_and_together():
    encoder = LstmSpec(2, 3).build()
    rows = list(np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32))
    batch = encoder.collate(rows)
    joined = encoder.join(
        [encoder.select(batch, slice(0, 1)), encoder.select(batch, torch.tensor([1, 2, 3]))]
    )
    assert all((row == other).all() for row, other in zip(encoder.separate(joined), rows, strict=True))
    with pytest.raises(IrgymError, match="6 values but was given 9"):
        encoder.collate([np.zeros((3, 3))])


def test_a_policy_with_it_is_written_and_read(tmp_path):
    spec = spec_for(np.zeros((3, 5)), (8, 6), "relu", normalise=True, encoder="lstm")
    assert spec_from_dict(spec.to_dict()) == spec
    policy = TorchPolicy(Actor(spec, StructuredLayout(SPACE)))
    policy.network.encoder.adapt(torch.randn(20, 3, 5))
    policy.save(tmp_path / "policy.pt")
    again = TorchPolicy.load(tmp_path / "policy.pt")
    mask = SPACE.mask([True, True], [True] * SPACE.param_count)
    observation = np.random.default_rng(1).normal(size=(3, 5))
    states = [observation] * len(SPACE.flat), [mask] * len(SPACE.flat), SPACE.flat
    np.testing.assert_array_equal(policy.log_probability(*states), again.log_probability(*states))


def test_flat_observations_are_refused():
    with pytest.raises(IrgymError, match="two dimensions"):
        spec_for(np.zeros(5), (8,), "tanh", encoder="lstm")
