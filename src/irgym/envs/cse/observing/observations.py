"""Observations of a state, for policies and for Gymnasium."""

from typing import Any

import numpy as np

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.observation import views_of
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.cse.actions import SPACE
from irgym.envs.cse.observing.features import CANDIDATE, FUNCTION, STATIC
from irgym.envs.cse.state import CseState

STATE = FUNCTION + 2
"""Number of a state's features: the function's, and the shares of candidates and of savings so far."""


def candidates_of(task: Any, state: CseState) -> CandidateObservation:
    """Return the features of the function and of the candidates that are not shared yet."""
    features = task.features
    shared = np.array(sorted(state.shared), dtype=np.int64)
    left = np.array(task.left(state), dtype=np.int64)
    rows = np.zeros((len(left), CANDIDATE), dtype=np.float32)
    if len(left):
        rows[:, :STATIC] = features.candidates[left]
    if len(left) and len(shared):
        chosen = np.ix_(left, shared)
        rows[:, STATIC] = features.holds[chosen].any(axis=1)
        rows[:, STATIC + 1] = features.holds.T[chosen].any(axis=1)
        crowded = features.overlaps[chosen] * features.alike[chosen]
        rows[:, STATIC + 2] = np.log2(1 + crowded.sum(axis=1)) / 4
        rows[:, STATIC + 3] = 1
    whole = [len(shared) / max(len(task.names), 1), 1.0 - float(task.analysis(state)[0])]
    return CandidateObservation(np.concatenate([features.function, whole], dtype=np.float32), rows)


VIEWS = views_of(
    candidate_view(SPACE, candidates_of, STATE, CANDIDATE, -np.inf, np.inf),
    TARGET_VIEW,
)
"""The observations, the default first."""
