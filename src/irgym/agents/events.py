"""TensorBoard without TensorFlow."""

import sys
from types import ModuleType


def without_tensorflow() -> None:
    """Keep TensorBoard, imported after this, from importing TensorFlow where that is installed.

    It does so for file systems that irgym does not use, and it takes seconds and half a gigabyte. TensorBoard
    looks for this module first: its own builds without TensorFlow have it.
    """
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))
