"""What policies see of a graph, and what Gymnasium shows."""

from typing import Any

import numpy as np

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.observation import views_of
from irgym.envs.graph.actions import RULES, SPACE
from irgym.envs.graph.state import GraphState

OPERATORS = tuple(sorted({rule.anchor for rule in RULES}))
"""Operators that rules begin at."""

STATE = len(OPERATORS) + 1
"""Length of a state's vector."""

CANDIDATE = len(RULES)
"""Length of a candidate's row."""


def observe(task: Any, state: GraphState) -> CandidateObservation:
    """Return the numbers of operators, by logarithm, and the rule of each candidate, one-hot."""
    counts = np.zeros(STATE, np.float32)
    places = {operator: place for place, operator in enumerate(OPERATORS)}
    for one in state.graph.nodes.values():
        counts[places.get(one.operator, STATE - 1)] += 1
    pairs = task.mask(state).candidates
    rows = np.zeros((len(pairs), CANDIDATE), np.float32)
    for row, (kind, _) in zip(rows, pairs, strict=True):
        row[kind - 1] = 1
    return CandidateObservation(np.log1p(counts), rows)


VIEWS = views_of(candidate_view(SPACE, observe, STATE, CANDIDATE, 0.0, 20.0))
"""The observations, the default first."""
