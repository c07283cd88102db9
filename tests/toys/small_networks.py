"""Very small networks of real exporters, each exported once by a process that runs tests."""

from functools import cache

from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.task import GraphTask

CONVOLUTIONS, TRANSFORMER = GRAPH.dataset("tiny").train[:2]


@cache
def task_of(uri: str) -> GraphTask:
    """Return the task. The file of its model may be gone: nothing of it can be run as a whole."""
    return GRAPH.task(uri)
