"""Scripts: initial choices of an episode, derived from the best episodes so far.

They are the mutations and crossovers of an evolutionary search; the policy learns from its results.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irgym.agents.archive.near_best import NearBest, choices_of
from irgym.agents.archive.niches import Niches
from irgym.agents.episodes.trajectories import Trajectories
from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.task import Task
from irgym.policies.layout import ActionLayout, IntArray

FRESH = 0.2
"""Share of scripts that are entirely random."""

LONGEST = 64
"""Most actions of a random script; most episodes end earlier."""

SETTLING = 0.15
"""Share of the other scripts that are a near-best schedule of as many programs as possible."""

OTHERS = 0.5
"""Share of the other scripts that start from another program's episode."""

TOURNAMENTS = (2, 4, 8, 16, 32, 64, 128)
"""Sizes of the tournaments that choose this program by its return.

Large tournaments spread the find of a single program; small ones keep diversity.
"""

ALIKE = 0.75
"""Share of these tournaments among programs of the same kind; the others are among all."""

SHIFTED = 0.5
"""Share of episodes from any kind whose parameters shift by one loop, inwards or outwards.

The tile of a product suits a convolution in product form, except for its additional outer loop over images.
"""

NICHES = 0.5
"""Share of source episodes that are the best of a niche rather than the best of all."""

WHOLE = 0.5
"""Share of other programs' episodes that are used unchanged."""

PARAMETERS = 0.5
"""Share of edits that change one parameter."""

MORE = 0.5
"""Probability of a further edit, or a further omitted action, after each."""

LONGER = 0.3
"""Share of scripts that are an episode with random actions before its end."""

FURTHER = 0.8
"""Probability of a further random action after each."""

SHORTER = 0.2
"""Share of scripts that are an episode without some of its actions.

Many actions of a long schedule do nothing, and each of them makes edits likelier to break it.
"""

ONWARD = 0.75
"""Probability of a further action, in a truncated script, before the episode may end."""

FREE = -1
"""Placeholder in a script: the policy chooses, among the actions that do not end the episode."""

RANDOM = -2
"""Placeholder in a script: a random legal choice of a parameter, or of a kind with all its parameters."""


def sketch_script(task: Task[Any], layout: ActionLayout, rng: np.random.Generator) -> IntArray:
    """Return the choices of a random sketch of a task, with the ending action if there is one; [steps, S].

    Raises:
        IrgymError: The task has no sketches, or their actions are not listed.
    """
    sketch = None if layout.pointed else capabilities.sketch(task, rng)
    if sketch is None:
        raise IrgymError(f"no script can be made of a sketch of {task.uri}: set sketched to 0")
    ends = np.flatnonzero(layout.ends)[:1]
    end = np.zeros((len(ends), layout.segments), dtype=np.int64)
    end[:, 0] = ends
    return np.concatenate([layout.choices(sketch), end])


