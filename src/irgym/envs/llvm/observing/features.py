"""Feature vector of irgym's policies: the module, recent changes, and passes used."""

import numpy as np
from numpy.typing import NDArray

from irgym.envs.llvm.actions import PASSES
from irgym.envs.llvm.compiling.modules import Node, ProgramModules
from irgym.envs.llvm.observing.module_features import COUNTED, MODULE_FEATURES, counted, module_features
from irgym.envs.llvm.state import LlvmState

GENERAL = 4
"""Number of features of the episode as a whole."""

FEATURES = MODULE_FEATURES + len(COUNTED) + 3 * len(PASSES) + GENERAL
"""Length of the feature vector."""


def features(modules: ProgramModules, state: LlvmState, horizon: int) -> NDArray[np.float32]:
    """Return the feature vector of a state, shape [FEATURES].

    - Those of the module beside the original and beside -Oz: see `module_features`.
    - For each name of `COUNTED`: the change of its logarithm by the last step.
    - For each pass: how often it changed the module (divided by 3, at most 1); whether it ran last; whether
      it has had no effect since the module last changed.
    - For the episode: the change of the instructions by the last step, relative and times 10; whether the
      last pass had an effect; the share of steps left; whether a pass is left that was not tried.
    """
    vector = np.zeros(FEATURES, dtype=np.float32)
    module = vector[:MODULE_FEATURES]
    changes = vector[MODULE_FEATURES : MODULE_FEATURES + len(COUNTED)]
    node, before = state.node, state.before
    module[:] = _of_module(modules, node)
    if before is not node:
        np.subtract(_logs(node), _logs(before), out=changes)
    state.fill_features(vector[MODULE_FEATURES + len(COUNTED) : -GENERAL], len(PASSES))
    vector[-GENERAL:] = (
        10.0 * (node.total / max(before.total, 1) - 1.0),
        float(state.last >= 0 and state.last not in state.tried),
        1.0 - state.steps / horizon,
        float(len(state.tried) < len(PASSES)),
    )
    return vector


def _of_module(modules: ProgramModules, node: Node) -> NDArray[np.float32]:
    if "module" not in node.made:
        first, reference = modules.root.counts, modules.reference.counts
        node.made["module"] = module_features(node.counts, first, reference)
    return node.made["module"]


def _logs(node: Node) -> NDArray[np.float32]:
    if "logs" not in node.made:
        node.made["logs"] = np.log1p(counted(node.counts))
    return node.made["logs"]
