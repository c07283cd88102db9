"""States with candidates of random features, and their masks, for tests of networks."""

import numpy as np
from hypothesis import strategies as st

from irgym.core.actions import ActionSpace, Mask
from irgym.core.candidates import CandidateObservation
from irgym.core.kinds import ActionKind
from irgym.networks.candidates import CandidateSpec

F, G = 3, 2
SPEC = CandidateSpec(F, G, (8, 8))
SPACE = ActionSpace(
    (
        ActionKind("merge", candidates=True),
        ActionKind("stop", ends="episode"),
        ActionKind("tile", ((8, 16, 32), (1, 2))),
        ActionKind("split", candidates=True),
    )
)
counts = st.lists(st.integers(0, 5), min_size=1, max_size=6)


def observations(numbers: list[int], seed: int = 0) -> list[CandidateObservation]:
    rng = np.random.default_rng(seed)
    return [
        CandidateObservation(
            rng.normal(size=F).astype(np.float32), rng.normal(size=(n, G)).astype(np.float32)
        )
        for n in numbers
    ]


def masks_of(space: ActionSpace, numbers: list[int], seed: int = 0) -> list[Mask]:
    """Random masks, of which each lets something be taken."""
    rng = np.random.default_rng(seed)
    owners = [index for index, kind in enumerate(space.kinds) if kind.candidates]
    masks: list[Mask] = []
    for number in numbers:
        kinds = rng.random(len(space.kinds)) < 0.5
        if len(space.kinds) > 2:
            kinds[1] |= number == 0
        params = np.array([True, False, True, False, True])[: space.param_count]
        pairs = [(int(rng.choice(owners)), f"n{place}") for place in range(number)]
        masks.append(Mask(kinds, params, tuple(pairs)))
    return masks
