"""Observations of modules, for policies and for Gymnasium."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.observation import ObservationView, array_view, graph_space, views_of
from irgym.envs.hlo.actions import HORIZON, PASSES
from irgym.envs.hlo.observing.features import FEATURES, features
from irgym.envs.hlo.observing.opcodes import OPCODES
from irgym.envs.hlo.state import HloState

_LARGE = np.iinfo(np.int32).max


def _counts(task: Any, state: HloState) -> NDArray[np.int32]:
    del task
    return state.node.counts.copy()


def _delta(task: Any, state: HloState) -> NDArray[np.int32]:
    del task
    return state.node.counts - state.before.counts


def _history(task: Any, state: HloState) -> NDArray[np.int64]:
    del task
    history = np.full(HORIZON, -1, dtype=np.int64)
    latest = state.path[-HORIZON:]
    history[: len(latest)] = latest
    return history


def _analysis(task: Any, state: HloState) -> NDArray[np.float32]:
    return task.cost_analysis(state).astype(np.float32)


def _graph(task: Any, state: HloState) -> spaces.GraphInstance:
    nodes, edges = task.modules.graph(state.path)
    return spaces.GraphInstance(
        nodes.astype(np.float32), np.eye(2, dtype=np.float32)[edges[:, 2]], edges[:, :2].copy()
    )


def _graph_space() -> spaces.Graph:
    return graph_space(3, 2, 0.0, np.inf)


VIEWS = views_of(
    array_view(
        "features",
        "feature vector of irgym's policies: counts, changes, passes used and tried",
        (FEATURES,),
        lambda task, state: features(task.modules.root, state, task.horizon),
    ),
    ObservationView(
        "counts",
        f"operations of each opcode in all computations (the paper's state); int32, [{len(OPCODES)}]",
        lambda: spaces.Box(0, _LARGE, (len(OPCODES),), np.int32),
        _counts,
    ),
    ObservationView(
        "delta",
        f"change of the counts by the last step; int32, [{len(OPCODES)}]",
        lambda: spaces.Box(-_LARGE, _LARGE, (len(OPCODES),), np.int32),
        _delta,
    ),
    ObservationView(
        "history",
        f"passes that changed the module, in order, then -1; int64, [{HORIZON}]",
        lambda: spaces.Box(-1, len(PASSES) - 1, (HORIZON,), np.int64),
        _history,
    ),
    ObservationView(
        "cost-analysis",
        "FLOPs, transcendental operations and bytes accessed by XLA's cost analysis; float32, [3]",
        lambda: spaces.Box(0.0, np.inf, (3,), np.float32),
        _analysis,
    ),
    ObservationView(
        "graph",
        "the module as a graph: nodes are opcode, computation and elements, float32, [N, 3]; edges lead from "
        "operands to users, or from called computations to callers, one-hot, float32, [E, 2]",
        _graph_space,
        _graph,
    ),
)
"""The observations by name, the default first."""
