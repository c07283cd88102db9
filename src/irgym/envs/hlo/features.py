"""The observation of irgym's own policies: counts of operations, what changed, and what was done."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from irgym.envs.hlo.modules import Node
from irgym.envs.hlo.opcodes import OPCODES, SINGLE_DEVICE
from irgym.envs.hlo.passes import PASSES

if TYPE_CHECKING:
    from irgym.envs.hlo.task import HloState

COUNTED = np.array([OPCODES.index(opcode) for opcode in SINGLE_DEVICE], dtype=np.intp)
"""Places in `OPCODES` of what features count."""

GENERAL = 6
"""Features that belong to no opcode and no pass."""

FEATURES = 3 * len(COUNTED) + 3 * len(PASSES) + GENERAL
"""Length of the feature vector."""


def features(root: Node, state: "HloState", horizon: int) -> NDArray[np.float32]:
    """Return what a policy sees of a state, shape [FEATURES].

    For each opcode: the logarithm of its count, its share of all operations of the program as written, and by
    how much the last step changed that share (both times 10). For each pass: how often it changed the module
    (capped at 3, as a share of that), whether it was the last, whether it was seen to change nothing since.
    Then the remaining operations as a share of the first and of those before the last step, their logarithm,
    the entry's share of them, the steps left and whether the last pass changed anything.
    """
    counts = state.node.counts[COUNTED].astype(np.float32)
    before = state.before[COUNTED].astype(np.float32)
    used = np.bincount(np.array(state.path, dtype=np.intp), minlength=len(PASSES))
    last = np.zeros(len(PASSES), dtype=np.float32)
    if 0 <= state.last < len(PASSES):
        last[state.last] = 1.0
    tried = np.zeros(len(PASSES), dtype=np.float32)
    tried[list(state.tried)] = 1.0
    total = state.node.total
    general = (
        total / root.total,
        10.0 * (total / int(state.before.sum()) - 1.0),
        np.log1p(total) / 10.0,
        state.node.entry / total,
        1.0 - state.steps / horizon,
        float(state.last >= 0 and state.last not in state.tried),
    )
    return np.concatenate(
        [
            np.log1p(counts) / 5.0,
            counts * (10.0 / root.total),
            (counts - before) * (10.0 / root.total),
            np.minimum(used, 3) / 3.0,
            last,
            tried,
            general,
        ],
        dtype=np.float32,
        casting="unsafe",
    )
