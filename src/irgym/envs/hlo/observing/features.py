"""Feature vector of irgym's policies: counts of operations, recent changes, and passes used."""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.hlo.actions import PASSES
from irgym.envs.hlo.compiling.modules import Node
from irgym.envs.hlo.observing.opcodes import COUNTED
from irgym.envs.hlo.state import HloState

# Where the parts of the vector begin, after the logarithms.
_SHARES = len(COUNTED)
_CHANGES = 2 * len(COUNTED)
_USED = 3 * len(COUNTED)
_MODULE = _USED + 3 * len(PASSES)

FEATURES = _MODULE + 6
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
    node, before = state.node, state.before
    vector[:_CHANGES] = node.logs_and_counts
    if before is not node:
        np.subtract(
            node.logs_and_counts[_SHARES:], before.logs_and_counts[_SHARES:], out=vector[_CHANGES:_USED]
        )
    vector[_SHARES:_USED] *= 10.0 / root.total
    state.fill_features(vector[_USED:_MODULE], len(PASSES))
    vector[_MODULE] = node.total / root.total
    vector[_MODULE + 1] = 10.0 * (node.total / before.total - 1.0)
    vector[_MODULE + 2] = math.log1p(node.total) / 10.0
    vector[_MODULE + 3] = node.entry / node.total
    vector[_MODULE + 4] = 1.0 - state.steps / horizon
    vector[_MODULE + 5] = float(state.last >= 0 and state.last not in state.tried)
    return vector
