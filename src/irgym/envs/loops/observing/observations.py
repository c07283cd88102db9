"""LoopTune's observation spaces, and the feature vector of irgym's policies.

Four of them are broken or commented out upstream: `ir_tree` and `ir_graph` (there networkx graphs),
`stride_tensor` and `5_prev_actions_tensor`.
"""

import math
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.actions import ActionSpace
from irgym.core.observation import ObservationView, array_view, box, graph_space, views_of
from irgym.core.target import Target
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.loops import actions
from irgym.envs.loops.compiling.plan import plan
from irgym.envs.loops.legality import MAX_LOOPS
from irgym.envs.loops.observing.features import FEATURES, features
from irgym.envs.loops.programs.contraction import Contraction
from irgym.envs.loops.state import HISTORY, LoopsState

LOOP_WIDTH = 20
"""Columns of `loops_tensor`: cursor, size, tail, nest, 16 bins of strides."""

STRIDE_BINS = 32
"""Bins of `stride_tensor`: ceil(log2(stride)) of every access, over all loops."""

NODE_WIDTH = LOOP_WIDTH + 3
"""Features of a node of a graph: the columns of a loop, then loop, statement or tensor, one-hot."""

TEXT_LENGTH = 4096
"""Greatest length of a text observation, in characters."""

CHARSET = "".join(map(chr, range(32, 127))) + "\n"


class Observed(Protocol):
    """The parts of a loops task that observations depend on."""

    @property
    def contraction(self) -> Contraction:
        """The program."""
        ...

    @property
    def target(self) -> Target:
        """Target of the generated code."""
        ...

    @property
    def space(self) -> ActionSpace:
        """The actions."""
        ...


def _bin(stride: int, bins: int) -> int:
    """Return ceil(log2(stride)) of a stride in either direction, at most the last bin."""
    return min(math.ceil(math.log2(abs(stride))), bins - 1)


def _strides(task: Observed, state: LoopsState, place: int) -> list[int]:
    """Return the strides of A, B and C in an iteration of a loop, without zeros."""
    loop = state.nest.loops[place]
    return [table[loop.dim] * loop.step for table in task.contraction.strides if table[loop.dim]]


def loops_tensor(task: Observed, state: LoopsState) -> NDArray[np.float32]:
    """Return a row for each loop, shape [12, 20]; rows without a loop are 0 (LoopTune, section 3).

    Columns: whether the cursor is here; log2(1 + trip count); log2(1 + tail); whether the loop encloses
    the write-back of the output (0: it only computes); 16 bins of ceil(log2(stride)) of the accesses.
    """
    rows = np.zeros((MAX_LOOPS, LOOP_WIDTH), np.float32)
    tiles = plan(task.contraction, state.nest, task.target)
    places = {(loop.dim, loop.step): place for place, loop in enumerate(tiles.order)}
    for place, loop in enumerate(state.nest.loops[:MAX_LOOPS]):
        rows[place, 0] = place == state.cursor
        rows[place, 1] = math.log2(1 + state.nest.trips(task.contraction, place))
        rows[place, 2] = math.log2(1 + state.nest.tail(task.contraction, place))
        rows[place, 3] = places[loop.dim, loop.step] < tiles.hoist
        for stride in _strides(task, state, place):
            rows[place, 4 + _bin(stride, 16)] += 1
    return rows


def stride_tensor(task: Observed, state: LoopsState) -> NDArray[np.float32]:
    """Return the histogram of ceil(log2(stride)) over all loops and accesses, shape [32]."""
    histogram = np.zeros(STRIDE_BINS, np.float32)
    for place in range(len(state.nest.loops)):
        for stride in _strides(task, state, place):
            histogram[_bin(stride, STRIDE_BINS)] += 1
    return histogram


def previous_actions_tensor(task: Observed, state: LoopsState) -> NDArray[np.float32]:
    """Return the last five actions one-hot, the latest in the last row, shape [5, flat actions]."""
    rows = np.zeros((HISTORY, len(task.space.flat)), np.float32)
    first = HISTORY - len(state.previous)
    for row, index in enumerate(state.previous):
        rows[first + row, index] = 1
    return rows


