"""linalg programs from torch: `irgym.linalg.from_torch(module, *inputs)` returns a program's URI."""

from irgym.envs.linalg.importing.from_torch import from_torch

__all__ = ["from_torch"]
