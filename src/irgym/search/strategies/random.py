"""Random search: independent random episodes."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.search.mutation import pick, random_episode
from irgym.search.session import Session
from irgym.search.walks import together


@dataclass(frozen=True)
class RandomSearch:
    """Evaluate the end and one state on the way of each random episode.

    Neighbouring states are alike, so evaluating all of an episode would see fewer different programs.

    Attributes:
        batch: Episodes played, and evaluated, at a time.
    """

    batch: Annotated[int, Range(1, 1_000_000)] = 16

    def __post_init__(self) -> None:
        check_fields(self, "random")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent."""
        while True:
            paths = together(session, [random_episode(session, rng) for _ in range(self.batch)])
            session.costs([node for path in paths for node in (path[-1], pick(path, rng))])
