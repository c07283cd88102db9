"""Feature vector of irgym's policies: counts of operations, recent changes, and passes used."""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.hlo.actions import PASSES
from irgym.envs.hlo.compiling.modules import Node
from irgym.envs.hlo.observing.opcodes import COUNTED
from irgym.envs.hlo.state import HloState

GENERAL = 6
"""Number of features of the module and the episode as a whole."""

FEATURES = 3 * len(COUNTED) + 3 * len(PASSES) + GENERAL
"""Length of the feature vector."""


def features(root: Node, state: HloState, horizon: int) -> NDArray[np.float32]:
    """Return the feature vector of a state, shape [FEATURES].

    - For each opcode: the logarithm of its count; its count relative to all operations of the original; the
      change of that ratio by the last step (both ratios times 10).
    - For each pass: how often it changed the module (divided by 3, at most 1); whether it ran last; whether
      it has had no effect since the module last changed.
    - For the module: its operations relative to the original and to the module before the last step; their
      logarithm; the entry computation's share; the share of steps left; whether the last pass had an effect.
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
