"""Rewards: functions of an episode's costs and potentials, never of how they were obtained."""

import math
from dataclasses import dataclass, field
from typing import Protocol

from irgym.base.errors import IrgymError


@dataclass(frozen=True)
class EpisodeCosts:
    """The costs that a reward may use, all in the task's unit; infinite where an evaluation failed.

    Attributes:
        first: Cost of the initial state.
        previous: Cost before the action: the last one that was asked for until then.
        current: Cost after the action; the same where none is asked for there.
        ideal: Lower bound on the cost, or None where none is known.
        potentials: The task's potentials before and after the action; 0 unless the reward asks for them.
        asked: Whether the cost after the action is asked for.
    """

    first: float
    previous: float
    current: float
    ideal: float | None = None
    potentials: tuple[float, float] = (0.0, 0.0)
    asked: bool = True


class Reward(Protocol):
    """A reward function."""

    @property
    def shaped(self) -> bool:
        """Whether the potential of every state is needed (`irgym.core.capabilities.potential`)."""
        ...

    @property
    def every(self) -> int:
        """After how many steps the cost is asked for again: 1 after each; 0 after the last alone.

        The costs of the first and the last state are always asked for.
        """
        ...

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the reward of one step; `final` says that the episode ends with it."""
        ...


def asks(every: int, step: int, final: bool) -> bool:
    """Say whether a reward that asks for costs after so many steps does so after one.

    Args:
        every: `Reward.every`.
        step: How many steps have been taken; 0 in the first state.
        final: Whether the episode has ended.
    """
    return final or not step or (every > 0 and step % every == 0)


def _before(costs: EpisodeCosts) -> float:
    """Return the cost before; that of the first state where the state before failed."""
    return costs.previous if math.isfinite(costs.previous) else costs.first


def _ideal(costs: EpisodeCosts) -> float:
    if costs.ideal is None:
        raise IrgymError("this reward needs an ideal cost, which takes a peak: give peak_gflops")
    return costs.ideal


@dataclass(frozen=True)
class ThroughputGain:
    """Gain in throughput as a share of the machine's peak (LoopTune, section 4).

    With c the cost and c* the ideal one: c*/c after minus c*/c before. A failed state has throughput 0.

    Attributes:
        every: After how many steps it is paid; 0: at the end.
    """

    every: int = 1
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the gain since the cost was asked for last."""
        if not costs.asked:
            return 0.0
        ideal = _ideal(costs)
        return ideal / costs.current - ideal / costs.previous


@dataclass(frozen=True)
class LogSpeedup:
    """Logarithm of the speedup over the initial state, at the end of the episode (MLIR RL).

    Attributes:
        base: Base of the logarithm.
        failure: Reward of an episode whose final state failed.
        every: 0: only the end is rewarded.
    """

    base: float = 10.0
    failure: float = -5.0
    every: int = 0
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
    """Reduction of the cost as a share of the first cost.

    Attributes:
        failure: Reward where the state has failed.
        every: After how many steps it is paid; 0: at the end.
    """

    failure: float = -1.0
    every: int = 1
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return (before - after) / first, where before is when the cost was asked for last."""
        if not costs.asked:
            return 0.0
        if math.isinf(costs.current):
            return self.failure
        return (_before(costs) - costs.current) / costs.first


@dataclass(frozen=True)
class PeriodicImprovement:
    """Improvement in percent of the first cost every few steps, a small constant between (X-RLflow).

    100 * (before - after) / first, where before is when the cost was asked for last. From He et al.,
    "X-RLflow: Graph Reinforcement Learning for Neural Network Subgraphs Transformation", MLSys 2023, whose
    numbers are the defaults.

    Attributes:
        every: After how many steps the cost is asked for, at least 1; it always is at the end.
        between: Reward of the other steps.
        failure: Reward where the state has failed.
    """

    every: int = 5
    between: float = 0.1
    failure: float = -100.0
    shaped: bool = False

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the improvement in percent where the cost is asked for, `between` elsewhere."""
        if not costs.asked:
            return self.between
        if math.isinf(costs.current):
            return self.failure
        return 100.0 * (_before(costs) - costs.current) / costs.first


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
    every: int = 1
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
    def every(self) -> int:
        """After how many steps the shaped reward asks for the cost."""
        return self.reward.every

    def __call__(self, costs: EpisodeCosts, final: bool) -> float:
        """Return the reward plus the shaping; an episode ends at potential 0 (Grzes 2017)."""
        before, after = costs.potentials
        return self.reward(costs, final) + self.weight * (self.gamma * (0.0 if final else after) - before)
