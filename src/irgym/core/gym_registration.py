"""Registers the environments with Gymnasium; `import irgym` does it."""

from collections.abc import Callable
from typing import cast

import gymnasium


def register_all() -> None:
    """Register irgym's environments as `irgym/<Id>`."""
    register = cast(Callable[..., None], gymnasium.register)  # pyright: ignore[reportUnknownMemberType]
    register(id="irgym/Loops-v0", entry_point="irgym.core.env:TaskEnv", kwargs={"environment": "loops"})
