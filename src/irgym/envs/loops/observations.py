"""LoopTune's observation spaces, and the feature vector of irgym's own policies.

Four of these (`ir_tree_networkx`, `ir_graph_networkx`, `stride_tensor`, `5_prev_actions_tensor`) are
broken or commented out upstream. Graphs are networkx graphs, in a space of their own.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.errors import BackendError
from irgym.core.observation import ObservationView
from irgym.core.target_observation import TARGET_VIEW
from irgym.core.task import Task
from irgym.envs.loops import actions
from irgym.envs.loops.codegen.plan import plan
from irgym.envs.loops.features import FEATURES
from irgym.envs.loops.state import HISTORY, LoopsState
from irgym.envs.loops.task import LoopsTask

if TYPE_CHECKING:
    from irgym.envs.loops.nest_graph import NestGraph

LOOP_WIDTH = 20
"""Numbers for each loop in `loops_tensor`: cursor, size, tail, nest, 16 bins of strides."""

STRIDE_BINS = 32
"""Bins of `stride_tensor`: ceil(log2(stride)) of every access, over all loops."""

TEXT_LENGTH = 4096
"""Greatest length of a text observation."""

CHARSET = "".join(map(chr, range(32, 127))) + "\n"


class GraphSpace(gymnasium.Space[Any]):
    """networkx directed graphs whose nodes carry `kind` and `features`, a float32 vector.

    Args:
        width: Length of `features`.
        seed: Seed of `sample`.
    """

    def __init__(self, width: int, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)
        self.width = width

    def sample(self, mask: Any = None, probability: Any = None) -> "NestGraph":
        """Return a random chain of loops."""
        del mask, probability
        graph = _graphs().NestGraph()
        count = int(self.np_random.integers(1, actions.MAX_LOOPS + 1))
        for place in range(count):
            values = self.np_random.standard_normal(self.width).astype(np.float32)
            graph.add_node(f"L{place}", kind="loop", features=values)
            if place:
                graph.add_edge(f"L{place - 1}", f"L{place}")
        return graph

    def contains(self, x: Any) -> bool:
        """Say whether `x` is such a graph."""
        return isinstance(x, _graphs().NestGraph) and all(
            "kind" in node and getattr(node.get("features"), "shape", None) == (self.width,)
            for _, node in x.nodes(data=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphSpace) and other.width == self.width

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def _graphs() -> Any:
    try:
        from irgym.envs.loops import nest_graph
    except ImportError:
        raise BackendError("networkx is not installed: run pip install 'irgym[loops]'") from None
    return nest_graph


def _bin(stride: int, bins: int) -> int:
    """Return ceil(log2(stride)), at most the last bin."""
    return min(math.ceil(math.log2(stride)), bins - 1)


def _strides(task: LoopsTask, state: LoopsState, place: int) -> list[int]:
    """Return how far A, B and C move in an iteration of a loop, where they move at all."""
    loop = state.nest.loops[place]
    return [table[loop.dim] * loop.step for table in task.contraction.strides if table[loop.dim]]


def loops_tensor(task: LoopsTask, state: LoopsState) -> NDArray[np.float32]:
    """Return one row a loop, shape [10, 20]; rows without a loop are 0 (LoopTune, section 3).

    Columns: whether the cursor is here; log2(1 + trip count); log2(1 + tail); whether the loop encloses
    the write-back of the output (0: it only computes); 16 bins of ceil(log2(stride)) of the accesses.
    """
    rows = np.zeros((actions.MAX_LOOPS, LOOP_WIDTH), np.float32)
    tiles = plan(task.contraction, state.nest, task.target)
    places = {loop: place for place, loop in enumerate(tiles.order)}
    for place, loop in enumerate(state.nest.loops[: actions.MAX_LOOPS]):
        rows[place, 0] = place == state.cursor
        rows[place, 1] = math.log2(1 + state.nest.trips(task.contraction, place))
        rows[place, 2] = math.log2(1 + state.nest.tail(task.contraction, place))
        rows[place, 3] = places[loop] < tiles.hoist
        for stride in _strides(task, state, place):
            rows[place, 4 + _bin(stride, 16)] += 1
    return rows


def stride_tensor(task: LoopsTask, state: LoopsState) -> NDArray[np.float32]:
    """Return the histogram of ceil(log2(stride)) over all loops and accesses, shape [32]."""
    histogram = np.zeros(STRIDE_BINS, np.float32)
    for place in range(len(state.nest.loops)):
        for stride in _strides(task, state, place):
            histogram[_bin(stride, STRIDE_BINS)] += 1
    return histogram


def previous_actions_tensor(task: LoopsTask, state: LoopsState) -> NDArray[np.float32]:
    """Return the last five actions one-hot, the latest in the last row, shape [5, flat actions]."""
    rows = np.zeros((HISTORY, len(task.space.flat)), np.float32)
    first = HISTORY - len(state.previous)
    for row, index in enumerate(state.previous):
        rows[first + row, index] = 1
    return rows


def _loop_node(task: LoopsTask, state: LoopsState, place: int) -> dict[str, Any]:
    loop = state.nest.loops[place]
    return {"kind": "loop", "dim": loop.dim, "features": loops_tensor(task, state)[place]}


def ir_tree(task: LoopsTask, state: LoopsState) -> "NestGraph":
    """Return the loops as a path from the outermost to the statement, features as in `loops_tensor`."""
    graph = _graphs().NestGraph()
    count = len(state.nest.loops)
    for place in range(min(count, actions.MAX_LOOPS)):
        graph.add_node(f"L{place}", **_loop_node(task, state, place))
        if place:
            graph.add_edge(f"L{place - 1}", f"L{place}")
    graph.add_node("statement", kind="statement", features=np.zeros(LOOP_WIDTH, np.float32))
    graph.add_edge(f"L{min(count, actions.MAX_LOOPS) - 1}", "statement")
    return graph


def ir_graph(task: LoopsTask, state: LoopsState) -> "NestGraph":
    """Return `ir_tree` with a node for each tensor and an edge from each loop that moves through it.

    Edges between loops and tensors carry `stride` in elements; the statement reads A and B and writes C.
    """
    graph = ir_tree(task, state)
    for name, table in zip("ABC", task.contraction.strides, strict=True):
        graph.add_node(name, kind="tensor", features=np.zeros(LOOP_WIDTH, np.float32))
        for place, loop in enumerate(state.nest.loops[: actions.MAX_LOOPS]):
            if table[loop.dim]:
                graph.add_edge(f"L{place}", name, stride=table[loop.dim] * loop.step)
    graph.add_edges_from([("A", "statement"), ("B", "statement"), ("statement", "C")])
    return graph


def _box(shape: tuple[int, ...]) -> Callable[[], Any]:
    return lambda: spaces.Box(-np.inf, np.inf, shape, np.float32)


def _text() -> Any:
    return spaces.Text(TEXT_LENGTH, min_length=0, charset=CHARSET)


def _graph() -> Any:
    return GraphSpace(LOOP_WIDTH)


def _pure(function: Callable[[Any, Any], Any]) -> Callable[[Task[Any], Any, Callable[[], float]], Any]:
    return lambda task, state, cost: function(task, state)


def _runtime(task: Task[Any], state: LoopsState, cost: Callable[[], float]) -> NDArray[np.float32]:
    return np.array([cost() * 1e-9], np.float32)


def _flops(task: Task[Any], state: LoopsState, cost: Callable[[], float]) -> NDArray[np.float32]:
    assert isinstance(task, LoopsTask)
    return np.array([task.contraction.flops / cost()], np.float32)


VIEWS = {
    view.name: view
    for view in (
        ObservationView(
            "features",
            f"feature vector of irgym's policies, [{FEATURES}]",
            _box((FEATURES,)),
            _pure(lambda task, state: task.observe(state)),
        ),
        ObservationView(
            "loops_tensor",
            f"LoopTune's loop rows, [{actions.MAX_LOOPS}, {LOOP_WIDTH}]",
            _box((actions.MAX_LOOPS, LOOP_WIDTH)),
            _pure(loops_tensor),
        ),
        ObservationView(
            "stride_tensor",
            f"histogram of strides, [{STRIDE_BINS}]",
            _box((STRIDE_BINS,)),
            _pure(stride_tensor),
        ),
        ObservationView(
            "5_prev_actions_tensor",
            f"last five actions, one-hot, [{HISTORY}, {len(actions.SPACE.flat)}]",
            _box((HISTORY, len(actions.SPACE.flat))),
            _pure(previous_actions_tensor),
        ),
        ObservationView("runtime", "measured time in seconds, [1]", _box((1,)), _runtime),
        ObservationView("flops", "measured GFLOP/s, [1]", _box((1,)), _flops),
        ObservationView(
            "ir", "canonical text of the nest", _text, _pure(lambda task, state: state.nest.text())
        ),
        ObservationView(
            "loop_tree", "indented text of the nest", _text, _pure(lambda task, state: task.describe(state))
        ),
        ObservationView("ir_tree_networkx", "path of loops, networkx", _graph, _pure(ir_tree)),
        ObservationView(
            "ir_graph_networkx", "loops, tensors and statement, networkx", _graph, _pure(ir_graph)
        ),
        TARGET_VIEW,
    )
}
"""The observations by name; the first is the default."""
