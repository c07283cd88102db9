"""Structured actions: a kind and its parameters, with masks for both.

A flat action space is the case in which no kind has parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import ScheduleError

BoolArray = NDArray[np.bool_]


class Action(NamedTuple):
    """An action of some `ActionSpace`.

    Attributes:
        kind: Index of the kind in `ActionSpace.kinds`.
        params: For each slot of that kind, the index of the choice taken.
    """

    kind: int
    params: tuple[int, ...] = ()


@dataclass(frozen=True)
class ActionKind:
    """A kind of action, such as `split`, and the choices of each of its parameter slots."""

    name: str
    slots: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Mask:
    """Which actions apply in a state.

    Attributes:
        kinds: Shape [number of kinds]; true where the kind can be taken.
        params: Shape [sum of all slot sizes]: the slots of all kinds one after the other, true
            where the choice can be taken. A kind that can be taken has a choice in each slot.
    """

    kinds: BoolArray
    params: BoolArray


@dataclass(frozen=True)
class ActionSpace:
    """All actions of a task: kinds with parameter slots.

    The text form of an action is its kind's name followed by its parameters, joined by `_`: `split_32`.
    """

    kinds: tuple[ActionKind, ...]

    @cached_property
    def slot_sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each kind, the number of choices of each of its slots."""
        return tuple(tuple(len(choices) for choices in kind.slots) for kind in self.kinds)

    @cached_property
    def slot_offsets(self) -> tuple[tuple[int, ...], ...]:
        """For each kind and slot, where that slot begins in `Mask.params`."""
        offsets: list[tuple[int, ...]] = []
        total = 0
        for sizes in self.slot_sizes:
            row: list[int] = []
            for size in sizes:
                row.append(total)
                total += size
            offsets.append(tuple(row))
        return tuple(offsets)

    @cached_property
    def param_count(self) -> int:
        """Length of `Mask.params`."""
        return sum(sum(sizes) for sizes in self.slot_sizes)

    @cached_property
    def flat(self) -> tuple[Action, ...]:
        """Every action, in a fixed order: the flat view that Gymnasium and DQN use."""
        actions: list[Action] = []
        for index, sizes in enumerate(self.slot_sizes):
            actions.extend(Action(index, tuple(params)) for params in np.ndindex(*sizes))
        return tuple(actions)

    @cached_property
    def _flat_index(self) -> dict[Action, int]:
        return {action: index for index, action in enumerate(self.flat)}

    @cached_property
    def _texts(self) -> dict[str, Action]:
        return {self.text(action): action for action in self.flat}

    @cached_property
    def _flat_gather(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """For each flat action its kind, and per slot its place in `params` (-1 where it has none)."""
        width = max((len(sizes) for sizes in self.slot_sizes), default=0)
        kinds = np.array([action.kind for action in self.flat], dtype=np.intp)
        places = np.full((len(self.flat), width), -1, dtype=np.intp)
        for row, action in enumerate(self.flat):
            for slot, choice in enumerate(action.params):
                places[row, slot] = self.slot_offsets[action.kind][slot] + choice
        return kinds, places

    def flat_index(self, action: Action) -> int:
        """Return the place of `action` in `flat`."""
        return self._flat_index[action]

    def flat_mask(self, mask: Mask) -> BoolArray:
        """Return which actions of `flat` apply, shape [len(flat)]."""
        kinds, places = self._flat_gather
        allowed = np.append(mask.params, True)
        return mask.kinds[kinds] & allowed[places].all(axis=1)

    def allows(self, mask: Mask, action: Action) -> bool:
        """Say whether `mask` lets `action` be taken."""
        offsets = self.slot_offsets[action.kind]
        return bool(mask.kinds[action.kind]) and all(
            mask.params[offset + choice] for offset, choice in zip(offsets, action.params, strict=True)
        )

    def legal(self, mask: Mask) -> list[Action]:
        """Return the actions that `mask` lets be taken, in the order of `flat`."""
        return [self.flat[index] for index in np.flatnonzero(self.flat_mask(mask))]

    def text(self, action: Action) -> str:
        """Return the readable form of `action`, which `parse` reads back."""
        kind = self.kinds[action.kind]
        values = (choices[index] for choices, index in zip(kind.slots, action.params, strict=True))
        return "_".join([kind.name, *map(str, values)])

    def parse(self, text: str) -> Action:
        """Read one action.

        Raises:
            ScheduleError: There is no such action; the message names those that exist.
        """
        try:
            return self._texts[text]
        except KeyError:
            names = " ".join(self._texts)
            raise ScheduleError(f"there is no action {text!r}: choose among {names}") from None

    def mask(self, kinds: Sequence[bool], params: Sequence[bool] = ()) -> Mask:
        """Build a `Mask` from plain sequences."""
        return Mask(np.array(kinds, dtype=np.bool_), np.array(params, dtype=np.bool_))
