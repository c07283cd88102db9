"""Beam search, depth-first and breadth-first (LoopTune, section 5: widths 2 and 4)."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from irgym.base.values import Range, check_fields
from irgym.core.schedule import Candidate
from irgym.search.session import Session, unseen


def _cheapest(
    session: Session, nodes: list[Candidate], count: int, rng: np.random.Generator
) -> list[Candidate]:
    """Return the cheapest nodes, ascending; of those with equal costs at first no more than half of `count`.

    Equal op counts mostly come from the same actions in another order: they would fill the beam with one
    idea. Which of them are taken is drawn at random.
    """
    costs = session.costs(nodes)
    order = sorted(range(len(nodes)), key=list(zip(costs, rng.random(len(nodes)), strict=True)).__getitem__)
    holders = Counter[float]()
    ranks: dict[int, tuple[int, float]] = {}
    for place in order:
        ranks[place] = holders[costs[place]] // -(-count // 2), costs[place]
        holders[costs[place]] += 1
    chosen = sorted(order, key=ranks.__getitem__)[:count]
    return [nodes[place] for place in sorted(chosen, key=costs.__getitem__)]


@dataclass(frozen=True)
class Beam:
    """Keep the cheapest states only: the children of each state, depth first, or the states of each depth.

    Depth first, it descends into the cheapest children of each state, the cheapest first, down to the horizon
    and back. Breadth first, it keeps the cheapest states of each depth, down to the horizon; then it starts
    again with twice the width, until a descent cuts nothing off.

    Attributes:
        width: States kept: of the children of a state, or of each depth in the first descent.
        order: Whether to go depth first or breadth first.
    """

    width: Annotated[int, Range(1, 1_000_000)] = 4
    order: Literal["depth", "breadth"] = "depth"

    def __post_init__(self) -> None:
        check_fields(self, "beam")

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until nothing is left, or until the budget is spent."""
        if self.order == "depth":
            self._depth_first(session, rng)
        else:
            self._breadth_first(session, rng)

    def _depth_first(self, session: Session, rng: np.random.Generator) -> None:
        seen: set[Hashable] = {session.identity(session.root)}
        stack = [session.root]
        while stack:
            children = unseen(session, session.children(stack.pop()), seen)
            stack += reversed(_cheapest(session, children, self.width, rng))

    def _breadth_first(self, session: Session, rng: np.random.Generator) -> None:
        width, cut = self.width, True
        while cut:
            cut = False
            seen: set[Hashable] = {session.identity(session.root)}
            beam = [session.root]
            while beam:
                children = unseen(session, session.expand(beam), seen)
                cut |= len(children) > width
                beam = _cheapest(session, children, width, rng)
            width *= 2


def breadth_first() -> Beam:
    """Return breadth-first beam search."""
    return Beam(order="breadth")
