"""The target as an observation, for environments whose code is made for one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.observation import array_view
from irgym.core.target import NUMBERS


def _numbers(task: Any, state: Any) -> NDArray[np.float32]:
    del state
    numbers = (0.0,) * NUMBERS if task.target is None else task.target.numbers
    return np.array(numbers, dtype=np.float32)


TARGET_VIEW = array_view(
    "target", "lanes, registers, cores and sizes of caches that code is made for", (NUMBERS,), _numbers
)
"""The target in numbers, so that one policy can learn for several."""
