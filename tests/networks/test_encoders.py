import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.networks.encoders import MlpSpec, RunningNorm


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_statistics_equal_those_of_all_rows_together(sizes, seed):
    rng = np.random.default_rng(seed)
    means, deviations = np.array([0.0, 1e3, -5.0]), np.array([1.0, 30.0, 1e-2])
    rows = rng.normal(means, deviations, size=(sum(sizes), 3)).astype(np.float32)
    norm = RunningNorm(3)
    for part in np.split(rows, np.cumsum(sizes)[:-1]):
        norm.adapt(torch.as_tensor(part))
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(norm.mean, exact.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(norm.variance, exact.var(axis=0), rtol=1e-6, atol=1e-9)


def test_inputs_get_mean_0_and_deviation_1_and_are_limited():
    rows = torch.as_tensor(np.random.default_rng(0).normal(300, 50, (1000, 2)).astype(np.float32))
    norm = RunningNorm(2)
    norm.adapt(rows)
    normalised = norm(rows)
    np.testing.assert_allclose(normalised.mean(dim=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(normalised.std(dim=0, correction=0), 1.0, atol=1e-4)
    assert norm(torch.tensor([[1e9, -1e9]])).tolist() == [[10.0, -10.0]]


def test_constant_inputs_become_0():
    norm = RunningNorm(2)
    assert norm(torch.full((1, 2), 7.0)).tolist() == [[0.0, 0.0]]
    for _ in range(3):
        norm.adapt(torch.tensor([[12345.678, 1.0], [12345.678, 3.0]]))
    assert norm(torch.tensor([[99.0, 3.0]])).tolist() == [[0.0, 1.0]]


def test_an_encoder_normalises_only_if_asked():
    batch = torch.as_tensor(np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32))
    plain = MlpSpec(3, (4,)).build()
    before = plain(batch)
    plain.adapt(batch)
    assert torch.equal(plain(batch), before)
    normalising = MlpSpec(3, (), normalise=True).build()
    normalising.adapt(batch)
    np.testing.assert_allclose(normalising(batch).mean(dim=0), 0.0, atol=1e-6)


def test_nearly_constant_inputs_do_not_outweigh_the_rest():
    norm = RunningNorm(2)
    rows = torch.zeros((1000, 2))
    rows[:, 1] = torch.linspace(-1, 1, 1000)
    rows[0, 0] = 0.01
    norm.adapt(rows)
    rare, usual = norm(torch.tensor([[0.5, 1.0]]))[0].tolist()
    assert rare == pytest.approx(5.0, abs=0.01)
    assert usual == pytest.approx(3**0.5, abs=0.01)
