"""Registers the environments with Gymnasium; `import irgym` does it."""

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import gymnasium

from irgym.core.catalogue import ENVIRONMENTS

if TYPE_CHECKING:
    from irgym.gym.env import TaskEnv

OTHERS = {"irgym/JitCse-v0": "irgym.envs.cse.jitcse.env:JitCseEnv"}
"""Environments that are not a `TaskEnv`: entry points by Gymnasium id."""


def make_task_env(**arguments: Any) -> "TaskEnv":
    """Return an environment that cuts episodes off at `max_episode_steps` of `gymnasium.make` itself.

    The `TimeLimit` that Gymnasium puts around it knows nothing of rewards: episodes that it truncates would
    lose their final reward, and most of irgym's rewards have no other. Gymnasium tells entry points nothing
    of the limit, and refuses vector entry points beside a wrapper that could pass it on: it is read from the
    calling `make`.
    """
    from irgym.gym.env import TaskEnv  # late: `import irgym` registers

    env = TaskEnv(**arguments)
    calling = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]
    own, of_spec = (
        calling.get("max_episode_steps"),
        getattr(calling.get("env_spec"), "max_episode_steps", None),
    )
    steps = of_spec if own is None else own
    if steps is not None and steps > 0:
        env.setting.end_within(steps)
    return env


def register_all() -> None:
    """Register our environments and those of other packages as `irgym/<Name>-v0`; nothing is imported.

    Gymnasium's passive checker is off: after a `reset` that refuses a program, it ends the next `step` in a
    TypeError. The tests call `check_env`, which checks more.

    A name that cannot be part of such an id is left out: no other package can keep irgym from being imported.
    """
    register = cast(Callable[..., None], gymnasium.register)  # pyright: ignore[reportUnknownMemberType]
    for name in filter(_NAME.fullmatch, ENVIRONMENTS.names()):
        register(
            id=gym_id(name),
            entry_point=f"{__name__}:{make_task_env.__name__}",
            vector_entry_point="irgym.gym.vector:TaskVectorEnv",
            kwargs={"environment": name},
            disable_env_checker=True,
        )

    for identity, entry_point in OTHERS.items():
        register(id=identity, entry_point=entry_point, disable_env_checker=True)


def gym_id(name: str) -> str:
    """Return the id of an environment in Gymnasium: `irgym/LinalgSwaps-v0` for `linalg-swaps`."""
    return f"irgym/{''.join(word[:1].upper() + word[1:] for word in name.split('-'))}-v0"


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
