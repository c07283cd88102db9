"""The shipped policy on networks that it was not trained on."""

import statistics

import pytest

from irgym.envs.graph import runner
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask
from irgym.judging.trials import Trials
from irgym.measure.bench import MeasuringBench
from irgym.measure.cache import CostCache

torch = pytest.importorskip("torch")

from irgym.networks.policy import TorchPolicy  # noqa: E402
from irgym.search.rollouts import rollout  # noqa: E402

HELD_OUT = (
    "graph://bert?heads=2&hidden=32&layers=1&sequence=8&vocabulary=64",
    "graph://unet?size=64&levels=2&width=16",
)


@pytest.fixture(scope="module")
def policy() -> TorchPolicy:
    return TorchPolicy.load(GRAPH.policies()["default"])


def episode(policy: TorchPolicy, uri: str) -> tuple[GraphTask, GraphState, int]:
    """Return the task, the final state of a greedy episode, and its actions."""
    task = GRAPH.task(uri)
    policy.check(task.space, task.observe(task.initial()))
    [path] = rollout(task, policy, 1, None)
    return task, path[-1].state, len(path) - 1


def test_it_is_small_and_says_what_it_was_trained_for(policy):
    assert GRAPH.policies()["default"].stat().st_size < 2_000_000
    assert policy.targets == ("x86-64-v4",)


@pytest.mark.parametrize("uri", HELD_OUT)
def test_its_rewrites_are_right_and_come_to_an_end(policy, uri):
    task, state, steps = episode(policy, uri)
    assert state.stopped and steps < 40
    assert len(state.graph.nodes) < len(task.graph.nodes)
    assert runner.validate(*task.validation(state, 1, 5).arguments).ok


@pytest.mark.timed
def test_it_is_faster_than_no_optimiser(policy, tmp_path):
    """Time in turn: on a shared machine, the second of two programs may run in a slower phase."""
    with MeasuringBench(CostCache(tmp_path / "costs.sqlite")) as bench:
        for uri in ("graph://gru?hidden=512&layers=1", "graph://unet"):
            task, state, _ = episode(policy, uri)
            trials = Trials(bench, task)
            rounds = [trials.measure(state).cost / trials.measure(task.initial()).cost for _ in range(5)]
            assert statistics.median(rounds) < 0.95, rounds
