import numpy as np
import pytest

from irgym.core.actions import Action, ActionKind, ActionSpace
from irgym.core.errors import ScheduleError

SPACE = ActionSpace(
    (
        ActionKind("up"),
        ActionKind("tile", ((0, 8, 16), (0, 4))),
        ActionKind("stop"),
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
