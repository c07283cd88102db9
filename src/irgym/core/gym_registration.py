"""Registers the environments with Gymnasium; `import irgym` does it."""

from collections.abc import Callable
from typing import cast

import gymnasium

from irgym.core.environment import ENVIRONMENTS


def register_all() -> None:
    """Register our environments and those of other packages as `irgym/<Name>-v0`; nothing is imported."""
    register = cast(Callable[..., None], gymnasium.register)  # pyright: ignore[reportUnknownMemberType]
    for name in ENVIRONMENTS.names():
        register(id=gym_id(name), entry_point="irgym.core.env:TaskEnv", kwargs={"environment": name})


def gym_id(name: str) -> str:
    """Return the id that an environment has in Gymnasium: `irgym/Loops-v0` for `loops`."""
    return f"irgym/{name[:1].upper()}{name[1:]}-v0"
