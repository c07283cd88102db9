"""How an action space lies in a network's output: segments of alternatives.

A network emits scores of shape [B, S, W]. Segment 0 holds the kinds, the others one parameter slot
each; `W` is the size of the largest. An action is a choice in segment 0 and in the segments of the
chosen kind. A mask becomes a boolean array of the same shape, false in the padding.

Where states have candidates, segment 0 holds the kinds without candidates, and from place `W` on the
candidates of the state, one alternative each: scores have the shape [B, S, W + K], with K the greatest number
of candidates in the batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, ActionSpace, BoolArray, Mask
from irgym.core.candidates import check_listed

IntArray = NDArray[np.int64]

NO_CANDIDATES = Mask(np.zeros(0, dtype=np.bool_))
"""Placeholder for the mask of an action without a candidate, which needs no mask."""


class ActionLayout(ABC):
    """The place of every alternative in scores of shape [B, segments, width].

    Attributes:
        space: The actions.
        segments: S, one for the kinds and one for each parameter slot.
        width: W, the number of alternatives of the largest segment without candidates.
        pointed: Whether there are candidates behind the first W alternatives of segment 0.
        owner: Shape [S - 1]; the alternative in segment 0 to which each slot's segment belongs.
        active: Shape [alternatives of segment 0, S]; the segments in which such an action chooses. Where
            there are candidates it has W + 1 rows, of which the last is for all of them.
        prior: Shape [alternatives of segment 0]; how often an untrained policy chooses each, relatively.
        earlier: Shape [P]; of each pair of segments that are linked, the one that is chosen first.
        later: Shape [P]; the other one, whose scores depend on that choice.
        ends: Shape [W]; which of the first W alternatives of segment 0 end the episode.
        omitted: Shape [S]; the alternative of each segment that omits the parameter, -1 where there is none.
        ranks: The slots' segments in the order in which they are chosen, those of an entry at once; and the
            places of the pairs whose later segment is among them.
    """

    kind: str

    space: ActionSpace
    segments: int
    width: int
    pointed: bool
    owner: NDArray[np.intp]
    active: BoolArray
    ends: BoolArray
    omitted: IntArray
    prior: NDArray[np.float32]
    earlier: IntArray = np.zeros(0, dtype=np.int64)
    later: IntArray = np.zeros(0, dtype=np.int64)
    ranks: Sequence[tuple[IntArray, IntArray]] = ()

    def legal(self, masks: Sequence[Mask]) -> BoolArray:
        """Return the masks as an array of shape [B, S, W + K]; K is 0 where there are no candidates."""
        fixed = self._legal(masks)
        if not self.pointed:
            return fixed
        return with_candidates(fixed, np.array([len(mask.candidates) for mask in masks]))

    def chosen(self, choices: IntArray) -> BoolArray:
        """Return the segments in which actions of choices of shape [B, S] choose, of the same shape."""
        first = choices[:, 0]
        return self.active[np.minimum(first, self.width) if self.pointed else first]

    def onward(self, legal: BoolArray) -> BoolArray:
        """Return what is legal and does not end the episode, of the same shape [B, S, W + K]."""
        onward = legal.copy()
        onward[:, 0, : self.width] &= ~self.ends
        return onward

    def actions(self, choices: IntArray, masks: Sequence[Mask] = ()) -> list[Action]:
        """Return the actions of choices of shape [B, S].

        Args:
            choices: The choices.
            masks: Where there are candidates, the mask that each choice was made by.
        """
        if not self.pointed:
            return self._actions(choices)
        fixed = iter(self._actions(choices[choices[:, 0] < self.width]))
        actions: list[Action] = []
        places: list[int] = choices[:, 0].tolist()
        for place, mask in zip(places, masks, strict=True):
            if place < self.width:
                actions.append(next(fixed))
            else:
                kind, name = mask.candidates[place - self.width]
                actions.append(Action(kind, (), name))
        return actions

    def choices(self, actions: Sequence[Action], masks: Sequence[Mask] = ()) -> IntArray:
        """Return the choices of actions, shape [B, S]; 0 where a segment is not active.

        Args:
            actions: The actions.
            masks: Where there are candidates, the mask of each action's state.
        """
        if not self.pointed:
            return self._choices(actions)
        choices = np.zeros((len(actions), self.segments), dtype=np.int64)
        fixed = [row for row, action in enumerate(actions) if not action.candidate]
        choices[fixed] = self._choices([actions[row] for row in fixed])
        for row, (action, mask) in enumerate(zip(actions, masks, strict=True)):
            if action.candidate:
                choices[row, 0] = self.width + mask.places[action.kind, action.candidate]
        return choices

    @abstractmethod
    def _legal(self, masks: Sequence[Mask]) -> BoolArray:
        """Return the fixed part of the masks as an array of shape [B, S, W]."""

    @abstractmethod
    def _actions(self, choices: IntArray) -> list[Action]:
        """Return the actions of choices of the fixed part, shape [B, S]."""

    @abstractmethod
    def _choices(self, actions: Sequence[Action]) -> IntArray:
        """Return the choices of actions of the fixed part, shape [B, S]; 0 where a segment is not active."""


def with_candidates(fixed: BoolArray, counts: IntArray) -> BoolArray:
    """Return what is legal of the fixed part, and the candidates behind it.

    Args:
        fixed: Shape [B, S, W].
        counts: Shape [B]; the number of candidates of each state.

    Returns:
        Shape [B, S, W + K], K being the greatest number of candidates.
    """
    pointed = np.zeros((*fixed.shape[:2], counts.max(initial=0)), dtype=np.bool_)
    pointed[:, 0] = np.arange(pointed.shape[-1]) < counts[:, None]
    return np.concatenate([fixed, pointed], axis=-1)


def padded_to(legal: BoolArray, width: int) -> BoolArray:
    """Return legal alternatives of shape [B, S, w] in shape [B, S, width], false in the padding."""
    missing = width - legal.shape[-1]
    return np.pad(legal, ((0, 0), (0, 0), (0, missing))) if missing else legal


def _filled(truths: Sequence[bool], width: int) -> BoolArray:
    """Return truths as an array of some length, filled up with false."""
    return np.array([*truths, *[False] * (width - len(truths))], dtype=np.bool_)


class StructuredLayout(ActionLayout):
    """Kinds in the first segment, then a segment for each parameter slot: scores grow with the slots' sum.

    The prior of a kind is the size of its largest slot.
    """

    kind = "structured"

    def __init__(self, space: ActionSpace) -> None:
        check_listed(space)
        self._kinds = [Action(kind) for kind in space.fixed]
        self._places = {kind: place for place, kind in enumerate(space.fixed)}
        rows = [space.slot_sizes[kind] for kind in space.fixed]
        sizes = [size for row in rows for size in row]
        self.space = space
        self.pointed = space.has_candidates
        self.segments = 1 + len(sizes)
        # At least 1, so that there are scores where all kinds have candidates.
        self.width = max([1, len(rows), *sizes])
        self.owner = np.array([place for place, row in enumerate(rows) for _ in row], dtype=np.intp)
        self.prior = np.array([max(row, default=1) for row in rows], dtype=np.float32)
        kinds = self.width + 1 if self.pointed else len(rows)
        self.ends = _filled([bool(space.stops[kind]) for kind in space.fixed], self.width)
        omitted = [
            slot.index(kind.omitted) if kind.omitted in slot else -1
            for kind in (space.kinds[place] for place in space.fixed)
            for slot in kind.slots
        ]
        self.omitted = np.array([-1, *omitted], dtype=np.int64)
        slots = np.arange(kinds)[:, None] == self.owner[None, :]
        self.active = np.concatenate([np.ones((kinds, 1), dtype=np.bool_), slots], axis=1)
        # The last column of the joined mask is the one that is always false.
        start = len(space.kinds)
        self._columns = np.full((self.segments, self.width), start + space.param_count, dtype=np.intp)
        self._columns[0, : len(rows)] = space.fixed
        for segment, size in enumerate(sizes, start=1):
            self._columns[segment, :size] = np.arange(start, start + size)
            start += size
        ends = 1 + np.cumsum([len(row) for row in rows])
        self._spans = [(int(end) - len(row), int(end)) for end, row in zip(ends, rows, strict=True)]

    def _legal(self, masks: Sequence[Mask]) -> BoolArray:
        count = len(masks)
        kinds = np.concatenate([mask.kinds for mask in masks]).reshape(count, -1)
        if self.segments == 1 and not self.pointed:
            return kinds[:, None, :]
        params = np.concatenate([mask.params for mask in masks]).reshape(count, -1)
        joined = np.concatenate([kinds, params, np.zeros((count, 1), dtype=np.bool_)], axis=1)
        return joined[:, self._columns]

    def _actions(self, choices: IntArray) -> list[Action]:
        if self.segments == 1:
            places: list[int] = choices[:, 0].tolist()
            return [self._kinds[place] for place in places]
        rows: list[list[int]] = choices.tolist()
        actions: list[Action] = []
        for row in rows:
            start, end = self._spans[row[0]]
            actions.append(Action(self._kinds[row[0]].kind, tuple(row[start:end])))
        return actions

    def _choices(self, actions: Sequence[Action]) -> IntArray:
        choices = np.zeros((len(actions), self.segments), dtype=np.int64)
        for row, action in enumerate(actions):
            place = self._places[action.kind]
            start, end = self._spans[place]
            choices[row, 0] = place
            choices[row, start:end] = action.params
        return choices


class AutoregressiveLayout(StructuredLayout):
    """The slots of a kind are chosen one after the other, each given the previous choices.

    The best sizes of a tile depend on the loop chosen for the lanes. Independent slots mix good tiles into
    bad ones.
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
        structured = StructuredLayout(space)
        self.space = space
        self.pointed = space.has_candidates
        self.segments = 1
        self.width = max(1, len(space.flat))
        self.owner = np.zeros(0, dtype=np.intp)
        self.active = np.ones((self.width + self.pointed, 1), dtype=np.bool_)
        self.ends = _filled([bool(space.stops[action.kind]) for action in space.flat], self.width)
        self.omitted = np.array([-1], dtype=np.int64)
        self.prior = np.ones(self.width, dtype=np.float32)
        self._structured = structured
        self._taken = structured.choices(space.flat, [NO_CANDIDATES] * len(space.flat))
        self._used = structured.active[self._taken[:, 0]]

    def _legal(self, masks: Sequence[Mask]) -> BoolArray:
        structured = self._structured.legal(masks)
        allowed = structured[:, np.arange(self._structured.segments)[None, :], self._taken]
        legal = np.all(allowed | ~self._used, axis=-1).reshape(len(masks), 1, -1)
        return padded_to(legal, self.width)

    def _actions(self, choices: IntArray) -> list[Action]:
        flat = self.space.flat
        rows: list[int] = choices[:, 0].tolist()
        return [flat[row] for row in rows]

    def _choices(self, actions: Sequence[Action]) -> IntArray:
        places = [self.space.flat_index(action) for action in actions]
        return np.array(places, dtype=np.int64).reshape(-1, 1)


LAYOUTS: dict[str, Callable[[ActionSpace], ActionLayout]] = {
    layout.kind: layout for layout in (StructuredLayout, AutoregressiveLayout, FlatLayout)
}
