"""Rewards: functions of a transition, with the costs and potentials of the episode so far.

`irgym.core.reward_names` has them by name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, runtime_checkable

from irgym.base.errors import IrgymError, UnknownPipelineError
from irgym.base.values import Range
from irgym.core.actions import Action
from irgym.core.capabilities import Analysis, ask, ideal_cost, pipeline
from irgym.core.limits import unlimited
from irgym.core.schedule import replay
from irgym.core.task import Task

Steps = Annotated[int, Range(low=0)]
"""How often a cost is asked for; see `Reward.every`."""


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
        reference: Cost after the pipeline that the reward names, see `Scaled`; None where there is none.
    """

    first: float
    previous: float
    current: float
    ideal: float | None = None
    potentials: tuple[float, float] = (0.0, 0.0)
    asked: bool = True
    reference: float | None = None


@dataclass(frozen=True)
class Transition:
    """One step of an episode.

    Attributes:
        task: The program, without limits of episodes.
        states: The states of the episode, or the two of this step. Where another process played the episode,
            they are made again when a reward asks for one.
        place: Place of the state before the action among them.
        action: The action.
        costs: The costs and potentials that the reward asks for.
        final: Whether the episode ends with this step.
    """

    task: Task[Any]
    states: Sequence[Any]
    place: int
    action: Action
    costs: EpisodeCosts
    final: bool

    @property
    def state(self) -> Any:
        """The state before the action."""
        return self.states[self.place]

    @property
    def next_state(self) -> Any:
        """The state after the action; in Gymnasium the same state where the action does not apply."""
        return self.states[self.place + 1]


class Reward(Protocol):
    """A reward function.

    It is called for every step of an episode whose first state has a cost; all steps of the others have
    reward 0.
    """

    @property
    def shaped(self) -> bool:
        """Whether the potential of every state is needed (`potential`)."""
        ...

    @property
    def every(self) -> int:
        """After how many steps the cost is asked for again: 1 after each; 0 after the last alone.

        The costs of the first and the last state are always asked for.
        """
        ...

    def __call__(self, transition: Transition) -> float:
        """Return the reward of one step."""
        ...


@runtime_checkable
class Scaled(Protocol):
    """A reward that may need `EpisodeCosts.reference`."""

    @property
    def pipeline(self) -> str:
        """Name of a pipeline of the compiler; empty: none."""
        ...


def reference_state(reward: Reward, task: Task[Any]) -> Any | None:
    """Return the program after the pipeline that a reward names; None without one, or if it is not known.

    Raises:
        IrgymError: There is no such pipeline, or it fails.
    """
    name = reward.pipeline if isinstance(reward, Scaled) else ""
    if not name:
        return None
    free = unlimited(task)
    try:
        return replay(free, pipeline(free, name))
    except UnknownPipelineError:
        return None


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


def check_reward(reward: Reward, task: Task[Any]) -> None:
    """Make sure that a reward can be computed on a task, before anything is measured.

    Raises:
        IrgymError: The reward needs a bound on costs or a pipeline, and the task has none.
    """
    reference_state(reward, task)
    wrapped = reward.reward if isinstance(reward, Shaped) else reward
    if isinstance(wrapped, ThroughputGain) and ideal_cost(task, 1.0) is None:
        raise IrgymError(
            f"the reward throughput needs a peak that bounds the cost, and {task.uri} has none under "
            f"{task.objective.name}: choose another, such as dense or log-speedup"
        )


@dataclass(frozen=True)
class ThroughputGain:
    """Gain in throughput as a share of the machine's peak (LoopTune, section 4).

    With c the cost and c* the ideal one: c*/c after minus c*/c before. A failed state has throughput 0.

    Attributes:
        every: After how many steps it is paid; 0: at the end.
    """

    every: Steps = 1
    shaped: bool = field(default=False, init=False, repr=False)

    def __call__(self, transition: Transition) -> float:
        """Return the gain since the cost was asked for last.

        Raises:
            IrgymError: There is no ideal cost.
        """
        costs = transition.costs
        if not costs.asked:
            return 0.0
        if costs.ideal is None:
            raise IrgymError("this reward needs an ideal cost, which takes a peak: give peak_gflops")
        return costs.ideal / costs.current - costs.ideal / costs.previous


@dataclass(frozen=True)
class LogSpeedup:
    """Logarithm of the speedup: over the initial state, at the end of the episode (MLIR RL), or more often.

    Attributes:
        base: Base of the logarithm.
        failure: Reward where the state has failed.
        every: After how many steps it is paid; 0: at the end.
    """

    base: Annotated[float, Range(above=1)] = 10.0
    failure: float = -5.0
    every: Steps = 0
    shaped: bool = field(default=False, init=False, repr=False)

    def __call__(self, transition: Transition) -> float:
        """Return log(before / after), where before is when the cost was asked for last."""
        costs = transition.costs
        if not costs.asked:
            return 0.0
        if math.isinf(costs.current):
            return self.failure
        return math.log(_before(costs) / costs.current, self.base)


