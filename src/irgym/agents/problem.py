"""What an agent is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from irgym.core.cost import Evaluator
from irgym.core.reward import Reward, Shaped
from irgym.core.task import Task


@dataclass(frozen=True)
class Problem:
    """Programs to learn from, who measures them, and what is rewarded.

    Attributes:
        tasks: At least one; all with the same actions and kind of observation. May make them lazily.
        evaluator: Answers for costs.
        reward: From costs to rewards.
        peak_gflops: The machine's peak, GFLOP/s, for rewards that need an ideal cost.
    """

    tasks: Sequence[Task[Any]]
    evaluator: Evaluator
    reward: Reward
    peak_gflops: float | None = None

    def analysed(self) -> "Problem":
        """Return this problem on tasks that have the analysis of every state at hand."""
        return replace(self, tasks=tuple(task.analysed() for task in self.tasks))

    def unshaped(self) -> "Problem":
        """Return this problem with the reward that shaping was added to: what a policy is judged by."""
        return replace(self, reward=self.reward.reward) if isinstance(self.reward, Shaped) else self
