"""Scripts: choices that an episode begins with, made of the best episodes so far.

They are the mutations and crossovers of an evolutionary search, whose results teach a policy.
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
"""Share of the scripts that are random throughout."""

LONGEST = 64
"""Greatest number of random actions; most episodes end before."""

SETTLING = 0.15
"""Share of the other scripts that are a schedule which is about the best for the most programs."""

OTHERS = 0.5
"""Share of the other scripts that are made of another program's episode."""

TOURNAMENTS = (2, 4, 8, 16, 32, 64, 128)
"""How many programs are drawn of which the one with the greatest return is that other.

Large tournaments spread what a single program found; small ones take over what is different, too.
"""

ALIKE = 0.75
"""Share of these tournaments that are held among programs of the same kind; the others are among all."""

SHIFTED = 0.5
"""Share of what is drawn from all kinds whose parameters move to the loops one place further in or out.

A product's tile suits a convolution that was made a product, but for the loop over images in front.
"""

NICHES = 0.5
"""Share of what scripts are made of that comes from any niche, rather than from the best of all."""

WHOLE = 0.5
"""Share of what is another program's that is taken over as it is."""

PARAMETERS = 0.5
"""Share of the edits that concern one parameter."""

MORE = 0.5
"""Probability of another edit, or another action to leave out, after each."""

LONGER = 0.3
"""Share of the scripts that are an episode with random actions before its end."""

FURTHER = 0.8
"""Probability of another of these after each."""

SHORTER = 0.2
"""Share of the scripts that are an episode without some of its actions.

Much of a long schedule is worth nothing, and each action of it makes the next edit likelier to break it.
"""

ONWARD = 0.75
"""Probability of another action, where a script is cut off, before the episode may end."""

FREE = -1
"""Stands in a script for a choice that is left to the policy: of what does not end the episode."""

RANDOM = -2
"""Stands in a script for a legal choice at random: of a parameter, or of a kind and all its parameters."""


def sketch_script(task: Task[Any], layout: ActionLayout, rng: np.random.Generator) -> IntArray:
    """Return the choices of a random sketch of a task, and then the end, if there is one; shape [steps, S].

    Raises:
        IrgymError: There are none, or their actions are not listed.
    """
    sketch = None if layout.pointed else capabilities.sketch(task, rng)
    if sketch is None:
        raise IrgymError(f"no script can be made of a sketch of {task.uri}: set sketched to 0")
    ends = np.flatnonzero(layout.ends)[:1]
    end = np.zeros((len(ends), layout.segments), dtype=np.int64)
    end[:, 0] = ends
    return np.concatenate([layout.choices(sketch), end])


class Scripts:
    """Scripts that are made of an archive's episodes."""

    def __init__(
        self,
        episodes: Trajectories,
        programs: Sequence[int],
        kinds: Sequence[str],
        layout: ActionLayout,
        niches: Niches,
        near: NearBest,
    ) -> None:
        """Begin.

        Args:
            episodes: The episodes, with returns in place of rewards.
            programs: The program of each.
            kinds: The kind of each program of all.
            layout: The meaning of choices.
            niches: The best episodes by niche; those of these programs are among them.
            near: What is about as good as the best episodes.
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
        """Return choices to begin an episode of a program with, shape [steps, S].

        Some scripts are random, and some a schedule that suits many programs. The others are the choices of
        the program's own episode, or of a better one's, mostly one of its kind; or of the best in a niche.
        Some of these have random actions before their end, and some leave out actions. The others have edits:
        cut off somewhere, or with the rest of another such episode instead, or with an action less, one more,
        or another one. The other one is the policy's, one of another such episode, random, or the same with
        one parameter at random. One more may also be a part of the next one, see `_part`.
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
        """Return what suits the most programs, of what is about the best for this or another of its kind."""
        known = self._near.of(program)
        if not known or rng.random() < OTHERS:
            places = self._alike.get(self._kinds[program], range(len(self._programs)))
            known = self._near.of(self._programs[places[rng.integers(len(places))]])
        return choices_of(min(known, key=self._near.rank))

    def _own(self, program: int, place: int, rng: np.random.Generator) -> IntArray:
        """Return the choices of an episode of the program."""
        return self._niches.own(program, rng) if rng.random() < NICHES else self._episodes[place]

    def _another(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return the choices of the best of some episodes, which are mostly of the program's kind."""
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
        """Return choices whose parameters are moved by one slot, where all slots of a kind can be omitted."""
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

        Where a change takes several actions that are worth nothing without each other, such as going to a
        loop, splitting it and moving a part, they are found here or not at all.
        """
        last = int(script[-1, 0])
        ends = 0 <= last < self._layout.width and bool(self._layout.ends[last])
        place = len(script) - ends
        more = self._left_open(RANDOM, int(rng.geometric(1 - FURTHER)))
        return np.concatenate([script[:place], more, script[place:]])

    def _varied(self, script: IntArray, place: int, rng: np.random.Generator) -> IntArray:
        """Return a script with one parameter of an action at random; or the action, where it has none."""
        if script[place, 0] < 0:
            return script
        slots = np.flatnonzero(self._layout.chosen(script[[place]])[0])[1:]
        varied = script.copy()
        varied[place, rng.choice(slots) if len(slots) else slice(None)] = RANDOM
        return varied

    def _part(self, choices: IntArray, present: IntArray, rng: np.random.Generator) -> IntArray:
        """Return an action with some of the parameters present. The whole one then has what is left to do.

        So one tile becomes two, which changes little by itself, but another action may come between.
        """
        left_out = rng.permutation(present)[: rng.integers(1, len(present))]
        part = choices.copy()
        part[left_out] = self._layout.omitted[left_out]
        return part

    def _present(self, choices: IntArray) -> IntArray:
        """Return the slots of an action whose parameters could be omitted, and are not."""
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
        """Return what stands for some choices that are `FREE` or `RANDOM`."""
        return np.full((steps, self._layout.segments), how, dtype=np.int64)
