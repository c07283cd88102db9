"""Greedy runs of a policy during training: validation, and evaluation on other programs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from irgym.agents.episodes.greedy import greedy_return
from irgym.agents.episodes.rollout import Choose, play, rollout
from irgym.agents.learner import Trained
from irgym.agents.problem import Problem
from irgym.core.actions import BoolArray
from irgym.core.reward import LogSpeedup
from irgym.core.task import Task
from irgym.networks import likelihood
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import Batch
from irgym.networks.policy import TorchPolicy
from irgym.policies import heads
from irgym.policies.layout import IntArray
from irgym.search.rollouts import rollout as rollout_of

OnChoice = Callable[[torch.Tensor, torch.Tensor, IntArray], None]


@dataclass(frozen=True)
class ProgramResult:
    """The policy's greedy schedule of one program.

    Attributes:
        program: URI; with the target, if the training has several.
        cost: Cost of the final state in the objective's unit; None where it failed.
        speedup: Cost of the original program over it; None where one of them failed.
    """

    program: str
    cost: float | None
    speedup: float | None


@dataclass(frozen=True)
class Evaluation:
    """A greedy run of the policy on several programs.

    Attributes:
        programs: One result for each program.
        entropy: Mean entropy of the policy in the states on its way, nats; None for a Q-learner.
    """

    programs: tuple[ProgramResult, ...]
    entropy: float | None

    @property
    def speedup(self) -> float | None:
        """Geometric mean of the speedups; None if all programs failed."""
        gains = [row.speedup for row in self.programs if row.speedup is not None]
        return math.exp(sum(map(math.log, gains)) / len(gains)) if gains else None


def evaluate_policy(policy: Trained, tasks: Sequence[Task[Any]], problem: Problem) -> Evaluation:
    """Take the policy's most probable actions on each task, and evaluate the first and the last state.

    Nothing random is drawn, so that a training goes on as it would have without the evaluation.

    Raises:
        OutOfTimeError: The problem's deadline has passed.
    """
    if not isinstance(policy, TorchPolicy):
        ends = [rollout_of(task, policy, 1, None)[0][-1].state for task in tasks]
        jobs = [
            task.job(state) for task, end in zip(tasks, ends, strict=True) for state in (task.initial(), end)
        ]
        problem.deadline.check()
        found = [measurement.cost for measurement in problem.evaluator.evaluate(jobs)]
        return Evaluation(_results(tasks, found[::2], found[1::2]), None)
    entropies: list[torch.Tensor] = []

    def record(scores: torch.Tensor, legal: torch.Tensor, choices: IntArray) -> None:
        if isinstance(policy.network, Actor):
            pairs = None if policy.pair_scores is None else torch.as_tensor(policy.pair_scores)
            taken = likelihood.evaluate(scores, legal, torch.as_tensor(choices), policy.layout, pairs)
            entropies.append(taken.entropy)

    network, choose = policy.network, greedy(policy, record)

    def choose_in_time(batch: Batch, legal: BoolArray) -> heads.Draw:
        problem.deadline.check()
        return choose(batch, legal)

    # This reward asks for the costs of the first and the last state alone; it is not paid here.
    episodes = play(tasks, LogSpeedup(), network.encoder, network.layout, choose_in_time)
    costs = [measurement.cost for measurement in problem.evaluator.evaluate(episodes.jobs)]
    firsts = [costs[row[0]] for row in episodes.asked]
    lasts = [costs[row[-1]] for row in episodes.asked]
    return Evaluation(
        _results(tasks, firsts, lasts), float(torch.cat(entropies).mean()) if entropies else None
    )


def _results(
    tasks: Sequence[Task[Any]], firsts: Sequence[float], lasts: Sequence[float]
) -> tuple[ProgramResult, ...]:
    """Return the results of programs, with the costs of their first and last states."""
    several = len({task.target_text for task in tasks}) > 1
    names = [f"{task.uri} on {task.target_text}" if several else task.uri for task in tasks]
    return tuple(map(_result, names, firsts, lasts))


def _result(program: str, first: float, last: float) -> ProgramResult:
    known = math.isfinite(first) and math.isfinite(last) and first > 0 < last
    return ProgramResult(program, last if math.isfinite(last) else None, first / last if known else None)


def greedy_score(policy: Trained, tasks: Sequence[Task[Any]], problem: Problem) -> float:
    """Return the mean return over `tasks` of the policy's most probable actions, without shaping."""
    if not isinstance(policy, TorchPolicy):
        return greedy_return(policy, problem, tasks)
    network = policy.network
    _, outcomes = rollout(tasks, problem.unshaped(), network.encoder, network.layout, greedy(policy))
    return float(outcomes.returns.mean())


def greedy(policy: TorchPolicy, record: OnChoice | None = None) -> Choose:
    """Return the choice of the most probable actions.

    Args:
        policy: The policy.
        record: Called with the scores, what is legal, and the choices of each batch.
    """

    def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
        with torch.inference_mode():
            allowed = torch.as_tensor(legal)
            scores = policy.network.forward(batch, allowed)
            choices = policy.best(scores.numpy(), legal)
            if record is not None:
                record(scores, allowed, choices)
        certain = np.zeros(len(choices), dtype=np.float32)
        return heads.Draw(choices, certain, certain)

    return choose
