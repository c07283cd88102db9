"""The archive: the cheapest episode of each program so far, to learn from, and to start new ones from.

What counts is the best schedule found, not the mean of many. Learning the best ones again keeps what an
update would forget (self-imitation: Oh et al., arXiv 1806.05635), and since an episode can be followed again
at no cost, exploration starts from what is good rather than from nothing (Go-Explore: Ecoffet et al., arXiv
2004.12919). Programs of one kind share what they find: a schedule is tried on others too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.acting.layout import ActionLayout, IntArray
from irgym.agents.niches import Niches
from irgym.agents.scripts import Scripts
from irgym.agents.trajectories import (
    Trajectories,
    join,
    select_episodes,
    select_steps,
    trajectories_from_state,
    trajectories_state,
)
from irgym.nets.encoders import Encoder

AS_GOOD = 1.05
"""Factor between costs that count as the same: measured once, they differ by as much."""


class Archive:
    """The cheapest episodes.

    Attributes:
        costs: Least cost of each program, by its number.
        episodes: One episode of each of these programs, in the order of `costs`, with the return from each
            step on in place of its reward; None as long as there is none.
        kinds: The kind of each program.
        niches: The best episode of each program in each niche, to start from.
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
        self.niches = Niches(self.kinds, layout)
        self._layout = layout
        self._encoder = encoder
        self._gamma = gamma

    def add(self, programs: Sequence[int], episodes: Trajectories, costs: NDArray[np.float64]) -> None:
        """Keep what is cheaper than before.

        Of several that are about as good, a shorter one is kept, or else the one that more programs have:
        what is alike for programs that are alike can be learnt. If each had another of many good schedules,
        a policy would learn a mixture, which may be worth nothing.

        Args:
            programs: The program of each episode.
            episodes: As many episodes.
            costs: Their last costs; those that are not finite are left out.
        """
        scripts = episodes.scripts()
        returns: list[float] = episodes.returns().tolist()
        for program, script, worth in zip(programs, scripts, returns, strict=True):
            self.niches.add(program, script, worth)
        known = [] if self.episodes is None else [script.tobytes() for script in self.episodes.scripts()]
        common = Counter(known)
        held = dict(zip(self.costs, known, strict=True))
        chosen: dict[int, int] = {}
        least = dict(self.costs)
        for number, (program, cost) in enumerate(zip(programs, costs.tolist(), strict=True)):
            limit, script = least.get(program, np.inf), scripts[number].tobytes()
            before = held.get(program, b"")
            simpler = (len(script), -common[script]) < (len(before), -common[before])
            if np.isfinite(cost) and cost < limit * (AS_GOOD if simpler else 1 / AS_GOOD):
                chosen[program] = number
                least[program] = min(cost, limit)
                held[program] = script
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

    def sample(self, count: int, rng: np.random.Generator) -> Trajectories | None:
        """Return some steps of the episodes, none twice; None where there are no episodes."""
        if self.episodes is None:
            return None
        steps = len(self.episodes)
        return select_steps(self.episodes, rng.choice(steps, min(count, steps), replace=False), self._encoder)

    def scripts(self, programs: Sequence[int], rng: np.random.Generator) -> list[IntArray]:
        """Return a script for each of some programs, see `Scripts.draw`; none where there are no episodes."""
        if self.episodes is None:
            return []
        scripts = Scripts(self.episodes, tuple(self.costs), self.kinds, self._layout, self.niches)
        return [scripts.draw(program, rng) for program in programs]

    def state_dict(self) -> dict[str, Any]:
        """Return everything as tensors and plain values."""
        kept = None if self.episodes is None else trajectories_state(self.episodes)
        return {"costs": dict(self.costs), "episodes": kept, "niches": self.niches.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        self.costs = {int(program): cost for program, cost in state["costs"].items()}
        kept = state["episodes"]
        self.episodes = None if kept is None else trajectories_from_state(kept)
        self.niches.load_state_dict(state["niches"])
