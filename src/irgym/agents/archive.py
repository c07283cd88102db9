"""The archive: the cheapest episode of each program so far, to learn from, and to start new ones from.

What counts is the best schedule found, not the mean of many. Learning the best ones again keeps what an
update would forget (self-imitation: Oh et al., arXiv 1806.05635), and since an episode can be followed again
at no cost, exploration starts from what is good rather than from nothing (Go-Explore: Ecoffet et al., arXiv
2004.12919). Programs of one kind share what they find: a schedule is tried on others too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.acting.heads import Draw, uniform_kind
from irgym.acting.layout import ActionLayout, IntArray
from irgym.agents.trajectories import (
    Trajectories,
    join,
    select_episodes,
    select_steps,
    trajectories_from_state,
    trajectories_state,
)
from irgym.core.actions import BoolArray
from irgym.nets.encoders import Encoder

FRESH = 0.2
"""Share of the scripts that are random throughout."""

LONGEST = 64
"""Greatest number of random actions; most episodes end before."""

OTHERS = 0.5
"""Share of the other scripts that are made of another program's episode."""

TOURNAMENTS = (2, 4, 8, 16, 32, 64, 128)
"""How many programs are drawn of which the one with the greatest return is that other.

Large tournaments spread what a single program found; small ones take over what is different, too.
"""

ALIKE = 0.75
"""Share of these tournaments that are held among programs of the same kind; the others are among all."""

SHIFTED = 0.5
"""Share of what may be of any kind whose parameters are for loops one place further in or out.

A product's tile suits a convolution that was made a product, but for the loop over images in front.
"""

WHOLE = 0.5
"""Share of those that are taken over as they are."""

PARAMETERS = 0.5
"""Share of the edits that concern one parameter."""

MORE = 0.5
"""Probability of another edit after each."""

ONWARD = 0.75
"""Probability of another action, where a script is cut off, before the episode may end."""

AS_GOOD = 1.02
"""Factor above the least cost up to which an episode that the policy chose by itself is kept in its place."""

FREE = -1
"""Stands in a script for a choice that is left to the policy: of what does not end the episode."""

RANDOM = -2
"""Stands in a script for a legal choice at random: of a parameter, or of a kind and all its parameters."""


