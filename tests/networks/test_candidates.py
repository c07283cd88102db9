"""Encoders, layouts and heads for states that have candidates."""

import math

import numpy as np
import pytest
import torch
from candidate_states import SPACE, SPEC, F, G, counts, masks_of, observations
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace
from irgym.core.candidates import CandidateObservation
from irgym.core.kinds import ActionKind
from irgym.networks import likelihood
from irgym.networks.actor_critic import Actor, ActorCritic
from irgym.networks.candidates import CandidateSpec, Encoded
from irgym.networks.encoders import spec_for, spec_from_dict
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_network import QNetwork
from irgym.policies import heads
from irgym.policies.layout import AutoregressiveLayout, FlatLayout, StructuredLayout, padded_to

ONLY = ActionSpace((ActionKind("merge", candidates=True), ActionKind("split", candidates=True)))
LAYOUTS = [StructuredLayout, AutoregressiveLayout, FlatLayout]


def network(kind, layout, seed=0):
    torch.manual_seed(seed)
    built = kind(SPEC, layout) if kind is not ActorCritic else kind(SPEC, layout, True)
    with torch.no_grad():
        for weights in built.parameters():  # the first ones hardly tell alternatives apart
            weights.copy_(torch.randn_like(weights) * 0.5)
    return built