class Scripts:
    """Scripts derived from an archive's episodes."""

    def __init__(
        self,
        episodes: Trajectories,
        programs: Sequence[int],
        kinds: Sequence[str],
        layout: ActionLayout,
        niches: Niches,
        near: NearBest,
    ) -> None:
        """Index the episodes.

        Args:
            episodes: The episodes, with returns in place of rewards.
            programs: The program of each episode.
            kinds: The kind of each program, with or without episodes.
            layout: The meaning of choices.
            niches: The best episodes by niche, of these programs and others.
            near: The schedules about as good as the best.
        """
        self._episodes = episodes.scripts()
        first = episodes.step == 0
        self._returns = episodes.rewards[first][np.argsort(episodes.episode[first])]
        self._programs = list(programs)
        self._places = {program: place for place, program in enumerate(programs)}
        self._kinds = kinds
        self._alike: dict[str, list[int]] = {}
        for place, program in enumerate(programs):
            self._alike.setdefault(kinds[program], []).append(place)
        self._layout = layout
        self._niches = niches
        self._near = near

    def draw(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return the initial choices for an episode of a program, shape [steps, S].

        A script is random, or a schedule that suits many programs, or derived from a source: the best episode
        of the program, of a niche, or of a tournament among programs, mostly of the same kind. A derived
        script is lengthened by random actions before its end, or shortened by leaving out actions, or edited.
        An edit truncates the script, replaces its rest by that of another source, or deletes, inserts or
        replaces an action. The new action is left to the policy, random, taken from another source, or the
        old one with a random parameter; an inserted action may also be part of its successor, see `_part`.
        """
        if rng.random() < FRESH:
            return self._left_open(RANDOM, LONGEST)
        if rng.random() < SETTLING:
            return self._common(program, rng)
        place = self._places.get(program)
        other = place is None or rng.random() < OTHERS
        script = self._another(program, rng) if place is None or other else self._own(program, place, rng)
        change = rng.random()
        if change < LONGER:
            return self._longer(script, rng)
        if change < LONGER + SHORTER:
            left_out = rng.choice(len(script), min(int(rng.geometric(1 - MORE)), len(script)), replace=False)
            return np.delete(script, left_out, axis=0)
        edits = 0 if other and rng.random() < WHOLE else int(rng.geometric(1 - MORE))
        for _ in range(edits):
            script = self._edited(script, program, rng)
        return script

    def _common(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return the near-best schedule of this program, or one of its kind, that suits the most programs."""
        known = self._near.of(program)
        if not known or rng.random() < OTHERS:
            places = self._alike.get(self._kinds[program], range(len(self._programs)))
            known = self._near.of(self._programs[places[rng.integers(len(places))]])
        return choices_of(min(known, key=self._near.rank))

    def _own(self, program: int, place: int, rng: np.random.Generator) -> IntArray:
        """Return the best episode of the program, or of one of its niches."""
        return self._niches.own(program, rng) if rng.random() < NICHES else self._episodes[place]

    def _another(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return the winner of a tournament among episodes, mostly of the program's kind."""
        own = self._kinds[program]
        kind = own if own in self._alike and rng.random() < ALIKE else None
        count = int(rng.choice(TOURNAMENTS))
        if rng.random() < NICHES:
            script = self._niches.another(kind, count, rng)
        else:
            drawn = rng.choice(len(self._places) if kind is None else self._alike[kind], count)
            script = self._episodes[int(drawn[np.argmax(self._returns[drawn])])]
        shifted = kind is None and rng.random() < SHIFTED
        return self._shifted(script, int(rng.choice([-1, 1]))) if shifted else script

    def _shifted(self, script: IntArray, by: int) -> IntArray:
        """Return choices with the parameters moved by one slot, for kinds whose slots are all optional."""
        shifted = script.copy()
        for row, active in zip(shifted, self._layout.chosen(script), strict=True):
            slots = np.flatnonzero(active)[1:]
            omitted = self._layout.omitted[slots]
            if len(slots) > 1 and (omitted >= 0).all():
                row[slots] = np.roll(row[slots], by)
                end = 0 if by > 0 else -1
                row[slots[end]] = omitted[end]
        return shifted

    def _edited(self, script: IntArray, program: int, rng: np.random.Generator) -> IntArray:
        if not len(script):
            return script
        place = int(rng.integers(len(script)))
        if rng.random() < PARAMETERS:
            return self._varied(script, place, rng)
        present = self._present(script[place])
        edit = int(rng.integers(6 if len(present) > 1 else 5))
        if edit == 5:
            return np.insert(script, place, self._part(script[place], present, rng), axis=0)
        if edit == 0:
            return np.concatenate([script[:place], self._left_open(FREE, int(rng.geometric(1 - ONWARD)) - 1)])
        if edit == 1:
            other = self._another(program, rng)
            return np.concatenate([script[:place], other[rng.integers(len(other)) :]])
        if edit == 2:
            return np.delete(script, place, axis=0)
        new = self._new(program, rng)
        if edit == 3:
            return np.insert(script, place, new, axis=0)
        changed = script.copy()
        changed[place] = new
        return changed

    def _longer(self, script: IntArray, rng: np.random.Generator) -> IntArray:
        """Return a script with some random actions before its end.

        Changes that need several actions at once, such as going to a loop, splitting it and moving a part,
        are only found this way.
        """
        last = int(script[-1, 0])
        ends = 0 <= last < self._layout.width and bool(self._layout.ends[last])
        place = len(script) - ends
        more = self._left_open(RANDOM, int(rng.geometric(1 - FURTHER)))
        return np.concatenate([script[:place], more, script[place:]])

    def _varied(self, script: IntArray, place: int, rng: np.random.Generator) -> IntArray:
        """Return a script with one parameter of an action random; or the whole action, if it has none."""
        if script[place, 0] < 0:
            return script
        slots = np.flatnonzero(self._layout.chosen(script[[place]])[0])[1:]
        varied = script.copy()
        varied[place, rng.choice(slots) if len(slots) else slice(None)] = RANDOM
        return varied

    def _part(self, choices: IntArray, present: IntArray, rng: np.random.Generator) -> IntArray:
        """Return an action with only some of its parameters; the original action then does the rest.

        So one tile becomes two. Alone this changes little, but another action may now come between them.
        """
        left_out = rng.permutation(present)[: rng.integers(1, len(present))]
        part = choices.copy()
        part[left_out] = self._layout.omitted[left_out]
        return part

    def _present(self, choices: IntArray) -> IntArray:
        """Return the slots of an action with optional parameters that are present."""
        if choices[0] < 0:
            return np.zeros(0, dtype=np.int64)
        omitted = self._layout.omitted
        return np.flatnonzero(self._layout.chosen(choices[None])[0] & (omitted >= 0) & (choices != omitted))

    def _new(self, program: int, rng: np.random.Generator) -> IntArray:
        source = int(rng.integers(3))
        if source == 0:
            return self._left_open(FREE, 1)[0]
        if source == 1:
            other = self._another(program, rng)
            return other[rng.integers(len(other))]
        return self._left_open(RANDOM, 1)[0]

    def _left_open(self, how: int, steps: int) -> IntArray:
        """Return `steps` placeholders, all `FREE` or all `RANDOM`."""
        return np.full((steps, self._layout.segments), how, dtype=np.int64)
