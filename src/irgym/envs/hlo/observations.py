"""What Gymnasium environments may observe of a module."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.observation import ObservationView
from irgym.core.task import Task
from irgym.envs.hlo.features import FEATURES
from irgym.envs.hlo.opcodes import OPCODES
from irgym.envs.hlo.passes import PASSES
from irgym.envs.hlo.state import HloState
from irgym.envs.hlo.task import HORIZON, HloTask

Cost = Callable[[], float]

_LARGE = np.iinfo(np.int32).max


def _features(task: Task[Any], state: HloState, cost: Cost) -> NDArray[np.float32]:
    del cost
    return task.observe(state)


def _counts(task: Task[Any], state: HloState, cost: Cost) -> NDArray[np.int32]:
    del task, cost
    return state.node.counts.copy()


def _delta(task: Task[Any], state: HloState, cost: Cost) -> NDArray[np.int32]:
    del task, cost
    return state.node.counts - state.before.counts


def _history(task: Task[Any], state: HloState, cost: Cost) -> NDArray[np.int64]:
    del task, cost
    history = np.full(HORIZON, -1, dtype=np.int64)
    latest = state.path[-HORIZON:]
    history[: len(latest)] = latest
    return history


def _analysis(task: Task[Any], state: HloState, cost: Cost) -> NDArray[np.float32]:
    del cost
    assert isinstance(task, HloTask)
    return np.array(task.modules.analysis(state.path, state.node), dtype=np.float32)


def _graph(task: Task[Any], state: HloState, cost: Cost) -> spaces.GraphInstance:
    del cost
    assert isinstance(task, HloTask)
    nodes, edges = task.modules.graph(state.path)
    return spaces.GraphInstance(
        nodes=nodes.astype(np.float32), edges=edges[:, 2].astype(np.int64), edge_links=edges[:, :2].copy()
    )


def _graph_space() -> spaces.Graph:
    return spaces.Graph(node_space=spaces.Box(0.0, np.inf, (3,), np.float32), edge_space=spaces.Discrete(2))


_VIEWS = (
    ObservationView(
        "features",
        f"counts, changes, passes used and tried, as irgym's own policies see them; float32, [{FEATURES}]",
        lambda: spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32),
        _features,
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
        "operands to users (0) and from what is called to its callers (1)",
        _graph_space,
        _graph,
    ),
)

VIEWS = {view.name: view for view in _VIEWS}
"""The observations by name, the default first."""
