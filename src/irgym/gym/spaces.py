"""Conversion of actions and masks to and from Gymnasium's spaces."""

from typing import Any

import numpy as np
from gymnasium import spaces

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace, BoolArray, IntArray, Mask
from irgym.core.candidates import list_length
from irgym.core.choices import action_at, applicable
from irgym.gym.arguments import brief


def gym_space(space: ActionSpace) -> spaces.Space[Any]:
    """Return the Gymnasium space of the actions: indices into `flat`, or vectors if too many to list.

    Where there are candidates, places after those of `flat` stand for the first `capacity` of them.

    Raises:
        IrgymError: A kind has candidates and parameters, or the actions beside candidates are too many.
    """
    if space.listable or space.has_candidates:
        return spaces.Discrete(list_length(space))
    return spaces.MultiDiscrete(list(space.dimensions))


def gym_mask(space: ActionSpace, mask: Mask) -> BoolArray:
    """Return which choices of `gym_space` apply, those of all its dimensions joined."""
    return applicable(space, mask)


def with_a_choice(space: ActionSpace, mask: BoolArray) -> BoolArray:
    """Return a mask of `gym_mask` in which each dimension has a choice: the first where none applies."""
    sizes = [len(mask)] if space.listable or space.has_candidates else space.dimensions
    starts = np.cumsum([0, *sizes[:-1]])
    empty = starts[~np.logical_or.reduceat(mask, starts)]
    if len(empty):
        mask = mask.copy()
        mask[empty] = True
    return mask


def action_of(space: ActionSpace, value: np.int64 | int | IntArray, mask: Mask | None = None) -> Action:
    """Return the action that an element of `gym_space` stands for.

    Args:
        space: The actions.
        value: The element.
        mask: The state's mask, which says what the candidates are. A place beyond them stands for an action
            that never applies.

    Raises:
        IrgymError: It is no element.
    """
    given = _numbers(value)
    if space.listable or space.has_candidates:
        count = list_length(space)
        if given.shape or not 0 <= given < count:
            raise IrgymError(f"an action is a whole number from 0 to {count - 1}, not {brief(value)}")
        return action_at(space, given, mask)
    sizes = np.array(space.dimensions)
    if given.shape != sizes.shape or not bool(np.all((given >= 0) & (given < sizes))):
        raise IrgymError(
            f"an action is a vector of {len(sizes)} whole numbers, each less than those of "
            f"action_space.nvec, not {brief(value)}"
        )
    return action_at(space, given, mask)


def _numbers(value: Any) -> IntArray:
    """Return whole numbers as an array; anything else as one that no action is."""
    try:
        given = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        return np.array([[-1]])
    return given if given.dtype.kind in "iu" else np.array([[-1]])
