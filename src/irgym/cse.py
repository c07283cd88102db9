"""cse programs from Python: `irgym.cse.from_numba(function, signature)` returns a program's URI."""

from irgym.envs.cse.programs.from_numba import from_numba

__all__ = ["from_numba"]