@dataclass(frozen=True)
class RelativeImprovement:
    """Reduction of the cost as a share of the first cost.

    Attributes:
        failure: Reward where the state has failed.
        every: After how many steps it is paid; 0: at the end.
    """

    failure: float = -1.0
    every: Steps = 1
    shaped: bool = field(default=False, init=False, repr=False)

    def __call__(self, transition: Transition) -> float:
        """Return (before - after) / first, where before is when the cost was asked for last."""
        costs = transition.costs
        if not costs.asked:
            return 0.0
        if math.isinf(costs.current):
            return self.failure
        return (_before(costs) - costs.current) / costs.first


@dataclass(frozen=True)
class Saving:
    """Reduction of the cost, as it is or as a share of what a pipeline of the compiler saves.

    With a pipeline, (before - after) / (first - after the pipeline): an episode that comes to its cost has
    the return 1. Where it saves nothing, the share is of the first cost. CompilerGym's rewards (Cummins et
    al., CGO 2022) are these.

    Attributes:
        pipeline: Name of the pipeline; empty for the reduction as it is.
        failure: Reward where the state has failed.
        every: After how many steps it is paid; 0: at the end.
    """

    pipeline: str = ""
    failure: float = -1.0
    every: Steps = 1
    shaped: bool = field(default=False, init=False, repr=False)

    def __call__(self, transition: Transition) -> float:
        """Return before - after, or its share, where before is when the cost was asked for last."""
        costs = transition.costs
        if not costs.asked:
            return 0.0
        if math.isinf(costs.current):
            return self.failure
        saved = _before(costs) - costs.current
        if not self.pipeline:
            return saved
        by_pipeline = 0.0 if costs.reference is None else costs.first - costs.reference
        return saved / (by_pipeline if 0.0 < by_pipeline < math.inf else costs.first)


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

    every: Annotated[int, Range(low=1)] = 5
    between: float = 0.1
    failure: float = -100.0
    shaped: bool = field(default=False, init=False, repr=False)

    def __call__(self, transition: Transition) -> float:
        """Return the improvement in percent where the cost is asked for, `between` elsewhere."""
        costs = transition.costs
        if not costs.asked:
            return self.between
        if math.isinf(costs.current):
            return self.failure
        return 100.0 * (_before(costs) - costs.current) / costs.first


@dataclass(frozen=True)
class NegativeCost:
    """Minus the cost as a share of the first one, at every step (arXiv 2308.14364: scaled op count).

    Where costs are asked for less often, the last one known counts.

    Meant for episodes of a fixed length: where an action ends them, ending at once has the greatest return.

    Attributes:
        scale: What the reward is multiplied by.
        failure: Reward of a step into a failed state, before scaling.
        every: After how many steps the cost is asked for again.
    """

    scale: float = 1.0
    failure: float = -1.0
    every: Steps = 1
    shaped: bool = field(default=False, init=False, repr=False)

    def __call__(self, transition: Transition) -> float:
        """Return -scale * current / first."""
        costs = transition.costs
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

    Raises:
        IrgymError: The reward is shaped already.
    """

    reward: Reward = field(default_factory=RelativeImprovement)
    gamma: Annotated[float, Range(0, 1)] = 1.0
    weight: float = 1.0
    shaped: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.reward.shaped:
            raise IrgymError(f"{self.reward!r} is shaped already: shape another reward")

    @property
    def every(self) -> int:
        """After how many steps the shaped reward asks for the cost."""
        return self.reward.every

    @property
    def pipeline(self) -> str:
        """Name of the pipeline that the shaped reward needs; empty: none."""
        return self.reward.pipeline if isinstance(self.reward, Scaled) else ""

    def __call__(self, transition: Transition) -> float:
        """Return the reward plus the shaping; an episode ends at potential 0 (Grzes 2017)."""
        before, after = transition.costs.potentials
        after = 0.0 if transition.final else after
        return self.reward(transition) + self.weight * (self.gamma * after - before)


def potential(task: Task[Any], state: Any) -> float:
    """Return the state's potential for reward shaping (Ng et al. 1999): greater is better.

    One less the mean of the analysis; 0 without one. It is 0 at the start, where all shares are 1: shaping
    gives it back at an episode's end, and from any other zero on, ending at once would be worth the whole
    shift to a learner whose value function knows nothing yet.
    """
    analysis = ask(task, Analysis)
    return 0.0 if analysis is None else 1.0 - float(analysis.analysis(state).mean())
