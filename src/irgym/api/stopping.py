"""Policies that have learnt to stop at once: recognised after a training and in an evaluation."""

from collections.abc import Sequence
from typing import Any

from irgym.core.environment import Environment
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task
from irgym.policies.policy import Policy
from irgym.search.rollouts import outcome, rollout


def changes_nothing(policy: Policy, tasks: Sequence[Task[Any]]) -> bool:
    """Say whether a policy's most probable episodes leave every program as it is; nothing is measured.

    Most policies change the first program; then no other is played.
    """
    ends = (outcome(task, path).state for task in tasks for path in rollout(task, policy, 1, None))
    return all(task.key(end) == task.key(task.initial()) for task, end in zip(tasks, ends, strict=True))


def is_unchanged(task: Task[Any], schedule: str) -> bool:
    """Say whether a schedule leaves a program as it is."""
    return task.key(replay(task, Schedule.parse(schedule, task.space))) == task.key(task.initial())


def note_of_no_change(environment: Environment, count: int) -> str:
    """Return a sentence about a policy that leaves all of some programs as they are, with a remedy."""
    own = [name for name, recipe in environment.recipes.items() if not recipe.source]
    remedies = [f"train by a recipe (--recipe {name})" for name in own][:1]
    remedies.append(
        f"start from a policy that imitates searches (irgym imitate {environment.name} --out FILE, then "
        "irgym train --set start=FILE)"
    )
    programs = "the program" if count == 1 else f"all {count} programs"
    return f"the policy leaves {programs} tried unchanged: {', or '.join(remedies)}"
