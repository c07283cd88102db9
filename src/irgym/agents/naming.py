"""Agents by name: irgym's own, those of other packages, and those of Stable-Baselines3."""

from typing import Any

from irgym.agents import AGENTS
from irgym.base.errors import IrgymError
from irgym.policies.sb3_files import PREFIX

BY_NAME = {"trpo": f"{PREFIX}TRPO"}
"""Short names of algorithms that irgym has from Stable-Baselines3 or sb3-contrib."""


def agent_named(name: str) -> type[Any]:
    """Return the class of an agent's hyper-parameters.

    Args:
        name: A name in `AGENTS`; or `trpo` or `sb3:NAME`, an algorithm of Stable-Baselines3 or sb3-contrib.

    Raises:
        IrgymError: There is no such agent.
        BackendError: Its library is not installed.
    """
    whole = BY_NAME.get(name, name)
    if whole.startswith(PREFIX):
        from irgym.agents.algorithms.sb3_learner import config_named  # late: only these need the library

        return config_named(whole.removeprefix(PREFIX))
    if name not in AGENTS:
        known = ", ".join([*AGENTS.names(), *BY_NAME])
        raise IrgymError(
            f"there is no agent {name!r}: choose among {known}, or sb3:NAME of Stable-Baselines3"
        )
    return AGENTS.load(name)
