"""A small configuration of each built-in agent, which learns from its first episodes."""

from typing import Any

from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.apex import ApexConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig

_ANY: dict[str, Any] = {"iterations": 6, "episodes": 8, "hidden": (8,), "checkpoint_every": 0.0}
_Q: dict[str, Any] = {**_ANY, "updates": 2, "minibatch": 8, "warmup": 8, "replay": 128, "target_every": 2}
SMALL: dict[str, Any] = {
    "ppo": PPOConfig(**_ANY, epochs=1),
    "a2c": A2CConfig(**_ANY),
    "dqn": DQNConfig(**_Q),
    "apex": ApexConfig(**_Q, actors=2),
}
FARMED = {"apex"}
"""Agents that need a farm."""
