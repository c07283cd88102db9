"""Rewards: functions of an episode's costs and potentials, never of how they were obtained."""

import math
from dataclasses import dataclass, field
from typing import Protocol

from irgym.core.errors import IrgymError


@dataclass(frozen=True)
class EpisodeCosts:
    """The costs that a reward may use, all in the task's unit; infinite where an evaluation failed.

    Attributes:
        first: Cost of the initial state.
        previous: Cost before the action.
        current: Cost after the action.
        ideal: Lower bound on the cost, or None where none is known.
        potentials: The task's potentials before and after the action; 0 unless the reward asks for them.
    """

    first: float
    previous: float
    current: float
    ideal: float | None = None
    potentials: tuple[float, float] = (0.0, 0.0)


class Reward(Protocol):
    """A reward function."""

    @property
    def shaped(self) -> bool:
        """Whether the potential of every state is needed (`irgym.core.capabilities.potential`)."""
        ...

    @property
    def every_step(self) -> bool:
        """Whether the cost of every state is needed; otherwise only the first and the last."""
        ...

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the reward of one step; `final` says that the episode ends with it."""
        ...


def _ideal(costs: EpisodeCosts) -> float:
    if costs.ideal is None:
        raise IrgymError("this reward needs an ideal cost, which takes a peak: give peak_gflops")
    return costs.ideal


@dataclass(frozen=True)
class ThroughputGain:
    """Gain in throughput as a share of the machine's peak (LoopTune, section 4).

    With c the cost and c* the ideal one: c*/c after minus c*/c before. A failed state has throughput 0.
    """

    every_step: bool = True
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the gain of this step; without `every_step`, of the whole episode at its end."""
        if not self.every_step and not final:
            return 0.0
        before = costs.previous if self.every_step else costs.first
        ideal = _ideal(costs)
        return ideal / costs.current - ideal / before


@dataclass(frozen=True)
class LogSpeedup:
    """Logarithm of the speedup over the initial state, at the end of the episode (MLIR RL).

    Attributes:
        base: Base of the logarithm.
        failure: Reward of an episode whose final state failed.
        every_step: False: only the end is rewarded.
    """

    base: float = 10.0
    failure: float = -5.0
    every_step: bool = False
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return 0 before the end, then the logarithm of first over current."""
        if not final:
            return 0.0
        if math.isinf(costs.current):
            return self.failure
        return math.log(costs.first / costs.current, self.base)


@dataclass(frozen=True)
class RelativeImprovement:
    """Reduction of the cost in this step as a share of the first cost.

    Attributes:
        failure: Reward of a step into a failed state.
        every_step: Whether each step is rewarded, or the episode as a whole at its end.
    """

    failure: float = -1.0
    every_step: bool = True
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return (before - after) / first."""
        if not self.every_step and not final:
            return 0.0
        if math.isinf(costs.current):
            return self.failure
        before = costs.previous if self.every_step and math.isfinite(costs.previous) else costs.first
        return (before - costs.current) / costs.first


@dataclass(frozen=True)
class NegativeCost:
    """Minus the cost as a share of the first one, at every step (arXiv 2308.14364: scaled op count).

    Meant for episodes of a fixed length: where an action ends them, ending at once has the greatest return.

    Attributes:
        scale: What the reward is multiplied by.
        failure: Reward of a step into a failed state, before scaling.
    """

    scale: float = 1.0
    failure: float = -1.0
    every_step: bool = True
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return -scale * current / first."""
        del final
        share = self.failure if math.isinf(costs.current) else -costs.current / costs.first
        return self.scale * share


@dataclass(frozen=True)
class Shaped:
    """A reward with potential-based shaping: F = gamma * after - before is added (Ng et al. 1999).

    With the learner's own discount, and a potential of 0 at the end of an episode (Grzes, "Reward Shaping in
    Episodic Reinforcement Learning", AAMAS 2017), this leaves the best policies the best. In arXiv
    2308.14364 potentials come from XLA's cost analysis; here from the task's `Analysis`.

    Attributes:
        reward: What is shaped.
        gamma: The learner's discount.
        weight: What the potentials are multiplied by.
    """

    reward: Reward = field(default_factory=RelativeImprovement)
    gamma: float = 1.0
    weight: float = 1.0
    shaped: bool = True

    @property
    def every_step(self) -> bool:
        """Whether the shaped reward needs the cost of every state."""
        return self.reward.every_step

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the reward plus the shaping; an episode ends at potential 0 (Grzes 2017)."""
        before, after = costs.potentials
        return self.reward(costs, final) + self.weight * (self.gamma * (0.0 if final else after) - before)
