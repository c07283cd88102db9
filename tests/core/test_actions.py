from itertools import product

import numpy as np
import pytest

from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.actions import Action, ActionSpace
from irgym.core.kinds import ActionKind

SPACE = ActionSpace(
    (
        ActionKind("up"),
        ActionKind("tile", ((0, 8, 16), (0, 4))),
        ActionKind("stop", ends="episode"),
        ActionKind("split", ((2, 4),)),
    )
)


def test_flat_order_and_index_agree():
    assert len(SPACE.flat) == 1 + 6 + 1 + 2
    assert [SPACE.flat_index(action) for action in SPACE.flat] == list(range(len(SPACE.flat)))


def test_text_and_parse_are_inverse():
    texts = [SPACE.text(action) for action in SPACE.flat]
    assert len(set(texts)) == len(texts)
    assert [SPACE.parse(text) for text in texts] == list(SPACE.flat)
    assert SPACE.text(Action(1, (2, 1))) == "tile_16_4"


def test_unknown_action_names_the_choices():
    with pytest.raises(ScheduleError, match=r"there is no action 'split_3'.*split_4"):
        SPACE.parse("split_3")


def test_the_values_of_many_equal_slots_are_listed_once():
    sizes = tuple(range(20))
    space = ActionSpace((ActionKind("tile", (sizes,) * 12, omitted=0), ActionKind("place", (sizes,) * 4)))
    with pytest.raises(ScheduleError) as caught:
        space.parse("tiel_1")
    values = "|".join(map(str, sizes))
    assert f"tile_{values} (up to 12 such values, joined by _)" in str(caught.value)
    assert f"place_{values} (4 such values, joined by _)" in str(caught.value)
    assert "did you mean tile?" in str(caught.value) and len(str(caught.value)) < 400


def test_masks_of_kinds_and_parameters_combine():
    rng = np.random.default_rng(0)
    for _ in range(100):
        mask = SPACE.mask(list(rng.random(4) < 0.5), list(rng.random(SPACE.param_count) < 0.5))
        flat = SPACE.flat_mask(mask)
        assert [bool(allowed) for allowed in flat] == [SPACE.allows(mask, action) for action in SPACE.flat]
        assert SPACE.legal(mask) == [a for a, allowed in zip(SPACE.flat, flat, strict=True) if allowed]


def test_tile_needs_both_slots():
    mask = SPACE.mask([False, True, False, False], [True, False, True, False, True, True, True])
    assert [SPACE.text(action) for action in SPACE.legal(mask)] == ["tile_0_4", "tile_16_4"]


LARGE = ActionSpace((ActionKind("next"), ActionKind("tile", ((0, 2, 4, 8, 16, 32, 64),) * 12, omitted=0)))


def test_a_space_too_large_to_list_is_drawn_from():
    rng = np.random.default_rng(0)
    allowed = rng.random(LARGE.param_count) < 0.3
    allowed[list(LARGE.slot_offsets[1])] = True
    mask = LARGE.mask([True, True], list(allowed))
    drawn = {LARGE.sample(mask, rng) for _ in range(300)}
    assert len(drawn) > 100 and all(LARGE.allows(mask, action) for action in drawn)
    assert [LARGE.parse(LARGE.text(action)) for action in drawn] == list(drawn)
    assert LARGE.count(mask) == 1 + np.prod(
        [allowed[offset : offset + 7].sum() for offset in LARGE.slot_offsets[1]]
    )
    with pytest.raises(IrgymError, match="too many for a flat action space"):
        _ = LARGE.flat


def test_omitted_values_are_left_out_at_the_end():
    action = Action(1, (3, 0, 1, *(0,) * 9))
    assert LARGE.text(action) == "tile_8_0_2" and LARGE.parse("tile_8_0_2") == action
    for text in ("tile_3", "tile_8_0_2_x", "tile" + "_2" * 13, "til"):
        with pytest.raises(ScheduleError, match="there is no action"):
            LARGE.parse(text)


def test_options_say_what_is_legal():
    mask = SPACE.mask([True, False, False, True], [True] * 7)
    assert SPACE.options(mask) == "up split_2 split_4"
    everything = LARGE.mask([True, True], [True] * LARGE.param_count)
    assert LARGE.options(everything) == "next tile_0|2|4|8|16|32|64 (up to 12 such values, joined by _)"


