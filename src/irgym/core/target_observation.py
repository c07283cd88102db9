"""The target as an observation, for environments whose code is made for one."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from irgym.core.observation import ObservationView
from irgym.core.target import NUMBERS
from irgym.core.task import Task


def _numbers(task: Task[Any], state: Any, cost: Callable[[], float]) -> NDArray[np.float32]:
    del state, cost
    numbers = (0.0,) * NUMBERS if task.target is None else task.target.numbers
    return np.array(numbers, dtype=np.float32)


TARGET_VIEW = ObservationView(
    "target",
    f"lanes, registers, cores and sizes of caches that code is made for, [{NUMBERS}]",
    lambda: spaces.Box(-np.inf, np.inf, (NUMBERS,), np.float32),
    _numbers,
)
"""The target in numbers, so that one policy can learn for several."""
