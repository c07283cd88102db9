"""An example, and how many actions its environments refused: a program for a process by itself.

Usage: python watched_example.py FILE ARGUMENT...
"""

import runpy
import sys
from typing import Any

from irgym.gym.env import TaskEnv

applied: list[bool] = []
step = TaskEnv.step


def watched(self: TaskEnv, action: Any) -> Any:
    result = step(self, action)
    applied.append(result[-1]["applied"])
    return result


if __name__ == "__main__":
    TaskEnv.step = watched  # pyright: ignore[reportAttributeAccessIssue]
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
    print(f"refused {applied.count(False)}, some applied: {any(applied)}")
