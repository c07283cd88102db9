"""Observations of modules, for policies and for Gymnasium."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.observation import ObservationView, array_view, views_of
from irgym.envs.llvm.actions import HORIZON, PASSES
from irgym.envs.llvm.compiling.modules import Node, run_passes
from irgym.envs.llvm.observing.features import FEATURES, features
from irgym.envs.llvm.observing.graphs import ProgramGraph
from irgym.envs.llvm.observing.ir2vec import Vocabulary
from irgym.envs.llvm.observing.module_views import Observed, module_views
from irgym.envs.llvm.state import LlvmState


def _history(task: Any, state: LlvmState) -> NDArray[np.int64]:
    del task
    history = np.full(HORIZON, -1, dtype=np.int64)
    latest = state.path[-HORIZON:]
    history[: len(latest)] = latest
    return history


PIPELINES = ("o3", "oz")
"""LLVM's pipelines whose numbers of instructions are shown beside the module's."""


def _instructions(task: Any, state: LlvmState) -> NDArray[np.int64]:
    modules = task.modules
    results = run_passes([(modules, modules.root, modules.pipeline(name)) for name in PIPELINES])
    # A pipeline that changes nothing, or fails, leaves the original.
    after = [result if isinstance(result, Node) else modules.root for result in results]
    return np.array([node.total for node in (state.node, modules.root, *after)], dtype=np.int64)


ASKED = Observed(
    counts=lambda task, state: state.node.counts,
    graph=lambda task, state: ProgramGraph.read(*task.modules.ask("graph", state.path)),
    text=lambda task, state: task.text(state),
    bitcode=lambda task, state: task.modules.ask("bitcode", state.path),
)
"""How tasks are asked for what views are made of."""

VIEWS = views_of(
    array_view(
        "features",
        "feature vector of irgym's policies: the module beside the original and -Oz, changes, passes used",
        (FEATURES,),
        lambda task, state: features(task.modules, state, task.horizon),
    ),
    ObservationView(
        "history",
        f"passes that changed the module, in order, then -1; int64, [{HORIZON}]",
        lambda: spaces.Box(-1, len(PASSES) - 1, (HORIZON,), np.int64),
        _history,
    ),
    ObservationView(
        "instructions",
        f"instructions: now, before all passes, after {', after '.join(PIPELINES)}; int64, "
        f"[{2 + len(PIPELINES)}]",
        lambda: spaces.Box(0, np.iinfo(np.int64).max, (2 + len(PIPELINES),), np.int64),
        _instructions,
    ),
    *module_views(ASKED, Vocabulary.named()),
)
"""The observations by name, the default first."""
