import dials
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.agents.episodes.replay import Replay, SumTree, first_errors, n_step
from irgym.agents.episodes.trajectories import Trajectories
from irgym.networks import storage
from irgym.networks.encoders import MlpSpec

ENCODER = MlpSpec(1, (4,)).build()
ACTIONS = len(dials.SPACE.flat)


def trajectories(lengths, seed=0):
    """Episodes in step-major order; the observation names the episode and step."""
    rng = np.random.default_rng(seed)
    pairs = sorted((s, e) for e, length in enumerate(lengths) for s in range(length))
    step, episode = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    count = len(pairs)
    zeros = np.zeros(count, dtype=np.float32)
    return Trajectories(
        observations=torch.as_tensor((100 * episode + step).astype(np.float32)[:, None]),
        legal=rng.random((count, 1, ACTIONS)) < 0.5,
        choices=rng.integers(ACTIONS, size=(count, 1)),
        policy_logp=zeros,
        behaviour_logp=zeros,
        rewards=rng.normal(size=count).astype(np.float32),
        episode=episode,
        step=step,
        privileged=np.zeros((count, 0), dtype=np.float32),
    )


@given(st.integers(1, 40), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_sum_tree_equals_a_cumulative_sum(capacity, seed):
    rng = np.random.default_rng(seed)
    tree, weights = SumTree(capacity), np.zeros(capacity)
    for _ in range(3):
        places = np.unique(rng.integers(capacity, size=5))
        weights[places] = rng.integers(0, 4, size=len(places))
        tree[places] = weights[places]
    np.testing.assert_array_equal(tree[np.arange(capacity)], weights)
    assert tree.total == weights.sum()
    if tree.total > 0:
        masses = rng.random(20) * tree.total
        np.testing.assert_array_equal(
            tree.find(masses), np.searchsorted(weights.cumsum(), masses, side="right")
        )


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_n_step_equals_the_sum_written_out(lengths, n):
    steps = trajectories(lengths)
    order = np.lexsort((steps.step, steps.episode))
    rewards, ahead = n_step(steps, order, n, 0.9)
    row = 0
    for episode, length in enumerate(lengths):
        own = steps.rewards[steps.episode == episode]
        for t in range(length):
            expected = sum(0.9**k * own[t + k] for k in range(n) if t + k < length)
            np.testing.assert_allclose(rewards[row], expected, rtol=1e-5, atol=1e-6)
            assert ahead[row] == (n if t + n < length else 0)
            row += 1


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(1, 5), st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_first_errors_equal_the_targets_written_out_less_the_values(lengths, n, seed):
    steps, rng = trajectories(lengths, seed), np.random.default_rng(seed)
    taken, best = rng.normal(size=(2, len(steps))).astype(np.float32)
    errors = first_errors(steps, taken, best, n, 0.9, 3.0)
    for row in range(len(steps)):
        own = np.flatnonzero(steps.episode == steps.episode[row])
        later = own[own >= row]
        target = 3.0 * sum(0.9**k * steps.rewards[at] for k, at in enumerate(later[:n]))
        if len(later) > n:
            target += 0.9**n * best[later[n]]
        np.testing.assert_allclose(errors[row], target - taken[row], rtol=1e-4, atol=1e-5)


def test_given_errors_are_first_priorities():
    replay, steps = Replay(16, ACTIONS, ENCODER, alpha=1.0), trajectories([2, 1])
    replay.add(steps, 1, 0.9, np.array([1, -3, 2], dtype=np.float32))
    batch = replay.sample(6000, 0.0, np.random.default_rng(0))
    names = batch.observations[:, 0].numpy().astype(int)
    wanted = dict(zip(steps.observations[:, 0].numpy().astype(int), (1 / 6, 3 / 6, 2 / 6), strict=True))
    for name, share in wanted.items():
        assert (names == name).mean() == pytest.approx(share, abs=0.001)


def test_transitions_survive_the_wrap_around():
    replay, rng = Replay(23, ACTIONS, ENCODER, alpha=0.6), np.random.default_rng(0)
    for seed in range(6):
        steps = trajectories([4, 1, 5], seed)
        replay.add(steps, 2, 0.9)
        batch = replay.sample(64, 0.5, rng)
        names = batch.observations[:, 0].numpy().astype(int)
        following = batch.next_observations[:, 0].numpy().astype(int)
        goes_on = batch.discounts.numpy() > 0
        np.testing.assert_array_equal(following[goes_on], names[goes_on] + 2)
        lengths = np.array([4, 1, 5])[names // 100]
        np.testing.assert_array_equal(goes_on, names % 100 + 2 < lengths)
        assert set(batch.discounts.numpy()[goes_on].round(4)) <= {np.float32(0.81)}
    assert replay.size == 23


def test_sampling_follows_priorities_and_weights_correct_for_them():
    replay, rng = Replay(16, ACTIONS, ENCODER, alpha=1.0), np.random.default_rng(0)
    replay.add(trajectories([4]), 1, 0.9)
    replay.prioritise(np.arange(4), np.array([1, 2, 3, 4], dtype=np.float32))
    batch = replay.sample(20_000, 1.0, rng)
    shares = np.bincount(batch.places, minlength=4) / 20_000
    np.testing.assert_allclose(shares, np.array([1, 2, 3, 4]) / 10, atol=0.005)
    expected = (1 / np.array([1, 2, 3, 4]))[batch.places]
    np.testing.assert_allclose(batch.weights.numpy(), expected, rtol=1e-4)


def test_saving_is_exact(tmp_path):
    replays = [Replay(23, ACTIONS, ENCODER, alpha=0.6) for _ in range(2)]
    for seed in range(4):
        replays[0].add(trajectories([4, 1, 5], seed), 2, 0.9)
    replays[0].prioritise(np.arange(23), np.random.default_rng(1).random(23).astype(np.float32) * 3)
    storage.write(tmp_path / "r.pt", {"kind": "r", "replay": replays[0].state_dict()})
    replays[1].load_state_dict(storage.read(tmp_path / "r.pt", "r")["replay"])
    for replay in replays:
        replay.add(trajectories([3, 6], 9), 2, 0.9)
    first, second = (replay.sample(64, 0.5, np.random.default_rng(5)) for replay in replays)
    for name in (
        "observations",
        "choices",
        "rewards",
        "discounts",
        "next_observations",
        "next_legal",
        "weights",
    ):
        assert torch.equal(getattr(first, name), getattr(second, name))
