"""The archive: the cheapest episode of each program so far, to learn from and to start new episodes from.

The goal is the best schedule, not a good mean. Learning the best episodes repeatedly keeps an update from
forgetting them (self-imitation: Oh et al., arXiv 1806.05635). Replaying an episode costs nothing, so
exploration can start from good states (Go-Explore: Ecoffet et al., arXiv 2004.12919). Programs of one kind
share their finds: a schedule of one program is tried on the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.agents.archive.near_best import NearBest, script_of
from irgym.agents.archive.niches import Niches
from irgym.agents.archive.scripts import Scripts, sketch_script
from irgym.agents.episodes.trajectories import (
    Trajectories,
    join,
    select_episodes,
    select_steps,
    trajectories_from_state,
    trajectories_state,
)
from irgym.core.task import Task
from irgym.networks.encoders import Encoder
from irgym.policies.layout import ActionLayout, IntArray


class Archive:
    """The cheapest episodes.

    Attributes:
        costs: Least cost of each program, by its number.
        episodes: One episode of each of these programs, in the order of `costs`, with the return from each
            step on in place of its reward; None as long as there is none.
        kinds: The kind of each program.
        niches: The best episode of each program in each niche, to start from.
        near: Schedules about as good as the best.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        layout: ActionLayout,
        encoder: Encoder,
        gamma: float = 1.0,
        sketched: Sequence[Task[Any]] = (),
        share: float = 0.0,
    ) -> None:
        """Make an empty archive.

        Args:
            kinds: The kind of each program, such as its target and family: programs share most within a kind.
            layout: The meaning of choices.
            encoder: Of the observations.
            gamma: Discount of the returns.
            sketched: The programs, if some scripts are to be sketches of them.
            share: Share of scripts that are sketches.
        """
        self.costs: dict[int, float] = {}
        self.episodes: Trajectories | None = None
        self.kinds = tuple(kinds)
        self.niches = Niches(self.kinds, layout)
        self.near = NearBest(layout.segments)
        self._layout = layout
        self._encoder = encoder
        self._gamma = gamma
        self._sketched = sketched
        self._share = share

    def add(self, programs: Sequence[int], episodes: Trajectories, costs: NDArray[np.float64]) -> None:
        """Keep the episodes that are cheaper than the known ones.

        Among schedules that are about equally good, the archive keeps the one that suits the most programs,
        and the shortest among these: similar programs should show a policy similar schedules. A mixture of
        many good schedules may be worthless.

        Args:
            programs: The program of each episode.
            episodes: As many episodes.
            costs: Their last costs; those that are not finite are left out.
        """
        rows = episodes.scripts()
        returns: list[float] = episodes.returns().tolist()
        for program, choices, worth in zip(programs, rows, returns, strict=True):
            self.niches.add(program, choices, worth)
        scripts = list(map(script_of, rows))
        finite = np.flatnonzero(np.isfinite(costs)).tolist()
        for number in finite:
            self.near.add(programs[number], scripts[number], float(costs[number]))
        kept = [] if self.episodes is None else self.episodes.scripts()
        held = dict(zip(self.costs, map(script_of, kept), strict=True))
        chosen: dict[int, int] = {}
        least = dict(self.costs)
        for program, numbers in _by_program(programs, finite).items():
            least[program] = min(least.get(program, np.inf), *(float(costs[number]) for number in numbers))
            new = {scripts[number]: number for number in numbers}
            old = held.get(program)
            at_hand = (script for script in self.near.of(program) if script in new or script == old)
            best = min(at_hand, key=lambda script: (*self.near.rank(script), script != old))
            if best != old:
                chosen[program] = new[best]
        if not chosen:
            self.costs = least
            return
        new = select_episodes(episodes, np.array(list(chosen.values())), self._encoder)
        new = replace(new, rewards=new.returns_to_go(self._gamma))
        staying = [place for place, program in enumerate(self.costs) if program not in chosen]
        order = [program for program in self.costs if program not in chosen]
        if self.episodes is not None and staying:
            old = select_episodes(self.episodes, np.array(staying), self._encoder)
            new = join(old, new, self._encoder)
        self.episodes = new
        self.costs = {program: least[program] for program in (*order, *chosen)}

    def sample(self, count: int, rng: np.random.Generator) -> Trajectories | None:
        """Return distinct random steps of the episodes; None without episodes."""
        if self.episodes is None:
            return None
        steps = len(self.episodes)
        return select_steps(self.episodes, rng.choice(steps, min(count, steps), replace=False), self._encoder)

    def scripts(self, programs: Sequence[int], rng: np.random.Generator) -> list[IntArray]:
        """Return a script for each program: a sketch, or see `Scripts.draw`; an empty list without episodes.

        Raises:
            IrgymError: A sketch cannot become a script.
        """
        if self.episodes is None:
            return []
        scripts = Scripts(self.episodes, tuple(self.costs), self.kinds, self._layout, self.niches, self.near)
        return [
            sketch_script(self._sketched[program], self._layout, rng)
            if self._share and rng.random() < self._share
            else scripts.draw(program, rng)
            for program in programs
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors and plain values."""
        kept = None if self.episodes is None else trajectories_state(self.episodes)
        return {
            "costs": dict(self.costs),
            "episodes": kept,
            "niches": self.niches.state_dict(),
            "near": self.near.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`, exactly."""
        self.costs = {int(program): cost for program, cost in state["costs"].items()}
        kept = state["episodes"]
        self.episodes = None if kept is None else trajectories_from_state(kept)
        self.niches.load_state_dict(state["niches"])
        self.near.load_state_dict(state["near"])


def _by_program(programs: Sequence[int], numbers: Sequence[int]) -> dict[int, list[int]]:
    """Return the episode numbers of each program."""
    places: dict[int, list[int]] = {}
    for number in numbers:
        places.setdefault(programs[number], []).append(number)
    return places
