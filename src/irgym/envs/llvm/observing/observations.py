"""Observations of modules, for policies and for Gymnasium."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.observation import ObservationView, array_view, views_of
from irgym.envs.llvm.actions import HORIZON, PASSES
from irgym.envs.llvm.compiling.store import OPCODES
from irgym.envs.llvm.observing.features import FEATURES, features
from irgym.envs.llvm.state import LlvmState

_LARGE = np.iinfo(np.int32).max


def _counts(task: Any, state: LlvmState) -> NDArray[np.int32]:
    del task
    return state.node.counts.copy()


def _history(task: Any, state: LlvmState) -> NDArray[np.int64]:
    del task
    history = np.full(HORIZON, -1, dtype=np.int64)
    latest = state.path[-HORIZON:]
    history[: len(latest)] = latest
    return history


VIEWS = views_of(
    array_view(
        "features",
        "feature vector of irgym's policies: counts, changes, passes used and tried",
        (FEATURES,),
        lambda task, state: features(task.modules.root, state, task.horizon),
    ),
    ObservationView(
        "opcodes",
        f"instructions of each opcode, by LLVM's number; int32, [{OPCODES}]",
        lambda: spaces.Box(0, _LARGE, (OPCODES,), np.int32),
        _counts,
    ),
    ObservationView(
        "history",
        f"passes that changed the module, in order, then -1; int64, [{HORIZON}]",
        lambda: spaces.Box(-1, len(PASSES) - 1, (HORIZON,), np.int64),
        _history,
    ),
)
"""The observations by name, the default first."""
