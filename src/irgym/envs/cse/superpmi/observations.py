"""Observations of a method: the JIT's features of each candidate, and the share of shared ones."""

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
"""Features of the JIT that the JIT CSE gymnasium does not show: blocks of the candidate, and their spread."""

CANDIDATE = len(COLUMNS) + len(MORE)
"""Number of a candidate's features."""

STATE = 4
"""Number of a state's features: candidates, shared share, original bytes and instructions."""


def rows_of(method: JitMethod) -> NDArray[np.float32]:
    """Return the features of each candidate, shape [N, CANDIDATE]: types, booleans, logarithms of numbers."""
    signs = len(COLUMNS) - len(NUMBERS)
    rows = np.zeros((len(method.candidates), CANDIDATE), dtype=np.float32)
    for place, told in enumerate(method.candidates):
        row = candidate_of(place, told, ()).row
        numbers = [*row[signs:], *(told.get(name, 0) for name in MORE)]
        rows[place] = [*row[:signs], *map(scaled, numbers)]
    return rows


def candidates_of(task: Any, state: CseState) -> CandidateObservation:
    """Return the features of a method and of the candidates that are not shared yet."""
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
