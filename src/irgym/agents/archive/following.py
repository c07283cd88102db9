"""Episodes that follow scripts, see `irgym.agents.archive.scripts`."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irgym.agents.archive.scripts import FREE, RANDOM
from irgym.core.actions import BoolArray
from irgym.policies.heads import Draw, uniform_kind
from irgym.policies.layout import ActionLayout, IntArray


class Following:
    """Episodes that follow scripts, skipping the choices that do not apply.

    If only an optional parameter does not apply, such as a tile as large as its loop, only this parameter is
    omitted. After its script, and where the script leaves a choice free, an episode follows the policy.
    """

    def __init__(
        self, scripts: Mapping[int, IntArray], layout: ActionLayout, rng: np.random.Generator
    ) -> None:
        """Start the episodes.

        Args:
            scripts: Choices of shape [steps, S], by the number of the episode.
            layout: Meaning of the choices.
            rng: Generator of random choices.
        """
        self._left = {episode: list(script) for episode, script in scripts.items()}
        self._layout = layout
        self._rng = rng

    def draw(self, episodes: Sequence[int], legal: BoolArray, choose: Callable[[BoolArray], Draw]) -> Draw:
        """Return a draw for some episodes: the scripts' choices where there are any, else the policy's.

        Args:
            episodes: Their numbers.
            legal: See `ActionLayout.legal`.
            choose: Draws the policy's choices, given the legal ones.
        """
        wanted = [self._wanted(episode, row) for episode, row in zip(episodes, legal, strict=True)]
        free = np.array([step is not None and step[0] == FREE for step in wanted])
        onward = self._layout.onward(legal)
        goes_on = free & onward[:, 0].any(axis=-1)
        draw = choose(np.where(goes_on[:, None, None], onward, legal))
        choices = draw.choices.copy()
        followed = np.zeros(len(choices), dtype=np.bool_)
        for row, step in enumerate(wanted):
            if step is not None and not free[row]:
                choices[row] = self._filled(step, legal[row])
                followed[row] = True
        return Draw(
            choices,
            np.where(followed, np.float32(0), draw.policy_logp),
            np.where(followed, np.float32(0), draw.behaviour_logp),
        )

    def _wanted(self, episode: int, legal: BoolArray) -> IntArray | None:
        """Return the next choices of an episode's script that apply; None after its end."""
        left = self._left.get(episode)
        while left:
            wanted = self._applying(left.pop(0), legal)
            if wanted is not None:
                return wanted
        return None

    def _applying(self, choices: IntArray, legal: BoolArray) -> IntArray | None:
        """Return the applicable part of an action's choices; None if there is none."""
        if choices[0] in (FREE, RANDOM):
            return choices
        if choices[0] >= legal.shape[-1] or not legal[0, choices[0]]:
            return None
        slots = np.flatnonzero(self._layout.chosen(choices[None])[0])[1:]
        fixed = slots[choices[slots] >= 0]
        barred = fixed[~legal[fixed, choices[fixed]]]
        if not len(barred):
            return choices
        applying, omitted = choices.copy(), self._layout.omitted
        applying[barred] = omitted[barred]
        possible = (omitted[barred] >= 0).all() and legal[barred, omitted[barred]].all()
        return applying if possible and (applying[slots] != omitted[slots]).any() else None

    def _filled(self, choices: IntArray, legal: BoolArray) -> IntArray:
        """Return the choices of an action, with `RANDOM` replaced by random legal choices."""
        if (choices != RANDOM).all():
            return choices
        fixed = np.flatnonzero(choices >= 0)
        allowed = legal.copy()
        allowed[fixed] = False
        allowed[fixed, choices[fixed]] = True
        return uniform_kind(allowed[None], self._layout, self._rng)[0]