WORDS = ActionSpace((ActionKind("swap", (("0-1", "0-2", "1-2"),)), ActionKind("stop", ends="episode")))
PLAIN = ActionSpace((ActionKind("up"), ActionKind("down")))


def valid_mask(space, rng):
    """A random mask that keeps what masks promise: a kind that can be taken has a choice in each slot."""
    params = rng.random(space.param_count) < 0.4
    for offsets, sizes in zip(space.slot_offsets, space.slot_sizes, strict=True):
        for offset, size in zip(offsets, sizes, strict=True):
            params[offset + int(rng.integers(size))] = True
    return space.mask(list(rng.random(len(space.kinds)) < 0.5), list(params))


def random_vector(space, mask, rng):
    """A vector of choices that the mask of vectors allows, each drawn for itself."""
    parts = np.split(space.vector_mask(mask), np.cumsum(space.dimensions)[:-1])
    return np.array([rng.choice(np.flatnonzero(part)) for part in parts])


@pytest.mark.parametrize("space", [SPACE, WORDS, PLAIN], ids=["mixed", "words", "plain"])
def test_vectors_stand_for_the_actions_one_to_one(space):
    vectors = {tuple(space.vector(action).tolist()) for action in space.flat}
    assert len(vectors) == len(space.flat)
    assert [space.from_vector(space.vector(action)) for action in space.flat] == list(space.flat)
    assert all(0 <= n < size for row in vectors for n, size in zip(row, space.dimensions, strict=True))


@pytest.mark.parametrize("space", [SPACE, WORDS, PLAIN], ids=["mixed", "words", "plain"])
def test_vectors_that_the_mask_allows_are_the_legal_actions(space):
    rng = np.random.default_rng(1)
    for _ in range(50):
        mask = valid_mask(space, rng)
        parts = np.split(space.vector_mask(mask), np.cumsum(space.dimensions)[:-1])
        assert [len(part) for part in parts] == list(space.dimensions)
        assert all(part.any() for part in parts[1:])
        vectors = product(*(np.flatnonzero(part) for part in parts))
        assert {space.from_vector(np.array(row)) for row in vectors} == set(space.legal(mask))


def test_vectors_of_a_space_too_large_to_list():
    rng = np.random.default_rng(2)
    for _ in range(50):
        mask = valid_mask(LARGE, rng)
        if not mask.kinds.any():
            continue
        assert LARGE.allows(mask, LARGE.from_vector(random_vector(LARGE, mask, rng)))
        action, vector = LARGE.sample(mask, rng), random_vector(LARGE, mask, rng)
        own = np.flatnonzero(LARGE.vector(action))
        vector[0] = action.kind
        vector[1:13] = action.params or vector[1:13]
        assert LARGE.from_vector(vector) == action and (vector[own] == LARGE.vector(action)[own]).all()


def test_values_may_be_words():
    assert [WORDS.text(action) for action in WORDS.flat] == ["swap_0-1", "swap_0-2", "swap_1-2", "stop"]
    assert [WORDS.parse(WORDS.text(action)) for action in WORDS.flat] == list(WORDS.flat)


def test_kinds_that_end_an_episode_are_marked_whatever_their_names():
    kinds = (ActionKind("stop"), ActionKind("halt", ends="episode"), ActionKind("next", ends="turn"))
    space = ActionSpace(kinds)
    assert space.stops.tolist() == [False, True, False]
    mask = space.mask([True, True, False])
    assert space.takeable(space.onward(mask)) == [0]
    assert space.takeable(mask) == [0, 1]


@pytest.mark.parametrize("choices", [{"slots": ((1, 2),)}, {"candidates": True}])
def test_a_kind_that_ends_an_episode_has_no_choices(choices):
    with pytest.raises(ValueError, match="neither slots nor candidates"):
        ActionKind("stop", ends="episode", **choices)


def test_kinds_that_differ_only_in_their_ending_are_equal():
    assert ActionKind("stop", ends="episode") == ActionKind("stop")
    assert ActionSpace((ActionKind("stop", ends="episode"),)) == ActionSpace((ActionKind("stop"),))


def test_kinds_that_differ_only_in_their_notation_are_equal():
    assert ActionKind("tile", ((0, 4),), omitted=0) == ActionKind("tile", ((0, 4),))
    assert ActionKind("tile", ((0, 4),)) != ActionKind("tile", ((0, 8),))
