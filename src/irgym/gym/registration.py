"""Registers the environments with Gymnasium; `import irgym` does it."""

import re
from collections.abc import Callable
from typing import Any, cast

import gymnasium
from gymnasium.envs.registration import WrapperSpec
from gymnasium.utils import RecordConstructorArgs

from irgym.core.catalogue import ENVIRONMENTS

OTHERS = {"irgym/JitCse-v0": "irgym.envs.cse.jitcse.env:JitCseEnv"}
"""Environments that are not a `TaskEnv`: entry points by Gymnasium id."""


class OwnTimeLimit(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Passes `max_episode_steps` of `gymnasium.make` on to the environment, which truncates episodes itself.

    `TimeLimit` knows nothing of rewards: episodes that it truncates would lose their final reward, and most
    of irgym's rewards have no other.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        steps = env.spec.max_episode_steps if env.spec else None
        if steps is not None:
            cast(Any, env.unwrapped).end_within(steps)


def register_all() -> None:
    """Register our environments and those of other packages as `irgym/<Name>-v0`; nothing is imported.

    Gymnasium's passive checker is off: after a `reset` that refuses a program, it ends the next `step` in a
    TypeError. The tests call `check_env`, which checks more.

    A name that cannot be part of such an id is left out: no other package can keep irgym from being imported.
    """
    register = cast(Callable[..., None], gymnasium.register)  # pyright: ignore[reportUnknownMemberType]
    limit = WrapperSpec(OwnTimeLimit.__name__, f"{__name__}:{OwnTimeLimit.__name__}", {})
    for name in filter(_NAME.fullmatch, ENVIRONMENTS.names()):
        register(
            id=gym_id(name),
            entry_point="irgym.gym.env:TaskEnv",
            kwargs={"environment": name},
            additional_wrappers=(limit,),
            disable_env_checker=True,
        )

    for identity, entry_point in OTHERS.items():
        register(id=identity, entry_point=entry_point, disable_env_checker=True)


def gym_id(name: str) -> str:
    """Return the id of an environment in Gymnasium: `irgym/LinalgSwaps-v0` for `linalg-swaps`."""
    return f"irgym/{''.join(word[:1].upper() + word[1:] for word in name.split('-'))}-v0"


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
