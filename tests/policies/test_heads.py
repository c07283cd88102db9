"""The structured distribution against brute force over every flat action."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.actions import ActionSpace, Mask
from irgym.core.kinds import ActionKind
from irgym.networks import likelihood
from irgym.policies import heads
from irgym.policies.layout import ActionLayout, AutoregressiveLayout, FlatLayout, StructuredLayout

SPACE = ActionSpace(
    (
        ActionKind("up"),
        ActionKind("split", ((2, 4, 8),)),
        ActionKind("stop", ends="episode"),
        ActionKind("tile", ((0, 1), (5, 6, 7, 8), (1, 2))),
    )
)


def space_of(sizes: list[list[int]]) -> ActionSpace:
    return ActionSpace(
        tuple(ActionKind(f"k{i}", tuple(tuple(range(n)) for n in row)) for i, row in enumerate(sizes))
    )


spaces = st.lists(st.lists(st.integers(1, 4), max_size=3), min_size=1, max_size=5).map(space_of)


def random_mask(space: ActionSpace, rng: np.random.Generator) -> Mask:
    kinds = rng.random(len(space.kinds)) < 0.5
    kinds[rng.integers(len(kinds))] = True
    params = rng.random(space.param_count) < 0.5
    for offsets, sizes in zip(space.slot_offsets, space.slot_sizes, strict=True):
        for offset, size in zip(offsets, sizes, strict=True):
            params[offset + rng.integers(size)] = True
    return Mask(kinds, params)


def masks_and_scores(layout: ActionLayout, seed: int, count: int = 5):
    rng = np.random.default_rng(seed)
    masks = [random_mask(layout.space, rng) for _ in range(count)]
    scores = rng.normal(size=(count, layout.segments, layout.width)).astype(np.float32) * 3
    return masks, scores


def links_for(layout: ActionLayout, seed: int = 0) -> np.ndarray | None:
    pairs = len(layout.earlier)
    shape = (pairs, layout.width, layout.width)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 2 if pairs else None


def brute_force(
    layout: ActionLayout, scores: np.ndarray, legal: np.ndarray, pair_scores: np.ndarray | None = None
) -> np.ndarray:
    """Log-probability of every flat action, -inf where illegal, one softmax after the other."""
    table = np.full((len(scores), len(layout.space.flat)), -np.inf)
    for row in range(len(scores)):
        for place, choice in enumerate(layout.choices(layout.space.flat)):
            total = 0.0
            for segment in np.flatnonzero(layout.active[choice[0]]):
                own = scores[row, segment].astype(np.float64)
                if pair_scores is not None:
                    for pair in np.flatnonzero(layout.later == segment):
                        own = own + pair_scores[pair, choice[layout.earlier[pair]]]
                weights = np.where(legal[row, segment], np.exp(own), 0)
                with np.errstate(divide="ignore"):
                    total += np.log(weights[choice[segment]] / max(weights.sum(), 1e-300))
            table[row, place] = total
    return table


@pytest.mark.parametrize("make", [StructuredLayout, AutoregressiveLayout, FlatLayout])
@given(space=spaces, seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_log_probabilities_and_entropy_equal_brute_force(make, space, seed):
    layout = make(space)
    masks, scores = masks_and_scores(layout, seed)
    legal = layout.legal(masks)
    pair_scores = links_for(layout, seed)
    table = brute_force(layout, scores, legal, pair_scores)
    for row, mask in enumerate(masks):
        assert np.array_equal(np.isfinite(table[row]), space.flat_mask(mask))
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1.0)
    entropy = -np.where(np.isfinite(table), np.exp(table) * np.where(np.isfinite(table), table, 0), 0).sum(1)
    tensors = torch.as_tensor(scores), torch.as_tensor(legal)
    for place, action in enumerate(space.flat):
        choices = torch.as_tensor(layout.choices([action] * len(masks)))
        evaluated = likelihood.evaluate(
            *tensors, choices, layout, None if pair_scores is None else torch.as_tensor(pair_scores)
        )
        allowed = np.isfinite(table[:, place])
        np.testing.assert_allclose(evaluated.log_prob.numpy()[allowed], table[allowed, place], atol=1e-4)
        if pair_scores is None:
            np.testing.assert_allclose(evaluated.entropy.numpy(), entropy, atol=1e-4)


@pytest.mark.parametrize("make", [StructuredLayout, AutoregressiveLayout, FlatLayout])
@given(space=spaces, seed=st.integers(0, 10_000), epsilon=st.sampled_from([0.0, 0.3, 0.99]))
@settings(max_examples=60, deadline=None)
def test_samples_are_legal_and_report_both_log_probabilities(make, space, seed, epsilon):
    layout = make(space)
    masks, scores = masks_and_scores(layout, seed)
    legal = layout.legal(masks)
    pair_scores = links_for(layout, seed)
    table = brute_force(layout, scores, legal, pair_scores)
    draw = heads.sample(scores, legal, layout, np.random.default_rng(seed), epsilon, pair_scores)
    actions = layout.actions(draw.choices)
    assert np.array_equal(layout.choices(actions), draw.choices)
    for row, (mask, action) in enumerate(zip(masks, actions, strict=True)):
        assert space.allows(mask, action)
        policy = table[row, space.flat_index(action)]
        uniform = 1 / space.flat_mask(mask).sum()
        assert draw.policy_logp[row] == pytest.approx(policy, abs=1e-4)
        mixture = np.log((1 - epsilon) * np.exp(policy) + epsilon * uniform)
        assert draw.behaviour_logp[row] == pytest.approx(mixture, abs=1e-4)


@pytest.mark.parametrize("make", [StructuredLayout, AutoregressiveLayout])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_sample_frequencies_follow_the_mixture(make, epsilon):
    layout = make(SPACE)
    pair_scores = links_for(layout)
    masks, scores = masks_and_scores(layout, seed=3, count=1)
    legal = layout.legal(masks)
    count = 40_000
    repeat = np.repeat(scores, count, axis=0), np.repeat(legal, count, axis=0)
    draw = heads.sample(*repeat, layout, np.random.default_rng(0), epsilon, pair_scores)
    places = [SPACE.flat_index(action) for action in layout.actions(draw.choices)]
    seen = np.bincount(places, minlength=len(SPACE.flat)) / count
    allowed = SPACE.flat_mask(masks[0])
    expected = (1 - epsilon) * np.exp(
        brute_force(layout, scores, legal, pair_scores)[0]
    ) + epsilon * allowed / allowed.sum()
    np.testing.assert_allclose(seen, expected, atol=0.01)


def test_epsilon_greedy_explores_uniformly_over_legal_actions():
    layout = FlatLayout(SPACE)
    masks, scores = masks_and_scores(layout, seed=5, count=1)
    legal, count = layout.legal(masks), 20_000
    choices = heads.epsilon_greedy(
        np.repeat(scores, count, 0), np.repeat(legal, count, 0), layout, np.random.default_rng(0), 0.5
    )
    allowed = SPACE.flat_mask(masks[0])
    expected = 0.5 * allowed / allowed.sum()
    expected[heads.greedy(scores, legal, layout)[0, 0]] += 0.5
    np.testing.assert_allclose(
        np.bincount(choices[:, 0], minlength=len(allowed)) / count, expected, atol=0.015
    )


def test_at_random_kinds_are_equally_likely_and_half_of_what_can_be_omitted_is():
    space = ActionSpace((ActionKind("stop"), ActionKind("tile", ((4, 0, 8, 16), (0, 1), (1, 2)), omitted=0)))
    layout = StructuredLayout(space)
    legal = np.repeat(layout.legal([space.mask([True, True], [True] * 8)]), 8000, 0)
    legal[:, 2, 0] = False
    choices = heads.uniform_kind(legal, layout, np.random.default_rng(0))
    tiles = choices[choices[:, 0] == 1]
    assert abs(len(tiles) / len(choices) - 0.5) < 0.02
    shares = np.bincount(tiles[:, 1], minlength=4) / len(tiles)
    np.testing.assert_allclose(shares, [1 / 6, 1 / 2, 1 / 6, 1 / 6], atol=0.03)
    assert (tiles[:, 2] == 1).all(), "what may not be omitted is not"
    assert abs(tiles[:, 3].mean() - 0.5) < 0.03, "both alike where none stands for nothing"


@pytest.mark.parametrize("make", [StructuredLayout, AutoregressiveLayout, FlatLayout])
def test_a_single_legal_action_is_certain_and_its_gradient_finite(make):
    layout = make(SPACE)
    mask = SPACE.mask([False, False, True, False], [False] * SPACE.param_count)
    legal = layout.legal([mask])
    scores = torch.full((1, layout.segments, layout.width), 50.0, requires_grad=True)
    choices = torch.as_tensor(layout.choices([SPACE.parse("stop")]))
    evaluated = likelihood.evaluate(scores, torch.as_tensor(legal), choices, layout)
    assert evaluated.log_prob.item() == 0.0
    assert evaluated.entropy.item() == 0.0
    (evaluated.log_prob + evaluated.entropy).sum().backward()
    assert torch.equal(scores.grad, torch.zeros_like(scores))
    draw = heads.sample(scores.detach().numpy(), legal, layout, np.random.default_rng(0), 0.5)
    assert layout.actions(draw.choices) == [SPACE.parse("stop")]
    assert draw.behaviour_logp[0] == pytest.approx(0.0, abs=1e-6)


def test_greedy_takes_the_best_kind_and_then_its_best_choices():
    layout = StructuredLayout(SPACE)
    scores = np.zeros((1, layout.segments, layout.width), dtype=np.float32)
    scores[0, 0, 3] = 1.0
    scores[0, 2, 1], scores[0, 3, 2], scores[0, 4, 0] = 1.0, 1.0, 1.0
    full = SPACE.mask([True] * 4, [True] * SPACE.param_count)
    assert layout.actions(heads.greedy(scores, layout.legal([full]), layout)) == [SPACE.parse("tile_1_7_1")]
    no_tile = SPACE.mask([True, True, True, False], [True] * SPACE.param_count)
    assert layout.actions(heads.greedy(scores, layout.legal([no_tile]), layout))[0].kind != 3


def test_the_best_choice_in_a_chain_knows_those_before_it():
    layout = AutoregressiveLayout(SPACE)
    _, scores = masks_and_scores(layout, seed=1, count=1)
    only_tile = SPACE.mask([False, False, False, True], [True] * SPACE.param_count)
    pair_scores = np.zeros((len(layout.earlier), layout.width, layout.width), dtype=np.float32)
    pair = int(np.flatnonzero((layout.earlier == 2) & (layout.later == 4))[0])
    best = heads.greedy(scores, layout.legal([only_tile]), layout, pair_scores)
    pair_scores[pair, best[0, 2], 1 - best[0, 4]] = 50.0
    turned = heads.greedy(scores, layout.legal([only_tile]), layout, pair_scores)
    assert (turned[0, :4] == best[0, :4]).all() and turned[0, 4] == 1 - best[0, 4]


@pytest.mark.parametrize("kind", [StructuredLayout, FlatLayout])
def test_an_episode_ends_only_where_that_is_likelier_than_going_on(kind: type[ActionLayout]):
    space = ActionSpace((ActionKind("stop", ends="episode"), ActionKind("merge", candidates=True)))
    layout = kind(space)
    mask = Mask(np.ones(2, np.bool_), np.zeros(0, np.bool_), ((1, "a"), (1, "b"), (1, "c")))
    legal = layout.legal([mask])

    def chosen(stop: float, best: float, legal: np.ndarray = legal) -> int:
        scores = np.log(np.array([[[stop, best, 0.2, 0.1]]], np.float32))
        assert heads.greedy(scores, legal, layout)[0, 0] == 0
        return int(heads.likeliest(scores, legal, layout)[0, 0])

    assert chosen(0.4, 0.3) == 1
    assert chosen(0.6, 0.1) == 0
    alone = legal.copy()
    alone[..., 1:] = False
    assert chosen(0.4, 0.3, alone) == 0
