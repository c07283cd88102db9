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
    """Return the id of an environment in Gymnasium: `irgym/LinalgSwaps-v0` for `linalg-swaps`."""
    return f"irgym/{''.join(word[:1].upper() + word[1:] for word in name.split('-'))}-v0"
