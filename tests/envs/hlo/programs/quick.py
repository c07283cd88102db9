"""Functions compiled quickly rather than well."""

from collections.abc import Callable
from typing import Any

import jax


def quick_jit(function: Callable[..., Any]) -> Any:
    """Return a jitted function without LLVM's optimisations, which take most of the time of a single call."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})
