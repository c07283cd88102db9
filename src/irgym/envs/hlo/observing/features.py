"""The observation of irgym's own policies: counts of operations, what changed, and what was done."""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.hlo.actions import PASSES
from irgym.envs.hlo.compiling.modules import Node
from irgym.envs.hlo.observing.opcodes import COUNTED
from irgym.envs.hlo.state import HloState

GENERAL = 6
"""Features that belong to no opcode and no pass."""

FEATURES = 3 * len(COUNTED) + 3 * len(PASSES) + GENERAL
"""Length of the feature vector."""


def features(root: Node, state: HloState, horizon: int) -> NDArray[np.float32]:
    """Return what a policy sees of a state, shape [FEATURES].

    For each opcode: the logarithm of its count, its share of all operations of the program as written, and by
    how much the last step changed that share (both times 10). For each pass: how often it changed the module
    (capped at 3, as a share of that), whether it was the last, whether it was seen to change nothing since.
    Then the remaining operations as a share of the first and of those before the last step, their logarithm,
    the entry's share of them, the steps left and whether the last pass changed anything.
    """
    vector = np.zeros(FEATURES, dtype=np.float32)
    logs, shares, changes = vector[: 3 * len(COUNTED)].reshape(3, -1)
    used, last, tried = vector[3 * len(COUNTED) : -GENERAL].reshape(3, -1)
    node, before = state.node, state.before
    np.log1p(node.counted, out=logs)
    logs /= 5.0
    np.multiply(node.counted, 10.0 / root.total, out=shares)
    if before is not node:
        np.subtract(node.counted, before.counted, out=changes)
        changes *= 10.0 / root.total
    for kind in state.path:
        used[kind] = min(used[kind] + 1.0 / 3.0, 1.0)
    if 0 <= state.last < len(PASSES):
        last[state.last] = 1.0
    tried[list(state.tried)] = 1.0
    vector[-GENERAL:] = (
        node.total / root.total,
        10.0 * (node.total / before.total - 1.0),
        math.log1p(node.total) / 10.0,
        node.entry / node.total,
        1.0 - state.steps / horizon,
        float(state.last >= 0 and state.last not in state.tried),
    )
    return vector
