"""graph programs from torch: `irgym.graph.from_torch(module, *inputs)` returns a program's URI."""

from irgym.envs.graph.programs.from_torch import from_torch

__all__ = ["from_torch"]
