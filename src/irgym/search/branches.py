"""The actions of a node that a search considers: all, or some of very many."""

from zlib import crc32

import numpy as np

from irgym.core.actions import LISTED, Action, ActionSpace, Mask

BRANCHES = 256
"""Greatest number of actions of a node that a search considers; of structured actions there are too many."""


def few(space: ActionSpace, mask: Mask) -> bool:
    """Say whether a mask allows at most `BRANCHES` actions."""
    return (space.size <= BRANCHES and not space.has_candidates) or space.count(mask) <= BRANCHES


def some(space: ActionSpace, mask: Mask, seed: str) -> list[Action]:
    """Return `BRANCHES` distinct random legal actions, those of a kind together."""
    rng = np.random.default_rng(crc32(seed.encode()))
    if space.has_candidates and space.count(mask) <= LISTED:
        # Drawn kind by kind, few kinds with many candidates would take very many draws.
        legal = space.legal(mask)
        places: list[int] = rng.permutation(len(legal))[:BRANCHES].tolist()
        return sorted(legal[place] for place in places)
    chosen: dict[Action, None] = {}
    while len(chosen) < BRANCHES:
        chosen.setdefault(space.sample(mask, rng))
    return sorted(chosen)
