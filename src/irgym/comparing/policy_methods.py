"""Policies as methods of a comparison: one episode without a search, raw or never worse than the original."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from irgym.base.errors import UnsuitedPolicyError
from irgym.comparing.methods import Conditions, Outcome, outcome_of
from irgym.core.schedule import Candidate
from irgym.core.task import Task
from irgym.judging.finding import Finding
from irgym.policies.policy import Policy
from irgym.search.rollouts import candidates, most_probable, outcome


@dataclass(frozen=True)
class Episode:
    """A policy's most probable episode.

    Attributes:
        path: The states on its way.
        final: Its final state; where states know their costs, as with op counts, the best one on the way.
        runs: Whether the program there runs.
        seconds: Time of inference and of one compilation.
    """

    path: Sequence[Candidate]
    final: Candidate
    runs: bool
    seconds: float


@dataclass(frozen=True)
class RawPolicy:
    """A policy's episode, without any search and whatever it comes to: what a policy is judged by."""

    name: str
    policy: Policy

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Roll out, check and measure the final state."""
        _, made = self.judged(conditions, task, self.episode(conditions, task))
        return made

    def episode(self, conditions: Conditions, task: Task[Any]) -> Episode:
        """Roll out, and run the final state once."""
        started = time.perf_counter()
        path = most_probable(conditions.limited(task, self.policy), self.policy)
        inference_s = time.perf_counter() - started
        final = outcome(task, path)
        measurement = conditions.judge(task).trials.measure(final.state)
        return Episode(path, final, measurement.ok, inference_s + measurement.compile_s)

    def judged(self, conditions: Conditions, task: Task[Any], episode: Episode) -> tuple[Finding, Outcome]:
        """Check and measure the final state of an episode."""
        finding = conditions.judge(task).confirm(episode.final)
        return finding, outcome_of(self.name, task, finding, episode.seconds, evaluations=0)


@dataclass(frozen=True)
class RolledOut:
    """A policy's episode, never worse than the original program.

    The result is the best of the final state, the best state seen on the way, and the original program.
    What the policy comes to by itself is the outcome's `raw`; there is none where that does not run.
    """

    name: str
    raw: RawPolicy

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Roll out, measure the states on the way, then check and measure the best of all."""
        episode = self.raw.episode(conditions, task)
        final, raw = self.raw.judged(conditions, task, episode) if episode.runs else (None, None)
        started = time.perf_counter()
        nodes, costs = _seen(conditions, task, episode)
        seconds = episode.seconds + time.perf_counter() - started
        least = min(costs)
        best = nodes[costs.index(least)] if least < math.inf else episode.path[0]
        finding = conditions.judge(task).best_of_episode(final, best)
        best_seen = min(finding.cost, least)
        made = outcome_of(self.name, task, finding, seconds, len(nodes), best_seen=best_seen)
        return replace(made, raw=raw)


@dataclass(frozen=True)
class Unsuited:
    """A method whose policy does not suit the programs: it fails on each, and the other methods go on.

    Attributes:
        name: Name in tables.
        reason: Why it does not suit, in a sentence.
    """

    name: str
    reason: str

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Fail.

        Raises:
            UnsuitedPolicyError: Always.
        """
        raise UnsuitedPolicyError(self.reason)


def _seen(conditions: Conditions, task: Task[Any], episode: Episode) -> tuple[list[Candidate], list[float]]:
    """Return the distinct programs on the way that are worth evaluating, and their costs."""
    nodes: dict[str, Candidate] = {}
    for node in candidates(task, episode.path):
        nodes.setdefault(task.job(node.state).schedule, node)
    measured = conditions.bench.evaluator.evaluate([task.job(node.state) for node in nodes.values()])
    costs = {program: measurement.cost for program, measurement in zip(nodes, measured, strict=True)}
    if not episode.runs:  # whatever was measured of it before
        costs[task.job(episode.final.state).schedule] = math.inf
    return list(nodes.values()), list(costs.values())