class Archive:
    """The cheapest episodes.

    Attributes:
        costs: Least cost of each program, by its number.
        episodes: One episode of each of these programs, in the order of `costs`, with the return from each
            step on in place of its reward; None as long as there is none.
        kinds: The kind of each program.
    """

    def __init__(
        self, kinds: Sequence[str], layout: ActionLayout, encoder: Encoder, gamma: float = 1.0
    ) -> None:
        """Begin with none.

        Args:
            kinds: The kind of each program, such as its target and family: they share more with their own.
            layout: The meaning of choices.
            encoder: Of the observations.
            gamma: Discount of the returns.
        """
        self.costs: dict[int, float] = {}
        self.episodes: Trajectories | None = None
        self.kinds = tuple(kinds)
        self._layout = layout
        self._encoder = encoder
        self._gamma = gamma

    def add(
        self, programs: Sequence[int], episodes: Trajectories, costs: NDArray[np.float64], own: int
    ) -> None:
        """Keep what is cheaper than before.

        Of several that are about as good, a shorter one is kept, or else the latest that the policy chose by
        itself: what it is likely to do is easier to learn, and alike for programs that are alike.

        Args:
            programs: The program of each episode.
            episodes: As many episodes.
            costs: Their last costs; those that are not finite are left out.
            own: How many of them, the first ones, the policy chose by itself.
        """
        chosen: dict[int, int] = {}
        least = dict(self.costs)
        lengths = np.bincount(episodes.episode, minlength=len(programs)).tolist()
        shortest = dict(zip(self.costs, self._lengths(), strict=True))
        for number, (program, cost, length) in enumerate(zip(programs, costs.tolist(), lengths, strict=True)):
            limit, before = least.get(program, np.inf), shortest.get(program, 0)
            simpler = length < before or (number < own and length == before)
            if np.isfinite(cost) and cost < limit * (AS_GOOD if simpler else 1.0):
                chosen[program] = number
                least[program] = min(cost, limit)
                shortest[program] = length
        if not chosen:
            return
        new = select_episodes(episodes, np.array(list(chosen.values())), self._encoder)
        new = replace(new, rewards=new.returns_to_go(self._gamma))
        kept = [place for place, program in enumerate(self.costs) if program not in chosen]
        order = [program for program in self.costs if program not in chosen]
        if self.episodes is not None and kept:
            old = select_episodes(self.episodes, np.array(kept), self._encoder)
            new = join(old, new, self._encoder)
        self.episodes = new
        self.costs = {program: least[program] for program in (*order, *chosen)}

    def _lengths(self) -> list[int]:
        """Return the steps of each episode."""
        return [] if self.episodes is None else np.bincount(self.episodes.episode).tolist()

    def sample(self, count: int, rng: np.random.Generator) -> Trajectories | None:
        """Return some steps of the episodes, none twice; None where there are no episodes."""
        if self.episodes is None:
            return None
        steps = len(self.episodes)
        return select_steps(self.episodes, rng.choice(steps, min(count, steps), replace=False), self._encoder)

    def scripts(self, programs: Sequence[int], rng: np.random.Generator) -> list[IntArray]:
        """Return choices to begin an episode of each of some programs with, shape [steps, S] each.

        Some are random. The others are those of the program's own episode, or of a better one's, mostly one
        of its kind, with some edits: cut off somewhere, or with the rest of another such episode instead, or
        with an action less, one more, or another one. That is the policy's, one of the archive's, random, or
        the same with one parameter at random.
        """
        if self.episodes is None:
            return []
        shelf = _Shelf(self.episodes, tuple(self.costs), self.kinds, self._layout)
        scripts: list[IntArray] = []
        for program in programs:
            if rng.random() < FRESH:
                scripts.append(self._left_open(RANDOM, LONGEST))
                continue
            own = shelf.own(program)
            other = own is None or rng.random() < OTHERS
            script = shelf.another(program, rng) if own is None or other else own
            edits = 0 if other and rng.random() < WHOLE else int(rng.geometric(1 - MORE))
            for _ in range(edits):
                script = self._edited(script, program, shelf, rng)
            scripts.append(script)
        return scripts

    def _edited(self, script: IntArray, program: int, shelf: "_Shelf", rng: np.random.Generator) -> IntArray:
        if not len(script):
            return script
        place = int(rng.integers(len(script)))
        if rng.random() < PARAMETERS:
            return self._varied(script, place, rng)
        edit = int(rng.integers(5))
        if edit == 0:
            return np.concatenate([script[:place], self._left_open(FREE, int(rng.geometric(1 - ONWARD)) - 1)])
        if edit == 1:
            other = shelf.another(program, rng)
            return np.concatenate([script[:place], other[rng.integers(len(other)) :]])
        if edit == 2:
            return np.delete(script, place, axis=0)
        new = self._other(shelf.choices, rng)
        if edit == 3:
            return np.insert(script, place, new, axis=0)
        changed = script.copy()
        changed[place] = new
        return changed

    def _varied(self, script: IntArray, place: int, rng: np.random.Generator) -> IntArray:
        """Return a script with one parameter of an action at random; or the action, where it has none."""
        if script[place, 0] < 0:
            return script
        slots = np.flatnonzero(self._layout.chosen(script[[place]])[0])[1:]
        varied = script.copy()
        varied[place, rng.choice(slots) if len(slots) else slice(None)] = RANDOM
        return varied

    def _other(self, pool: IntArray, rng: np.random.Generator) -> IntArray:
        source = int(rng.integers(3))
        if source == 0:
            return self._left_open(FREE, 1)[0]
        if source == 1:
            return pool[rng.integers(len(pool))]
        return self._left_open(RANDOM, 1)[0]

    def _left_open(self, how: int, steps: int) -> IntArray:
        """Return what stands for some choices that are `FREE` or `RANDOM`."""
        return np.full((steps, self._layout.segments), how, dtype=np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors and plain values."""
        kept = None if self.episodes is None else trajectories_state(self.episodes)
        return {"costs": dict(self.costs), "episodes": kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        self.costs = {int(program): cost for program, cost in state["costs"].items()}
        kept = state["episodes"]
        self.episodes = None if kept is None else trajectories_from_state(kept)


class _Shelf:
    """An archive's episodes in the order of their steps, to draw from.

    Attributes:
        choices: Those of all of them, shape [M, S].
    """

    def __init__(
        self, episodes: Trajectories, programs: Sequence[int], kinds: Sequence[str], layout: ActionLayout
    ) -> None:
        """Put them in order.

        Args:
            episodes: The episodes, with returns in place of rewards.
            programs: The program of each.
            kinds: The kind of each program of all.
            layout: The meaning of choices.
        """
        order = np.lexsort((episodes.step, episodes.episode))
        bounds = np.searchsorted(episodes.episode[order], np.arange(len(programs) + 1))
        self.choices = episodes.choices[order]
        self._bounds = bounds
        self._returns = episodes.rewards[order][bounds[:-1]]
        self._places = {program: place for place, program in enumerate(programs)}
        self._kinds = kinds
        self._alike: dict[str, list[int]] = {}
        for place, program in enumerate(programs):
            self._alike.setdefault(kinds[program], []).append(place)
        self._layout = layout

    def own(self, program: int) -> IntArray | None:
        """Return the choices of a program's own episode; None where it has none."""
        place = self._places.get(program)
        return None if place is None else self._at(place)

    def another(self, program: int, rng: np.random.Generator) -> IntArray:
        """Return those of the best of some episodes, which are mostly of the program's kind.

        Where any kind may be among them, the parameters may be for loops one place further in or out.
        """
        near = self._alike.get(self._kinds[program]) if rng.random() < ALIKE else None
        drawn = rng.choice(near or len(self._places), rng.choice(TOURNAMENTS))
        script = self._at(int(drawn[np.argmax(self._returns[drawn])]))
        shifted = near is None and rng.random() < SHIFTED
        return self._shifted(script, int(rng.choice([-1, 1]))) if shifted else script

    def _at(self, place: int) -> IntArray:
        return self.choices[self._bounds[place] : self._bounds[place + 1]]

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


class Following:
    """Episodes that follow scripts: each as far as its choices apply, leaving out those that do not.

    After its script, and where it leaves a choice free, an episode goes on as the policy chooses.
    """

    def __init__(
        self, scripts: Mapping[int, IntArray], layout: ActionLayout, rng: np.random.Generator
    ) -> None:
        """Begin.

        Args:
            scripts: Choices of shape [steps, S], by the number of the episode.
            layout: Their meaning.
            rng: Source of the choices that are random.
        """
        self._left = {episode: list(script) for episode, script in scripts.items()}
        self._layout = layout
        self._rng = rng

    def draw(self, episodes: Sequence[int], legal: BoolArray, choose: Callable[[BoolArray], Draw]) -> Draw:
        """Return a draw for some episodes: the scripts' choices, or else the policy's.

        Args:
            episodes: Their numbers.
            legal: See `ActionLayout.legal`.
            choose: Draws the policy's choices among what is legal.
        """
        wanted = [self._wanted(episode, row) for episode, row in zip(episodes, legal, strict=True)]
        free = np.array([one is not None and one[0] == FREE for one in wanted])
        onward = self._layout.onward(legal)
        goes_on = free & onward[:, 0].any(axis=-1)
        draw = choose(np.where(goes_on[:, None, None], onward, legal))
        choices = draw.choices.copy()
        followed = np.zeros(len(choices), dtype=np.bool_)
        for row, one in enumerate(wanted):
            if one is not None and not free[row]:
                choices[row] = self._filled(one, legal[row])
                followed[row] = True
        return Draw(
            choices,
            np.where(followed, np.float32(0), draw.policy_logp),
            np.where(followed, np.float32(0), draw.behaviour_logp),
        )

    def _wanted(self, episode: int, legal: BoolArray) -> IntArray | None:
        """Return what comes next in an episode's script and applies; None after its end."""
        left = self._left.get(episode)
        while left:
            wanted = left.pop(0)
            if wanted[0] in (FREE, RANDOM) or self._applies(wanted, legal):
                return wanted
        return None

    def _applies(self, choices: IntArray, legal: BoolArray) -> bool:
        if choices[0] >= legal.shape[-1] or not legal[0, choices[0]]:
            return False
        segments = np.flatnonzero(self._layout.chosen(choices[None])[0] & (choices >= 0))
        return bool(legal[segments, choices[segments]].all())

    def _filled(self, choices: IntArray, legal: BoolArray) -> IntArray:
        """Return the choices of an action with legal ones in place of those at random."""
        if (choices != RANDOM).all():
            return choices
        fixed = np.flatnonzero(choices >= 0)
        allowed = legal.copy()
        allowed[fixed] = False
        allowed[fixed, choices[fixed]] = True
        return uniform_kind(allowed[None], self._layout, self._rng)[0]
