"""Niches: the best episode of each program with each mixture of actions.

The way to a better schedule may lead through worse ones: packing does not pay until the tiles around it fit.
In a niche an episode competes only with episodes of the same actions in any order, so a schedule that is
worse at first has time to improve (MAP-Elites: Mouret and Clune, arXiv 1504.04909). Actions with several
parameters, such as tiles, only count by number: separate niches for their parameters would be too many.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.agents.archive.script_state import scripts_from_state, scripts_state
from irgym.policies.layout import ActionLayout, IntArray

DRAWN = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of niches of a program in a tournament."""

LENGTHS = (4, 6, 8, 12, 16, 24, 32, 64)
"""Limits on the length of the episodes in a tournament, drawn each time.

A short schedule is easier to improve than a slightly better long one: few of its edits break it.
"""


class _Elite(NamedTuple):
    """The best episode of a program in a niche: its return, and its choices of shape [steps, S]."""

    worth: float
    choices: NDArray[np.int16]


class Niches:
    """The best episodes by program and niche.

    Their returns may be predictions, since they only serve as material for scripts.
    """

    def __init__(self, kinds: Sequence[str], layout: ActionLayout) -> None:
        """Start empty.

        Args:
            kinds: The kind of each program, such as its target and family.
            layout: The meaning of choices.
        """
        self._kinds = kinds
        self._layout = layout
        # The slot of each kind that has a single one; 0 for the others.
        self._slots = np.array([row.nonzero()[0][-1] if row.sum() == 2 else 0 for row in layout.active])
        self._elites: dict[tuple[int, bytes], _Elite] = {}
        self._niches: dict[int, list[bytes]] = {}
        self._programs: dict[str | None, list[int]] = {}
        self._holders: dict[tuple[str | None, bytes], list[int]] = {}

    def add(self, program: int, choices: IntArray, worth: float) -> None:
        """Keep an episode if it is the best in its niche, or equals the best and has another return.

        Args:
            program: Number of the program.
            choices: The episode's choices, shape [steps, S].
            worth: The episode's return.
        """
        own = choices.astype(np.int16)
        place = program, self._niche(choices)
        old = self._elites.get(place)
        if old is None:
            self._enter(*place)
        if old is None or worth > old.worth or np.array_equal(own, old.choices):
            self._elites[place] = _Elite(worth, own)

    def own(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return the best of some niches of a program, which must have episodes: its choices."""
        return self._choices(program, self._drawn(program, rng))

    def another(self, kind: str | None, drawn: int, rng: np.random.Generator) -> IntArray:
        """Return the best episode of several programs in one good niche: its choices.

        Args:
            kind: The kind of these programs, some of which must have episodes; None for all kinds.
            drawn: Number of programs to draw.
            rng: Random generator.
        """
        programs = self._programs[kind]
        niche = self._drawn(programs[rng.integers(len(programs))], rng)
        holders = self._holders[kind, niche]
        places: list[int] = rng.integers(len(holders), size=drawn).tolist()
        best = max((holders[place] for place in places), key=lambda holder: self._elites[holder, niche].worth)
        return self._choices(best, niche)

    def _drawn(self, program: int, rng: np.random.Generator) -> bytes:
        """Return the best of some niches of a program: of those with few actions, if there are any."""
        longest = int(rng.choice(LENGTHS))
        niches = self._niches[program]
        short = [niche for niche in niches if len(self._elites[program, niche].choices) <= longest]
        niches = short or niches
        places: list[int] = rng.integers(len(niches), size=int(rng.choice(DRAWN))).tolist()
        return max((niches[place] for place in places), key=lambda niche: self._elites[program, niche].worth)

    def _niche(self, choices: IntArray) -> bytes:
        """Return a key of the multiset of actions; all actions with candidates count as the same."""
        width = self._layout.width
        kinds = np.minimum(choices[:, 0], width)
        slots = self._slots[kinds]
        values = np.where(slots > 0, choices[np.arange(len(choices)), slots], 0)
        return np.sort(kinds * width + values).tobytes()

    def _enter(self, program: int, niche: bytes) -> None:
        """Record that a program has an episode in a niche."""
        if program not in self._niches:
            for kind in (self._kinds[program], None):
                self._programs.setdefault(kind, []).append(program)
        self._niches.setdefault(program, []).append(niche)
        for kind in (self._kinds[program], None):
            self._holders.setdefault((kind, niche), []).append(program)

    def _choices(self, program: int, niche: bytes) -> IntArray:
        return self._elites[program, niche].choices.astype(np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors."""
        elites = list(self._elites.values())
        return scripts_state(
            [program for program, _ in self._elites],
            [elite.choices for elite in elites],
            [elite.worth for elite in elites],
            self._layout.segments,
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`, exactly."""
        for entries in (self._elites, self._niches, self._programs, self._holders):
            entries.clear()
        for program, choices, worth in scripts_from_state(state):
            self.add(program, choices.astype(np.int64), worth)
