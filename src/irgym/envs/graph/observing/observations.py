"""Observations of graphs, for policies and Gymnasium."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.graph_observation import GraphObservation
from irgym.core.observation import ObservationView, graph_space, views_of
from irgym.core.target import NUMBERS
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.graph.actions import SPACE
from irgym.envs.graph.observing.table import EDGE, KIND_PLACES, KINDS, NODE, Table, log
from irgym.envs.graph.rewriting.traits import traits_of
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import Candidates, GraphState

STATE = NUMBERS + 2
"""Features of the whole: the target's, and the logarithms of the numbers of operators and candidates."""

TRAITS = traits_of(RULES)
"""Features of each rule; see `traits_of`."""

CANDIDATE = TRAITS.shape[1] + 2
"""Features of a candidate: its rule's traits, the logarithm of its number of sites, and whether these are all
sites of the rule."""

_WIDE = np.pad(TRAITS, ((0, 0), (0, CANDIDATE - TRAITS.shape[1])))


def _whole(task: Any, state: GraphState, candidates: int) -> NDArray[np.float32]:
    numbers = (*task.target.numbers, log(len(state.graph.nodes)), log(candidates))
    return np.array(numbers, dtype=np.float32)


def _candidates(candidates: Candidates) -> NDArray[np.float32]:
    """Return the features of candidates, shape [C, CANDIDATE]."""
    rules, places = np.array([rule for rule, _ in candidates], dtype=np.int64), np.arange(len(candidates))
    rows = _WIDE.take(rules, axis=0)
    rows[:, -2] = np.log2(np.fromiter(map(len, candidates.values()), np.int64, len(rules))) / 4
    last = np.zeros(len(RULES), dtype=np.int64)
    last[rules] = places
    rows[:, -1] = last.take(rules) == places  # a rule's last candidate covers all of its sites
    return rows


def graph_of(task: Any, state: GraphState) -> GraphObservation:
    """Return the graph: inputs, then operators; the members of a candidate are the operators of its match."""
    candidates: Candidates = task.candidates(state)
    table: Table = task.table
    shown = table.show(state.graph.measured)
    return GraphObservation(
        shown.nodes,
        shown.edges,
        shown.links,
        _whole(task, state, len(candidates)),
        _candidates(candidates),
        table.members(shown, candidates),
    )


def counts_of(task: Any, state: GraphState) -> CandidateObservation:
    """Return the logarithmic count of operators of each kind, and the features of candidates."""
    counts = np.zeros(len(KINDS), dtype=np.float32)
    counts[0] = len(state.graph.inputs)
    for node in state.graph.nodes.values():
        counts[KIND_PLACES.get(node.operator, 1)] += 1
    candidates: Candidates = task.candidates(state)
    whole = np.concatenate([np.log1p(counts), _whole(task, state, len(candidates))])
    return CandidateObservation(whole, _candidates(candidates))


VIEWS = views_of(
    ObservationView(
        "graph",
        f"operators [N, {NODE}], operands [E, {EDGE}], the whole [{STATE}], candidates [C, {CANDIDATE}]; "
        "Gymnasium shows operators and operands",
        lambda: graph_space(NODE, EDGE, -np.inf, np.inf),
        graph_of,
        shown=lambda seen: seen.instance,
    ),
    candidate_view(SPACE, counts_of, len(KINDS) + STATE, CANDIDATE, -np.inf, np.inf, "counts"),
    TARGET_VIEW,
)
"""The observations, the default first."""
