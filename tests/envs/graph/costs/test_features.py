"""Features of graphs for learned cost models."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from small_networks import TRANSFORMER, task_of

from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph.costs.features import COST_FEATURES
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.task import GraphTask


def independent(task: GraphTask) -> tuple[Action, Action]:
    """Return two rewrites that can be taken in either order, and lead to one graph in both."""
    actions = [Action(kind, candidate=name) for kind, name in task.mask(task.initial()).candidates]
    for first, second in combinations(actions, 2):
        orders = (first, second), (second, first)
        if all(task.accepts(task.step(task.initial(), taken), next_) for taken, next_ in orders):
            keys = {task.key(replay(task, Schedule(order))) for order in orders}
            if len(keys) == 1:
                return first, second
    raise AssertionError("no rewrites are independent")


def test_they_depend_on_what_is_computed_and_not_on_the_way_there():
    task = task_of(TRANSFORMER)
    first, second = independent(task)
    there, back = (
        task.cost_features(replay(task, Schedule(order))) for order in ((first, second), (second, first))
    )
    assert (there == back).all() and there.shape == (COST_FEATURES,) and np.isfinite(there).all()
    initial = task.cost_features(task.initial())
    assert (there != initial).any()
    assert (task.cost_features(replace(task.initial(), ending="all")) != initial).any()


def test_changes_are_those_from_the_original():
    task = task_of(TRANSFORMER)
    initial = task.cost_features(task.initial())
    assert initial[-4] == 0.0, "it takes as long as the original"
    graph = task.graph
    unknown = node("com.example.Odd", [next(iter(graph.nodes))], ["odd"])
    larger = replace(graph, nodes={**graph.nodes, unknown.name: unknown})
    found = task.cost_features(replace(task.initial(), graph=larger))
    assert found[-4] > 0.0 and (found != initial).sum() >= 4
