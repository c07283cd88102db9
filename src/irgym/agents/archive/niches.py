"""Niches: the best episode of each program with each mixture of actions.

A better schedule may lie behind worse ones: packing costs more than it brings until the tiles around it fit.
In a niche an episode competes only with those that take the same actions in another order, so what is worse
at first can improve until it is not (MAP-Elites: Mouret and Clune, arXiv 1504.04909). Of actions with several
parameters, such as tiles, only the number counts: there are too many for niches of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.agents.archive.script_state import scripts_from_state, scripts_state
from irgym.policies.layout import ActionLayout, IntArray

DRAWN = (1, 2, 4, 8, 16, 32, 64)
"""How many niches of a program are drawn of which the best counts."""

LENGTHS = (4, 6, 8, 12, 16, 24, 32, 64)
"""How many actions these episodes may have, one of these limits at a time.

A short schedule is easier to improve than a long one that is somewhat better: few of its edits break it.
"""


class _Elite(NamedTuple):
    """The best episode of a program in a niche: its return, and its choices of shape [steps, S]."""

    worth: float
    choices: NDArray[np.int16]


class Niches:
    """The best episodes by program and niche.

    Their returns may be predicted: they are only what scripts are made of.
    """

    def __init__(self, kinds: Sequence[str], layout: ActionLayout) -> None:
        """Begin with none.

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
        """Keep an episode if it is the best in its niche, or the same as that with another return.

        Args:
            program: Number of its program.
            choices: What it chose, shape [steps, S].
            worth: Its return.
        """
        own = choices.astype(np.int16)
        place = program, self._niche(choices)
        old = self._elites.get(place)
        if old is None:
            self._enter(*place)
        if old is None or worth > old.worth or np.array_equal(own, old.choices):
            self._elites[place] = _Elite(worth, own)

    def own(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return the choices of an episode of a program that has some: the best of some of its niches."""
        return self._choices(program, self._drawn(program, rng))

    def another(self, kind: str | None, drawn: int, rng: np.random.Generator) -> IntArray:
        """Return the choices of the best of some programs' episodes in one niche, which is a good one.

        Args:
            kind: The kind of these programs, of which some have episodes; None for all.
            drawn: How many programs are drawn.
            rng: Source of the draws.
        """
        programs = self._programs[kind]
        niche = self._drawn(programs[rng.integers(len(programs))], rng)
        holders = self._holders[kind, niche]
        places: list[int] = rng.integers(len(holders), size=drawn).tolist()
        best = max((holders[place] for place in places), key=lambda one: self._elites[one, niche].worth)
        return self._choices(best, niche)

    def _drawn(self, program: int, rng: np.random.Generator) -> bytes:
        """Return the best of some niches of a program: of those with few actions, if there are any."""
        longest = int(rng.choice(LENGTHS))
        niches = self._niches[program]
        short = [niche for niche in niches if len(self._elites[program, niche].choices) <= longest]
        niches = short or niches
        places: list[int] = rng.integers(len(niches), size=int(rng.choice(DRAWN))).tolist()
        return max((niches[place] for place in places), key=lambda one: self._elites[program, one].worth)

    def _niche(self, choices: IntArray) -> bytes:
        """Return the actions without their order; all with candidates are the same."""
        width = self._layout.width
        kinds = np.minimum(choices[:, 0], width)
        slots = self._slots[kinds]
        values = np.where(slots > 0, choices[np.arange(len(choices)), slots], 0)
        return np.sort(kinds * width + values).tobytes()

    def _enter(self, program: int, niche: bytes) -> None:
        """Note that a program has an episode in a niche."""
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
            [one.choices for one in elites],
            [one.worth for one in elites],
            self._layout.segments,
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        for entries in (self._elites, self._niches, self._programs, self._holders):
            entries.clear()
        for program, choices, worth in scripts_from_state(state):
            self.add(program, choices.astype(np.int64), worth)