@given(counts, st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_batches_are_cut_and_joined(numbers, seed):
    encoder = SPEC.build()
    seen = observations(numbers, seed)
    batch = encoder.collate(seen)

    def same(batch, wanted):
        return all(
            np.array_equal(found.state, other.state) and np.array_equal(found.candidates, other.candidates)
            for found, other in zip(encoder.separate(batch), wanted, strict=True)
        )

    assert same(batch, seen) and same(encoder.join([batch, batch]), [*seen, *seen])
    rows = np.random.default_rng(seed).integers(len(seen), size=5)
    assert same(encoder.select(batch, torch.as_tensor(rows)), [seen[row] for row in rows])
    assert same(encoder.select(batch, slice(0, 2)), seen[:2])


@pytest.mark.parametrize("make", LAYOUTS)
@pytest.mark.parametrize("space", [SPACE, ONLY])
@given(counts, st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_distribution_is_over_the_legal_actions(make, space, numbers, seed):
    if space is ONLY:
        numbers = [number + 1 for number in numbers]
    layout = make(space)
    masks, seen = masks_of(space, numbers, seed), observations(numbers, seed)
    policy = TorchPolicy(network(Actor, layout, seed))
    entropies = np.zeros(len(masks))
    for row, (observation, mask) in enumerate(zip(seen, masks, strict=True)):
        legal = space.legal(mask)
        logs = policy.log_probability([observation] * len(legal), [mask] * len(legal), legal)
        assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-4)
        best = policy.act([observation], [mask], None)[0]
        if layout.segments == 1:
            ends = space.stops[[action.kind for action in legal]]
            early = np.exp(logs)[ends].sum() < 0.5 and not ends.all()
            wanted = logs[~ends] if early else logs
            assert logs[legal.index(best)] == pytest.approx(wanted.max(), abs=1e-5)
        entropies[row] = -(np.exp(logs) * logs).sum()
        # In a batch with others, which may have more candidates, nothing changes.
        together = policy.log_probability(
            [*seen[:row], observation, *seen[row + 1 :]],
            masks,
            [
                *(space.legal(other)[0] for other in masks[:row]),
                legal[-1],
                *(space.legal(o)[0] for o in masks[row + 1 :]),
            ],
        )
        assert together[row] == pytest.approx(logs[-1], abs=1e-4)
    legal = layout.legal(masks)
    batch = policy.network.encoder.collate(seen)
    scores = policy.network.forward(batch)
    rng = np.random.default_rng(seed)
    draw = heads.sample(scores.detach().numpy(), legal, layout, rng, 0.3, heads_links(policy))
    taken = layout.actions(draw.choices, masks)
    assert all(space.allows(mask, action) for mask, action in zip(masks, taken, strict=True))
    assert np.array_equal(layout.choices(taken, masks), draw.choices)
    wide = torch.as_tensor(padded_to(legal, legal.shape[-1] + 3))
    pair_scores = getattr(policy.network, "pair_scores", None)
    evaluated = likelihood.evaluate(scores, wide, torch.as_tensor(draw.choices), layout, pair_scores)
    np.testing.assert_allclose(evaluated.log_prob.detach().numpy(), draw.policy_logp, atol=1e-4)
    if make is not AutoregressiveLayout:  # the entropy of a linked slot is that of one choice before it
        np.testing.assert_allclose(evaluated.entropy.detach().numpy(), entropies, atol=1e-3)


def heads_links(policy):
    pair_scores = getattr(policy.network, "pair_scores", None)
    return None if pair_scores is None else pair_scores.detach().numpy()


@pytest.mark.parametrize("make", LAYOUTS)
def test_exploration_takes_all_legal_actions_alike(make):
    layout = make(SPACE)
    mask = SPACE.mask(
        [False, True, True, False], [True, False, True, False, True], [(3, "a"), (0, "b"), (0, "c")]
    )
    copies = 20_000
    legal = np.repeat(layout.legal([mask]), copies, axis=0)
    draw = heads.sample(
        np.zeros(legal.shape, np.float32), legal, layout, np.random.default_rng(0), epsilon=1 - 1e-9
    )
    taken = layout.actions(draw.choices, [mask] * copies)
    shares = [taken.count(action) / copies for action in SPACE.legal(mask)]
    np.testing.assert_allclose(shares, 1 / 6, atol=0.02)
    np.testing.assert_allclose(draw.behaviour_logp, math.log(1 / 6), atol=1e-4)


@pytest.mark.parametrize("kind", [Actor, QNetwork])
@given(st.integers(1, 30), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_scores_are_permutation_equivariant(kind, number, seed):
    layout = FlatLayout(SPACE)
    scored = network(kind, layout, seed)
    [observation], [mask] = observations([number], seed), masks_of(SPACE, [number], seed)
    order = np.random.default_rng(seed).permutation(number)
    permuted = CandidateObservation(observation.state, observation.candidates[order])
    legal = torch.as_tensor(layout.legal([mask, mask]))
    with torch.inference_mode():
        plain, moved = scored.forward(scored.encoder.collate([observation, permuted]), legal)[:, 0].numpy()
    fixed = layout.width
    np.testing.assert_allclose(moved[fixed:], plain[fixed:][order], atol=1e-4)
    np.testing.assert_allclose(moved[:fixed], plain[:fixed], atol=1e-4)
    far = CandidateObservation(
        observation.state, np.vstack([size * observation.candidates for size in (-8, -4, 1, 4, 8)])
    )
    legal = torch.as_tensor(layout.legal(masks_of(SPACE, [5 * number], seed)))
    with torch.inference_mode():
        [scores] = scored.forward(scored.encoder.collate([far]), legal)[:, 0].numpy()
    assert np.ptp(scores[fixed:]) > 1e-3  # they tell candidates apart
    other = CandidateObservation(observation.state, observation.candidates + 1)
    with torch.inference_mode():
        value, changed = (scored.encoder(scored.encoder.collate([each])) for each in (observation, other))
    assert not torch.allclose(value, changed)  # the state's features know of its candidates


def test_the_mean_of_advantages_is_over_legal_actions():
    layout = FlatLayout(SPACE)
    q = network(QNetwork, layout)
    seen, masks = observations([3, 0, 1]), masks_of(SPACE, [3, 0, 1])
    legal = torch.as_tensor(layout.legal(masks))
    batch = q.encoder.collate(seen)
    values = q.forward(batch, legal)
    state = q.value(q.encoder(batch))[:, 0]
    means = torch.where(legal, values, 0.0).sum(-1)[:, 0] / legal.sum(-1)[:, 0]
    torch.testing.assert_close(means, state)
    wide = torch.as_tensor(padded_to(legal.numpy(), legal.shape[-1] + 4))
    torch.testing.assert_close(q.forward(batch, wide), values)
    with pytest.raises(ValueError, match="which are legal"):
        q.forward(batch)


def test_no_candidates_at_all_leave_the_features_finite():
    spec = CandidateSpec(F, G, (8,), normalise=True)
    encoder = spec.build()
    batch = encoder.collate(observations([0, 0]))
    encoder.adapt(batch)
    encoder.adapt(encoder.collate(observations([2, 0])))
    encoded = encoder.encode(batch)
    assert encoded.candidates.shape == (0, 8) and encoded.states.isfinite().all()
    assert isinstance(encoded, Encoded)
    scores = network(Actor, StructuredLayout(SPACE)).forward(batch)
    assert scores.shape == (2, 3, StructuredLayout(SPACE).width)


def test_actor_and_critic_share_what_they_are_told_to():
    layout = StructuredLayout(SPACE)
    both = network(ActorCritic, layout)
    batch = both.actor.encoder.collate(observations([2, 0, 4]))
    scores, values = both.forward(batch)
    torch.testing.assert_close(scores, both.actor.forward(batch))
    torch.testing.assert_close(values, both.values(batch))


def test_specifications_come_back_from_files(tmp_path):
    seen = observations([2])[0]
    spec = spec_for(seen, (8, 4), "relu", normalise=True)
    assert spec == CandidateSpec(F, G, (8, 4), "relu", True) == spec_from_dict(spec.to_dict())
    space = ActionSpace(SPACE.kinds, capacity=12)
    policy = TorchPolicy(network(Actor, StructuredLayout(space)), "toy")
    policy.save(tmp_path / "policy.pt")
    loaded = TorchPolicy.load(tmp_path / "policy.pt")
    assert loaded.space == space != SPACE
    loaded.check(space, seen)
    with pytest.raises(IrgymError, match="other actions"):
        loaded.check(SPACE, seen)
    masks = masks_of(space, [2, 5], 1)
    assert loaded.act(observations([2, 5]), masks, None) == policy.act(observations([2, 5]), masks, None)


def test_unsuitable_networks_are_refused():
    encoder = SPEC.build()
    for wrong in (np.zeros(3, np.float32), CandidateObservation(np.zeros(F), np.zeros((1, G + 1)))):
        with pytest.raises(IrgymError, match="3 values with candidates of 2"):
            encoder.collate([wrong])
    with pytest.raises(IrgymError, match="name candidates that the observation"):
        Actor(spec_for(np.zeros(3), (8,), "tanh"), StructuredLayout(SPACE))
    with pytest.raises(IrgymError, match="hidden layer"):
        spec_for(observations([1])[0], (), "tanh")
    both = ActionSpace((ActionKind("unroll", ((2, 4),), candidates=True),))
    for make in LAYOUTS:
        with pytest.raises(IrgymError, match="unroll has candidates and parameters"):
            make(both)


def test_candidates_are_told_apart_by_kind_and_name():
    layout = StructuredLayout(SPACE)
    mask = SPACE.mask([False, True, False, False], [True] * 5, [(0, "x"), (3, "x")])
    actions = [Action(0, (), "x"), Action(3, (), "x"), Action(1)]
    choices = layout.choices(actions, [mask] * 3)
    assert choices[:, 0].tolist() == [layout.width, layout.width + 1, 0]
    assert layout.actions(choices, [mask] * 3) == actions


@pytest.mark.parametrize("kind", [Actor, QNetwork])
def test_an_observation_with_other_candidates_than_its_mask_is_a_bug(kind):
    policy = TorchPolicy(network(kind, FlatLayout(SPACE)))
    with pytest.raises(ValueError, match="has 2 candidates and its mask 3"):
        policy.act(observations([4, 2]), masks_of(SPACE, [4, 3]), None)
