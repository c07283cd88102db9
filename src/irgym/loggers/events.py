"""TensorBoard without TensorFlow."""

import sys
from types import ModuleType


def without_tensorflow() -> None:
    """Keep TensorBoard, imported after this, from importing TensorFlow where that is installed.

    TensorBoard needs it only for file systems that irgym does not use; the import takes seconds and half a
    gigabyte. TensorBoard looks for this module first: its builds without TensorFlow contain it.
    """
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))
