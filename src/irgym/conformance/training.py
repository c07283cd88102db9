"""The check of an agent on a problem, by short trainings. Needs the extra `learn` (torch)."""

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from irgym.agents import AGENTS
from irgym.agents.learner import AgentConfig, config_fault
from irgym.agents.optimisation import threads
from irgym.agents.problem import Problem, makers_of
from irgym.base.errors import IrgymError
from irgym.conformance.errors import ConformanceError
from irgym.conformance.rule import NONE, broken, skipped
from irgym.conformance.rules.agents import AGENT_RULES
from irgym.conformance.trial import Trial, elsewhere
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.environment import Environment
from irgym.core.reward import LogSpeedup
from irgym.measure.evaluators import summed

HIDDEN = (16,)
"""Widths of the hidden layers of an agent that is checked by its name or class."""


class Invented:
    """Evaluator that makes costs from the texts of jobs: always the same, and nothing is measured."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job, in order."""
        return summed(jobs, lambda single: [job.known or _invented(job) for job in single])


def _invented(job: Job) -> Measurement:
    digest = hashlib.sha256(f"{job.program} {job.schedule}".encode()).digest()
    return Measurement(Outcome.OK, (1000.0 + int.from_bytes(digest[:2]),))


def check_training(
    config: AgentConfig, problem: Problem, *, iterations: int = 6, skip: Mapping[str, str] = NONE
) -> None:
    """Check that an agent keeps the rules on a problem, whose costs must be the same at each evaluation.

    Args:
        config: The configuration.
        problem: The problem.
        iterations: Length of the trainings, at least 2.
        skip: Names of rules that are not checked, each with the reason.

    Raises:
        ConformanceError: A rule is broken; the error names it.
        IrgymError: There are too few iterations, or a rule that does not exist is to be skipped.
    """
    if iterations < 2:
        raise IrgymError(f"{iterations} iterations are too few to interrupt a training: give at least 2")
    left_out = skipped(skip, [rule.name for rule in AGENT_RULES])
    with ExitStack() as stack:
        stack.enter_context(threads(getattr(config, "threads", 1)))
        stack.enter_context(elsewhere(seed=0))
        folder = stack.enter_context(TemporaryDirectory(prefix="irgym-agent-"))
        trial = Trial(config, problem, iterations, Path(folder))
        for rule in AGENT_RULES:
            if rule.name not in left_out and (detail := broken(rule.check, trial)):
                raise ConformanceError(rule.name, type(config).__name__, detail)


def configuration(agent: "AgentConfig | type[AgentConfig] | str") -> AgentConfig:
    """Return a configuration that is given as such, by its class or by its name.

    Raises:
        ConformanceError: The class is none of a configuration.
        IrgymError: There is no agent of that name.
    """
    kind: Any = AGENTS.load(agent) if isinstance(agent, str) else agent
    if not isinstance(kind, type):
        return cast(AgentConfig, kind)
    if fault := config_fault(kind):
        raise ConformanceError("fields", kind.__name__, f"it {fault}")
    config: Any = kind()
    return replace(config, hidden=HIDDEN) if "hidden" in {field.name for field in fields(config)} else config


@contextmanager
def problem_of(environment: Environment, uris: Sequence[str]) -> Generator[Problem]:
    """Provide the problem of some programs, whose costs are exact or else invented."""
    exact = next((objective.name for objective in environment.objectives if objective.exact), None)
    tasks = [environment.task(uri, objective=exact) for uri in uris]
    if exact is None:
        yield Problem(tasks, Invented(), LogSpeedup())
        return
    known = environment.name in ENVIRONMENTS
    makers = makers_of(environment.name, uris, objective=exact) if known else []
    with environment.bench() as bench:
        yield Problem(tasks, bench.evaluator, environment.default_reward, makers=makers)
