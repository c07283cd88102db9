"""Structured actions: a kind, its parameters and the candidate that it is for, with masks for all three.

A flat action space is the case in which no kind has parameters. Candidates are choices that come from the
state, such as the places where a rule applies; an action holds a candidate's name, not its position.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError, ScheduleError
from irgym.base.keywords import did_you_mean
from irgym.core.kinds import ActionKind

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

NO_CHOICES: BoolArray = np.zeros(0, dtype=np.bool_)
"""The choices of a space in which no kind has parameters; read-only."""
NO_CHOICES.flags.writeable = False


class Action(NamedTuple):
    """An action of some `ActionSpace`.

    Attributes:
        kind: Index of the kind in `ActionSpace.kinds`.
        params: For each slot of that kind, the index of the choice taken.
        candidate: Name of the candidate; empty for kinds without candidates.
    """

    kind: int
    params: tuple[int, ...] = ()
    candidate: str = ""


@dataclass(frozen=True)
class Mask:
    """Which actions apply in a state.

    Attributes:
        kinds: Shape [number of kinds]; true where the kind can be taken. Entries of kinds with candidates
            count for nothing: such a kind can be taken if `candidates` has a pair for it.
        params: Shape [sum of all slot sizes]: the slots of all kinds one after the other, true
            where the choice can be taken. A kind that can be taken has a choice in each slot.
        candidates: The state's candidates, pairs of kind and name, in the order of the observation's rows.
            A name stays the same as long as its candidate exists. It has no white space and no comma.
    """

    kinds: BoolArray
    params: BoolArray = field(default_factory=lambda: NO_CHOICES)
    candidates: tuple[tuple[int, str], ...] = ()

    @cached_property
    def places(self) -> dict[tuple[int, str], int]:
        """The place of each pair in `candidates`.

        Raises:
            ValueError: A pair occurs twice.
        """
        places = {pair: place for place, pair in enumerate(self.candidates)}
        if len(places) < len(self.candidates):
            raise ValueError("a candidate occurs twice in a mask: candidates of a kind need distinct names")
        return places

    @cached_property
    def named(self) -> dict[int, list[str]]:
        """The names of the candidates of each kind that has some."""
        names: dict[int, list[str]] = {}
        for kind, name in self.candidates:
            names.setdefault(kind, []).append(name)
        return names


LISTED = 1 << 20
"""Greatest number of actions of a space, or of a state's legal actions, that are listed one by one."""


WRITTEN = 128
"""Greatest number of legal actions that a message lists one by one."""

NAMED = 16
"""Greatest number of candidates of a kind that a message lists where there are too many actions."""

CAPACITY = 256
"""Candidates that Gymnasium's view of a space shows, unless the space says otherwise."""


