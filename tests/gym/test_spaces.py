import numpy as np
import pytest

from irgym.core.actions import ActionSpace, Mask
from irgym.envs.linalg.actions import SPACE as VECTORS
from irgym.envs.loops.actions import SPACE as PLACES
from irgym.gym.spaces import gym_mask, gym_space, with_a_choice


def empty(space: ActionSpace) -> Mask:
    """Return the mask of a state in which nothing applies."""
    sizes = [len(values) for kind in space.kinds for values in kind.slots]
    return Mask(np.zeros(len(space.kinds), np.bool_), np.zeros(sum(sizes), np.bool_))


@pytest.mark.parametrize("space", [PLACES, VECTORS], ids=["places", "vectors"])
def test_a_mask_of_nothing_becomes_one_of_the_first_choices(space: ActionSpace):
    mask = with_a_choice(space, gym_mask(space, empty(space)))
    parts = np.split(mask, np.cumsum(np.atleast_1d(getattr(gym_space(space), "nvec", len(mask))))[:-1])
    assert all(part[0] and part.sum() == 1 for part in parts)


@pytest.mark.parametrize("space", [PLACES, VECTORS], ids=["places", "vectors"])
def test_masks_with_a_choice_are_unchanged(space: ActionSpace):
    mask = empty(space)
    mask.kinds[next(place for place, kind in enumerate(space.kinds) if not kind.slots)] = True
    whole = gym_mask(space, mask)
    np.testing.assert_array_equal(with_a_choice(space, whole), whole)
