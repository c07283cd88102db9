"""Feature vector of irgym's policies: counts of instructions, recent changes, and passes used."""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.llvm.actions import PASSES
from irgym.envs.llvm.compiling.modules import Node
from irgym.envs.llvm.compiling.store import OPCODES
from irgym.envs.llvm.state import LlvmState

GENERAL = 5
"""Number of features of the module and the episode as a whole."""

FEATURES = 3 * OPCODES + 3 * len(PASSES) + GENERAL
"""Length of the feature vector."""


def features(root: Node, state: LlvmState, horizon: int) -> NDArray[np.float32]:
    """Return the feature vector of a state, shape [FEATURES].

    - For each opcode: the logarithm of its count; its count relative to all instructions of the original; the
      change of that ratio by the last step (both ratios times 10).
    - For each pass: how often it changed the module (divided by 3, at most 1); whether it ran last; whether
      it has had no effect since the module last changed.
    - For the module: its instructions relative to the original and to the module before the last step; their
      logarithm; the share of steps left; whether the last pass had an effect.
    """
    vector = np.zeros(FEATURES, dtype=np.float32)
    logs, shares, changes = vector[: 3 * OPCODES].reshape(3, -1)
    used, last, tried = vector[3 * OPCODES : -GENERAL].reshape(3, -1)
    node, before = state.node, state.before
    np.log1p(node.counts, out=logs)
    logs /= 5.0
    np.multiply(node.counts, 10.0 / max(root.total, 1), out=shares, casting="unsafe")
    if before is not node:
        np.subtract(node.counts, before.counts, out=changes, casting="unsafe")
        changes *= 10.0 / max(root.total, 1)
    for kind in state.path:
        used[kind] = min(used[kind] + 1.0 / 3.0, 1.0)
    if 0 <= state.last < len(PASSES):
        last[state.last] = 1.0
    tried[list(state.tried)] = 1.0
    vector[-GENERAL:] = (
        node.total / max(root.total, 1),
        10.0 * (node.total / max(before.total, 1) - 1.0),
        math.log1p(node.total) / 10.0,
        1.0 - state.steps / horizon,
        float(state.last >= 0 and state.last not in state.tried),
    )
    return vector