@dataclass(frozen=True)
class ActionSpace:
    """All actions of a task: kinds with parameter slots.

    The text form of an action is its kind's name followed by its parameters, joined by `_`: `split_32`.
    A candidate's name follows after `@`: `merge@h3`.

    The fixed part of a space is its kinds without candidates. It may be too large to list: `flat` and what
    rests on it is for small ones. Every space without candidates has a view as vectors of whole numbers: the
    kind, then a choice for each slot of each kind, of which those of the kind taken count.

    Attributes:
        kinds: The kinds of actions.
        capacity: How many candidates of a state Gymnasium's view shows.
    """

    kinds: tuple[ActionKind, ...]
    capacity: int = CAPACITY

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
    def fixed(self) -> tuple[int, ...]:
        """The kinds without candidates, by index."""
        return tuple(index for index, kind in enumerate(self.kinds) if not kind.candidates)

    @cached_property
    def has_candidates(self) -> bool:
        """Whether there are kinds with candidates, so that the actions differ from state to state."""
        return len(self.fixed) < len(self.kinds)

    @cached_property
    def size(self) -> int:
        """Number of actions of the fixed part."""
        return sum(prod(self.slot_sizes[index]) for index in self.fixed)

    @property
    def listable(self) -> bool:
        """Whether the actions of the fixed part are few enough to be listed in `flat`."""
        return self.size <= LISTED

    @cached_property
    def flat(self) -> tuple[Action, ...]:
        """Every action of the fixed part, in a fixed order: the flat view that Gymnasium and DQN use.

        Raises:
            IrgymError: There are too many.
        """
        if not self.listable:
            raise IrgymError(
                f"these {self.size:.1e} actions are too many for a flat action space: use an agent with "
                "structured actions, such as ppo"
            )
        actions: list[Action] = []
        for index in self.fixed:
            actions.extend(Action(index, tuple(params)) for params in np.ndindex(*self.slot_sizes[index]))
        return tuple(actions)

    @cached_property
    def _flat_index(self) -> dict[Action, int]:
        return {action: index for index, action in enumerate(self.flat)}

    @cached_property
    def _kind_index(self) -> dict[str, int]:
        return {kind.name: index for index, kind in enumerate(self.kinds)}

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

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """Number of choices of each number of a vector: of the kinds, then of all slots of all kinds."""
        return (len(self.kinds), *(size for sizes in self.slot_sizes for size in sizes))

    @cached_property
    def _vector_places(self) -> tuple[int, ...]:
        """For each kind, where its slots begin in a vector."""
        return tuple(accumulate(map(len, self.slot_sizes[:-1]), initial=1))

    @cached_property
    def _owners_and_firsts(self) -> tuple[NDArray[np.intp], BoolArray]:
        """For each choice in `Mask.params` its kind, and whether it is the first of its slot."""
        owners = np.repeat(np.arange(len(self.kinds)), [sum(sizes) for sizes in self.slot_sizes])
        firsts = np.zeros(self.param_count, dtype=np.bool_)
        firsts[[offset for offsets in self.slot_offsets for offset in offsets]] = True
        return owners, firsts

    def vector(self, action: Action) -> IntArray:
        """Return `action` as a vector, shape [len(dimensions)]; 0 in the slots of other kinds."""
        vector = np.zeros(len(self.dimensions), dtype=np.int64)
        begin = self._vector_places[action.kind]
        vector[0] = action.kind
        vector[begin : begin + len(action.params)] = action.params
        return vector

    def from_vector(self, vector: IntArray) -> Action:
        """Return the action that a vector stands for, shape [len(dimensions)]."""
        kind = int(vector[0])
        begin = self._vector_places[kind]
        return Action(kind, tuple(vector[begin : begin + len(self.slot_sizes[kind])].tolist()))

    def vector_mask(self, mask: Mask) -> BoolArray:
        """Return which choices a vector may have, those of all dimensions joined, shape [sum(dimensions)].

        Vectors of allowed choices stand for exactly the actions that `mask` allows. A slot of a kind that
        cannot be taken has its first choice only: it counts for nothing, and no slot may be left without one.
        """
        owners, firsts = self._owners_and_firsts
        return np.concatenate([mask.kinds, np.where(mask.kinds[owners], mask.params, firsts)])

    @cached_property
    def stops(self) -> BoolArray:
        """Whether an action of each kind ends the episode, shape [number of kinds]."""
        return np.array([kind.ends == "episode" for kind in self.kinds], dtype=np.bool_)

    def onward(self, mask: Mask) -> Mask:
        """Return a mask without the kinds that end the episode; it may allow nothing."""
        return Mask(mask.kinds & ~self.stops, mask.params, mask.candidates)

    def takeable(self, mask: Mask) -> list[int]:
        """Return the kinds that `mask` lets be taken, ascending."""
        if not self.has_candidates:
            return np.flatnonzero(mask.kinds).tolist()
        return sorted([*(index for index in self.fixed if mask.kinds[index]), *mask.named])

    def names(self, mask: Mask, kind: int) -> Sequence[str]:
        """Return the names of a kind's candidates; of a kind without candidates, the empty one alone."""
        return mask.named.get(kind, ()) if self.kinds[kind].candidates else ("",)

    def allows(self, mask: Mask, action: Action) -> bool:
        """Say whether `mask` lets `action` be taken."""
        kind, params, candidate = action
        there = (kind, candidate) in mask.places if self.kinds[kind].candidates else mask.kinds[kind]
        return bool(there) and all(
            mask.params[offset + choice]
            for offset, choice in zip(self.slot_offsets[kind], params, strict=True)
        )

    def count(self, mask: Mask) -> int:
        """Return how many actions `mask` lets be taken."""
        return sum(
            prod(
                int(np.count_nonzero(mask.params[offset : offset + size]))
                for offset, size in zip(self.slot_offsets[kind], self.slot_sizes[kind], strict=True)
            )
            * len(self.names(mask, kind))
            for kind in self.takeable(mask)
        )

    def legal(self, mask: Mask) -> list[Action]:
        """Return the actions that `mask` lets be taken, kind by kind, as in `flat`.

        Raises:
            IrgymError: There are too many to list; `sample` draws some.
        """
        if (self.has_candidates or not self.listable) and (count := self.count(mask)) > LISTED:
            raise IrgymError(f"the {count:.1e} legal actions are too many to list")
        return [
            Action(kind, params, name)
            for kind in self.takeable(mask)
            for name in self.names(mask, kind)
            for params in product(*self.choices(mask, kind))
        ]

    def options(self, mask: Mask) -> str:
        """Return the legal actions in words: one by one where they are few, else the choices of each kind."""
        if self.count(mask) <= WRITTEN:
            return " ".join(self.text(action) for action in self.legal(mask))
        forms: list[str] = []
        shown = min(NAMED, 1 + WRITTEN // (1 + len(mask.named)))
        for index in self.takeable(mask):
            kind = self.kinds[index]
            choices = self.choices(mask, index)
            slots = tuple(
                tuple(values[choice] for choice in allowed)
                for values, allowed in zip(kind.slots, choices, strict=True)
            )
            names = self.names(mask, index)
            more = f"|... ({len(names)} in all)" if len(names) > shown else ""
            forms.append(replace(kind, slots=slots).form("|".join(names[:shown]) + more))
        return " ".join(forms)

    def sample(self, mask: Mask, rng: np.random.Generator) -> Action:
        """Return a random legal action: each kind equally likely, then each candidate and each choice."""
        kind = int(rng.choice(self.takeable(mask)))
        params = tuple(slot[int(rng.integers(len(slot)))] for slot in self.choices(mask, kind))
        if not self.kinds[kind].candidates:
            return Action(kind, params)
        names = self.names(mask, kind)
        return Action(kind, params, names[int(rng.integers(len(names)))])

    def choices(self, mask: Mask, kind: int) -> list[list[int]]:
        """Return the choices that a mask allows in each slot of a kind."""
        return [
            np.flatnonzero(mask.params[offset : offset + size]).tolist()
            for offset, size in zip(self.slot_offsets[kind], self.slot_sizes[kind], strict=True)
        ]

    def text(self, action: Action) -> str:
        """Return the readable form of `action`, which `parse` reads back.

        Raises:
            ValueError: Its candidate's name is empty, or has white space or a comma.
        """
        kind = self.kinds[action.kind]
        text = kind.text(action.params)
        if not kind.candidates:
            return text
        if action.candidate.replace(",", " ").split() != [action.candidate]:
            raise ValueError(
                f"{action.candidate!r} cannot name a candidate: use a word without white space and commas"
            )
        return f"{text}@{action.candidate}"

    def parse(self, text: str) -> Action:
        """Read one action; whether a state has its candidate, only a mask says.

        Raises:
            ScheduleError: There is no such action; the message says which there are.
        """
        head, _, name = text.partition("@")
        # Names of kinds may contain underscores.
        ends = [len(head), *(place for place in range(len(head)) if head[place] == "_")]
        found = [self._kind_index[head[:end]] for end in ends if head[:end] in self._kind_index]
        for index in found:
            params = self.kinds[index].params(head[len(self.kinds[index].name) + 1 :])
            named = bool(name) if self.kinds[index].candidates else head == text
            if params is not None and named:
                return Action(index, params, name)
        raise ScheduleError(f"there is no action {text!r}: {self._choice(head, found)}")

    def _choice(self, head: str, found: Sequence[int]) -> str:
        """Return in words which actions there are: those of some kinds first, if any, then all others."""
        if not found:
            meant = did_you_mean([head.partition("_")[0], head], [kind.name for kind in self.kinds])
            return f"{meant}choose among {' '.join(kind.form() for kind in self.kinds)}"
        forms = " ".join(self.kinds[index].form() for index in found)
        others = ", ".join(kind.name for index, kind in enumerate(self.kinds) if index not in found)
        return f"choose among {forms}" + (f"; the other kinds are {others}" if others else "")

    def mask(
        self,
        kinds: Sequence[bool],
        params: Sequence[bool] = (),
        candidates: Sequence[tuple[int, str]] = (),
    ) -> Mask:
        """Build a `Mask` from plain sequences."""
        return Mask(np.array(kinds, dtype=np.bool_), np.array(params, dtype=np.bool_), tuple(candidates))
