"""How an action space lies in a network's output: segments of alternatives.

A network emits scores of shape [B, S, W]. Segment 0 holds the kinds, the others one parameter slot
each; `W` is the size of the largest. An action is a choice in segment 0 and in the segments of the
chosen kind. A mask becomes a boolean array of the same shape, false in the padding.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, ActionSpace, BoolArray, Mask

IntArray = NDArray[np.int64]


class ActionLayout(ABC):
    """The place of every alternative in scores of shape [B, segments, width].

    Attributes:
        space: The actions.
        segments: S, one for the kinds and one for each parameter slot.
        width: W, the number of alternatives of the largest segment.
        owner: Shape [S - 1]; the kind to which each slot's segment belongs.
        active: Shape [alternatives of segment 0, S]; the segments in which such an action chooses.
        prior: Shape [alternatives of segment 0]; how often an untrained policy chooses each, relatively.
    """

    sort: str

    space: ActionSpace
    segments: int
    width: int
    owner: NDArray[np.intp]
    active: BoolArray
    prior: NDArray[np.float32]

    @abstractmethod
    def legal(self, masks: Sequence[Mask]) -> BoolArray:
        """Return the masks as an array of shape [B, S, W]."""

    @abstractmethod
    def actions(self, choices: IntArray) -> list[Action]:
        """Return the actions of choices of shape [B, S]."""

    @abstractmethod
    def choices(self, actions: Sequence[Action]) -> IntArray:
        """Return the choices of actions, shape [B, S]; 0 where a segment is not active."""

    @abstractmethod
    def flat_probabilities(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each action of `space.flat`, shape [B, len(flat)].

        Args:
            probabilities: Shape [B, S, W]; those of each segment add up to 1.
        """


class StructuredLayout(ActionLayout):
    """Kinds in the first segment, each parameter slot in its own: scores grow with the sum of the slots.

    The prior of a kind is the size of its largest slot.
    """

    sort = "structured"

    def __init__(self, space: ActionSpace) -> None:
        kinds = len(space.kinds)
        self._plain = [Action(kind) for kind in range(kinds)]
        sizes = [size for row in space.slot_sizes for size in row]
        self.space = space
        self.segments = 1 + len(sizes)
        self.width = max([kinds, *sizes])
        self.owner = np.array([kind for kind, row in enumerate(space.slot_sizes) for _ in row], dtype=np.intp)
        self.prior = np.array([max(row, default=1) for row in space.slot_sizes], dtype=np.float32)
        slots = np.arange(kinds)[:, None] == self.owner[None, :]
        self.active = np.concatenate([np.ones((kinds, 1), dtype=np.bool_), slots], axis=1)
        # Column `kinds + param_count` of the joined mask is the one that is always false.
        self._columns = np.full((self.segments, self.width), kinds + space.param_count, dtype=np.intp)
        self._columns[0, :kinds] = np.arange(kinds)
        start = kinds
        for segment, size in enumerate(sizes, start=1):
            self._columns[segment, :size] = np.arange(start, start + size)
            start += size
        ends = 1 + np.cumsum([len(row) for row in space.slot_sizes])
        self._spans = [
            (int(end) - len(row), int(end)) for end, row in zip(ends, space.slot_sizes, strict=True)
        ]

    def legal(self, masks: Sequence[Mask]) -> BoolArray:
        """Return the masks as an array of shape [B, S, W]."""
        count = len(masks)
        kinds = np.concatenate([mask.kinds for mask in masks]).reshape(count, -1)
        if self.segments == 1:
            return kinds[:, None, :]
        params = np.concatenate([mask.params for mask in masks]).reshape(count, -1)
        joined = np.concatenate([kinds, params, np.zeros((count, 1), dtype=np.bool_)], axis=1)
        return joined[:, self._columns]

    def actions(self, choices: IntArray) -> list[Action]:
        """Return the actions of choices of shape [B, S]."""
        if self.segments == 1:
            kinds: list[int] = choices[:, 0].tolist()
            return [self._plain[kind] for kind in kinds]
        rows: list[list[int]] = choices.tolist()
        actions: list[Action] = []
        for row in rows:
            start, end = self._spans[row[0]]
            actions.append(Action(row[0], tuple(row[start:end])))
        return actions

    def choices(self, actions: Sequence[Action]) -> IntArray:
        """Return the choices of actions, shape [B, S]; 0 where a segment is not active."""
        choices = np.zeros((len(actions), self.segments), dtype=np.int64)
        for row, action in enumerate(actions):
            start, end = self._spans[action.kind]
            choices[row, 0] = action.kind
            choices[row, start:end] = action.params
        return choices

    def flat_probabilities(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product of the kind's probability and those of its slots' choices, [B, len(flat)]."""
        choices = self.choices(self.space.flat)
        segments = np.arange(self.segments)
        chosen = probabilities[:, segments[None, :], choices]
        return np.where(self.active[choices[:, 0]], chosen, 1.0).prod(axis=-1)


class FlatLayout(ActionLayout):
    """One segment with an alternative for each action of `space.flat`."""

    sort = "flat"

    def __init__(self, space: ActionSpace) -> None:
        self.space = space
        self.segments = 1
        self.width = len(space.flat)
        self.owner = np.zeros(0, dtype=np.intp)
        self.active = np.ones((self.width, 1), dtype=np.bool_)
        self.prior = np.ones(self.width, dtype=np.float32)
        structured = StructuredLayout(space)
        self._structured = structured
        self._choices = structured.choices(space.flat)
        self._used = structured.active[self._choices[:, 0]]

    def legal(self, masks: Sequence[Mask]) -> BoolArray:
        """Return the masks as an array of shape [B, 1, len(flat)]."""
        structured = self._structured.legal(masks)
        allowed = structured[:, np.arange(self._structured.segments)[None, :], self._choices]
        return np.all(allowed | ~self._used, axis=-1, keepdims=True).reshape(len(masks), 1, self.width)

    def actions(self, choices: IntArray) -> list[Action]:
        """Return the actions of choices of shape [B, 1]."""
        flat = self.space.flat
        rows: list[int] = choices[:, 0].tolist()
        return [flat[row] for row in rows]

    def choices(self, actions: Sequence[Action]) -> IntArray:
        """Return the actions' places in `space.flat`, shape [B, 1]."""
        return np.array([[self.space.flat_index(action)] for action in actions], dtype=np.int64)

    def flat_probabilities(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the only segment, shape [B, len(flat)]."""
        return probabilities[:, 0, :]


LAYOUTS: dict[str, type[StructuredLayout] | type[FlatLayout]] = {
    layout.sort: layout for layout in (StructuredLayout, FlatLayout)
}
