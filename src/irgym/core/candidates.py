"""States that have candidates, as policies and Gymnasium see them: observations, and places in a flat list.

Flat views have a place for each action of the space's fixed part, and then one for each of the first
`capacity` candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace, BoolArray, Mask
from irgym.core.observation import ObservationView, box

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class CandidateObservation:
    """Observation of a state and of each of its candidates.

    Attributes:
        state: Shape [F]; the state as a whole.
        candidates: Shape [N, G]; a row for each pair of the mask's `candidates`, in that order. N may be 0.
    """

    encoder: ClassVar[str] = "candidates"

    state: FloatArray
    candidates: FloatArray


def padded(observation: CandidateObservation, capacity: int) -> FloatArray:
    """Return an observation as a flat vector with rows for `capacity` candidates, shape [F + capacity * G].

    Rows of missing candidates are 0; candidates beyond the capacity are left out.
    """
    shown = observation.candidates[:capacity]
    rows = np.zeros((capacity, observation.candidates.shape[1]), dtype=np.float32)
    rows[: len(shown)] = shown
    return np.concatenate([observation.state, rows.ravel()], dtype=np.float32)


def candidate_view(
    space: ActionSpace,
    observe: Callable[[Any, Any], CandidateObservation],
    state: int,
    candidate: int,
    low: float,
    high: float,
    name: str = "candidates",
) -> ObservationView:
    """Return the view of such observations; Gymnasium shows them as flat vectors, by `padded`.

    Args:
        space: The actions; its capacity is the number of candidates shown.
        observe: Returns the observation of a task's state.
        state: F, the length of the state's vector.
        candidate: G, the length of a candidate's row.
        low: Least value of a feature; at most 0, for the padding.
        high: Greatest value of a feature.
        name: What the view is selected by.
    """
    length = state + space.capacity * candidate
    return ObservationView(
        name,
        f"the state, then the first {space.capacity} candidates one after the other, [{length}]",
        box((length,), low, high),
        observe,
        shown=lambda seen: padded(seen, space.capacity),
    )


def check_listed(space: ActionSpace) -> None:
    """Make sure that every action is in `flat` or a candidate, as flat views and networks need.

    Raises:
        IrgymError: A kind with candidates has parameters too.
    """
    both = [kind.name for kind in space.kinds if kind.candidates and kind.slots]
    if both:
        raise IrgymError(
            f"{both[0]} has candidates and parameters, which only searches can use: make it a kind with "
            "candidates for each choice of its parameters"
        )


def list_length(space: ActionSpace) -> int:
    """Return the number of places in the flat view of a space.

    Raises:
        IrgymError: It has none: a kind has candidates and parameters, or there are too many fixed actions.
    """
    check_listed(space)
    return len(space.flat) + (space.capacity if space.has_candidates else 0)


def list_mask(space: ActionSpace, mask: Mask) -> BoolArray:
    """Return which places of the flat view apply, shape [list_length].

    Raises:
        IrgymError: The fixed actions are too many to list.
    """
    if not space.has_candidates:
        return space.flat_mask(mask)
    return np.append(space.flat_mask(mask), np.arange(space.capacity) < len(mask.candidates))


def candidate_at(space: ActionSpace, mask: Mask | None, place: int) -> Action:
    """Return the action for a mask's candidate at a place; beyond them all, one that never applies."""
    if mask is not None and place < len(mask.candidates):
        kind, name = mask.candidates[place]
        return Action(kind, (), name)
    return Action(next(index for index, kind in enumerate(space.kinds) if kind.candidates))


def candidate_info(space: ActionSpace, mask: Mask) -> dict[str, Any]:
    """Return the texts of the candidates that the flat view shows, and how many it does not show."""
    if not space.has_candidates:
        return {}
    shown = mask.candidates[: space.capacity]
    return {
        "candidates": tuple(space.text(Action(kind, (), name)) for kind, name in shown),
        "candidates_not_shown": len(mask.candidates) - len(shown),
    }
