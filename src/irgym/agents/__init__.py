"""Learners: one file an algorithm, one line here. Needs the extra `learn` (torch).

A name leads to the frozen dataclass that configures the algorithm; its `build` makes the learner.
Other packages add algorithms through the entry-point group `irgym.agents`.
"""

from typing import TYPE_CHECKING

import irgym.networks  # noqa: F401  # pyright: ignore[reportUnusedImport]  (says what to install)
from irgym.base.registry import Registry

if TYPE_CHECKING:
    from irgym.agents.learner import AgentConfig

AGENTS: "Registry[type[AgentConfig]]" = Registry(
    kind="agent",
    group="irgym.agents",
    builtin={
        "ppo": "irgym.agents.algorithms.ppo:PPOConfig",
        "dqn": "irgym.agents.algorithms.dqn:DQNConfig",
        "apex": "irgym.agents.algorithms.apex:ApexConfig",
        "a2c": "irgym.agents.algorithms.a2c:A2CConfig",
    },
    fault="irgym.agents.learner:config_fault",
)
