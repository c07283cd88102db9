"""What Gymnasium environments may observe of a schedule."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.observation import ObservationView
from irgym.core.target_observation import TARGET_VIEW
from irgym.core.task import Task
from irgym.envs.linalg.observing.features import FEATURES, OPERATIONS
from irgym.envs.linalg.state import LinalgState


def _features(task: Task[Any], state: LinalgState, cost: Callable[[], float]) -> NDArray[np.float32]:
    del cost
    return task.observe(state)


_FEATURES = ObservationView(
    "features",
    f"the operation at hand, its user and its producer, as they are now; float32, [{OPERATIONS}, {FEATURES}]",
    lambda: spaces.Box(-np.inf, np.inf, (OPERATIONS, FEATURES), np.float32),
    _features,
)

VIEWS = {view.name: view for view in (_FEATURES, TARGET_VIEW)}
"""The observations, the default first."""