def _nodes(task: Observed, state: LoopsState, tensors: int) -> NDArray[np.float32]:
    """Return a node for each loop, the statement and each tensor."""
    loops = min(len(state.nest.loops), MAX_LOOPS)
    nodes = np.zeros((loops + 1 + tensors, NODE_WIDTH), np.float32)
    nodes[:loops, :LOOP_WIDTH] = loops_tensor(task, state)[:loops]
    kinds = [0] * loops + [1] + [2] * tensors
    nodes[np.arange(len(nodes)), LOOP_WIDTH + np.array(kinds)] = 1
    return nodes


def ir_tree(task: Observed, state: LoopsState) -> spaces.GraphInstance:
    """Return the loops as a path from the outermost to the statement.

    Features of a node: its row of `loops_tensor`, 0 unless it is a loop; then loop, statement or tensor,
    one-hot. The feature of an edge is a stride in elements, which is 0 here.
    """
    nodes = _nodes(task, state, tensors=0)
    links = np.stack([np.arange(len(nodes) - 1), np.arange(1, len(nodes))], axis=1)
    return spaces.GraphInstance(nodes, np.zeros((len(links), 1), np.float32), links)


def ir_graph(task: Observed, state: LoopsState) -> spaces.GraphInstance:
    """Return `ir_tree` with nodes for A, B and C after the statement.

    An edge leads from each loop to each tensor that it indexes, with the stride; from A and B to the
    statement; and from the statement to C.
    """
    nodes = _nodes(task, state, tensors=3)
    statement = len(nodes) - 4
    edges = [(place, place + 1, 0) for place in range(statement)]
    edges += [(statement + 1, statement, 0), (statement + 2, statement, 0), (statement, statement + 3, 0)]
    for place, loop in enumerate(state.nest.loops[:statement]):
        strides = [table[loop.dim] * loop.step for table in task.contraction.strides]
        edges += [(place, statement + 1 + tensor, stride) for tensor, stride in enumerate(strides) if stride]
    table = np.array(edges)
    return spaces.GraphInstance(nodes, table[:, 2:].astype(np.float32), table[:, :2])


def _text() -> Any:
    return spaces.Text(TEXT_LENGTH, min_length=0, charset=CHARSET)


def _graph() -> Any:
    return graph_space(NODE_WIDTH, 1, -np.inf, np.inf)


VIEWS = views_of(
    array_view(
        "features",
        "feature vector of irgym's policies",
        (FEATURES,),
        lambda task, state: features(task.contraction, state.nest, state.cursor, state.previous, task.target),
    ),
    array_view("loops_tensor", "LoopTune's loop rows", (MAX_LOOPS, LOOP_WIDTH), loops_tensor),
    array_view("stride_tensor", "histogram of strides", (STRIDE_BINS,), stride_tensor),
    array_view(
        "5_prev_actions_tensor",
        "last five actions, one-hot",
        (HISTORY, len(actions.SPACE.flat)),
        previous_actions_tensor,
    ),
    ObservationView(
        "runtime",
        "measured time in seconds, [1]",
        box((1,)),
        of_cost=lambda task, cost: np.array([cost * 1e-9], np.float32),
    ),
    ObservationView(
        "flops",
        "measured GFLOP/s, [1]",
        box((1,)),
        of_cost=lambda task, cost: np.array([task.contraction.flops / cost], np.float32),
    ),
    ObservationView("ir", "canonical text of the nest", _text, lambda task, state: state.nest.text()),
    ObservationView(
        "loop_tree", "indented text of the nest", _text, lambda task, state: task.describe(state)
    ),
    ObservationView("ir_tree", "the loops as a path, a graph", _graph, ir_tree),
    ObservationView("ir_graph", "loops, statement and tensors, a graph", _graph, ir_graph),
    TARGET_VIEW,
)
"""The observations by name, the default first."""
