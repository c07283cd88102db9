"""What policies see of a method: what the JIT tells of each candidate, and how much is shared."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.observation import views_of
from irgym.envs.cse.actions import SPACE
from irgym.envs.cse.jitcse.methods import COLUMNS, NUMBERS
from irgym.envs.cse.jitcse.on_superpmi import candidate_of
from irgym.envs.cse.observing.features import scaled
from irgym.envs.cse.state import CseState
from irgym.envs.cse.superpmi.answers import JitMethod

MORE = ("bb_count", "block_spread")
"""What the JIT tells beyond what the JIT CSE gymnasium shows: blocks of the candidate, and between them."""

CANDIDATE = len(COLUMNS) + len(MORE)
"""Numbers of a candidate."""

STATE = 4
"""Numbers of a state: candidates, the share that is shared, bytes and instructions as written."""


def rows_of(method: JitMethod) -> NDArray[np.float32]:
    """Return what is seen of each candidate, shape [N, CANDIDATE]: types, signs, logarithms of numbers."""
    signs = len(COLUMNS) - len(NUMBERS)
    rows = np.zeros((len(method.candidates), CANDIDATE), dtype=np.float32)
    for place, told in enumerate(method.candidates):
        row = candidate_of(place, told, ()).row
        numbers = [*row[signs:], *(told.get(name, 0) for name in MORE)]
        rows[place] = [*row[:signs], *map(scaled, numbers)]
    return rows


def candidates_of(task: Any, state: CseState) -> CandidateObservation:
    """Return what is seen of a method and of the candidates that are left."""
    method: JitMethod = task.method
    count = max(len(task.names), 1)
    whole = [
        scaled(len(task.names)),
        len(state.shared) / count,
        scaled(method.bytes),
        scaled(method.instructions),
    ]
    return CandidateObservation(np.array(whole, dtype=np.float32), task.rows[task.left(state)])


VIEWS = views_of(candidate_view(SPACE, candidates_of, STATE, CANDIDATE, -np.inf, np.inf))
"""The observations."""
