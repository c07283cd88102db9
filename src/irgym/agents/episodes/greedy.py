"""Episodes of any policy on a problem's programs, step by step."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irgym.agents.episodes.rollout import ideal_costs
from irgym.agents.problem import Problem
from irgym.core.cost import Evaluator
from irgym.core.observation import view_named
from irgym.core.task import Task
from irgym.gym.batched import Batched, Course
from irgym.policies.policy import Policy, playing


def course_of(problem: Problem, observation: str, evaluator: Evaluator) -> Course:
    """Return what the episodes of a problem share.

    Raises:
        IrgymError: There is no such observation.
    """
    tasks = problem.analysed().tasks if problem.reward.shaped else problem.tasks
    views = tasks[0].views
    view = view_named(views, observation) if observation else next(iter(views.values()))
    return Course(
        tasks, [view], evaluator, problem.reward, lambda task: ideal_costs([task], problem.peaks)[0]
    )


def greedy_return(policy: Policy, problem: Problem, tasks: Sequence[Task[Any]]) -> float:
    """Return the mean return over `tasks` of a policy's most probable actions, without shaping."""
    batched = Batched(course_of(problem.unshaped(), policy.observation, problem.evaluator), len(tasks))
    for place, task in enumerate(tasks):
        batched.begin([place], task)
    remembering = playing(policy)
    total = np.zeros(len(tasks))
    places = list(range(len(tasks)))
    while places:
        nodes = [batched.episode(place).node for place in places]
        seen = [node.task.observe(node.state, policy.observation) for node in nodes]
        masks = [node.mask for node in nodes]
        if remembering is None:
            actions = policy.act(seen, masks, None)
        else:
            actions = remembering.act(places, seen, masks, None)
        rewards, ended, cut = batched.step(places, actions)
        total[places] += rewards
        places = [place for place, over in zip(places, ended | cut, strict=True) if not over]
    return float(total.mean())
