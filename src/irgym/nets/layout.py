"""How an action space lies in a network's output: segments of alternatives.

A network emits scores of shape [B, S, W]. Segment 0 holds the kinds, the others one parameter slot
each; `W` is the size of the largest. An action is a choice in segment 0 and in the segments of the
chosen kind. A mask becomes a boolean array of the same shape, false in the padding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations

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
        earlier: Shape [P]; of each pair of segments that are linked, the one that is chosen first.
        later: Shape [P]; the other one, whose scores depend on that choice.
        ranks: The slots' segments in the order in which they are chosen, those of an entry at once; and the
            places of the pairs whose later segment is among them.
    """

    kind: str

    space: ActionSpace
    segments: int
    width: int
    owner: NDArray[np.intp]
    active: BoolArray
    prior: NDArray[np.float32]
    earlier: IntArray = np.zeros(0, dtype=np.int64)
    later: IntArray = np.zeros(0, dtype=np.int64)
    ranks: Sequence[tuple[IntArray, IntArray]] = ()

    @abstractmethod
    def legal(self, masks: Sequence[Mask]) -> BoolArray:
        """Return the masks as an array of shape [B, S, W]."""

    @abstractmethod
    def actions(self, choices: IntArray) -> list[Action]:
        """Return the actions of choices of shape [B, S]."""

    @abstractmethod
    def choices(self, actions: Sequence[Action]) -> IntArray:
        """Return the choices of actions, shape [B, S]; 0 where a segment is not active."""


class StructuredLayout(ActionLayout):
    """Kinds in the first segment, each parameter slot in its own: scores grow with the sum of the slots.

    The prior of a kind is the size of its largest slot.
    """

    kind = "structured"

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


class AutoregressiveLayout(StructuredLayout):
    """The slots of a kind are chosen one after the other, each knowing those before it.

    Of a tile's sizes, which loop is for the lanes decides what the others should be. Slots that are chosen
    apart from each other mix good tiles into bad ones.
    """

    kind = "autoregressive"

    def __init__(self, space: ActionSpace) -> None:
        super().__init__(space)
        pairs = [pair for start, end in self._spans for pair in combinations(range(start, end), 2)]
        self.earlier, self.later = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        longest = max((end - start for start, end in self._spans), default=0)
        ranks = [
            np.array([start + rank for start, end in self._spans if start + rank < end], dtype=np.int64)
            for rank in range(longest)
        ]
        self.ranks = [(segments, np.flatnonzero(np.isin(self.later, segments))) for segments in ranks]


class FlatLayout(ActionLayout):
    """One segment with an alternative for each action of `space.flat`."""

    kind = "flat"

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


LAYOUTS: dict[str, Callable[[ActionSpace], ActionLayout]] = {
    layout.kind: layout for layout in (StructuredLayout, AutoregressiveLayout, FlatLayout)
}
