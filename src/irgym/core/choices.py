"""Actions as numbers: places in the flat view, or vectors where the actions are too many to list."""

from typing import Any

from irgym.core.actions import Action, ActionSpace, BoolArray, Mask
from irgym.core.candidates import candidate_at, list_mask


def listed(space: ActionSpace) -> bool:
    """Say whether an action is a place in a list; else it is a vector."""
    return space.listable or space.has_candidates


def applicable(space: ActionSpace, mask: Mask) -> BoolArray:
    """Return which choices apply, shape [places], or those of all dimensions of a vector joined."""
    return list_mask(space, mask) if listed(space) else space.vector_mask(mask)


def action_at(space: ActionSpace, value: Any, mask: Mask | None) -> Action:
    """Return the action of a place or vector; a place beyond the candidates stands for none that applies."""
    if not listed(space):
        return space.from_vector(value)
    place, fixed = int(value), len(space.flat)
    return space.flat[place] if place < fixed else candidate_at(space, mask, place - fixed)
