"""The task on small models of real exporters: laws of the states, and results in ONNX Runtime."""

import gc
import weakref
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from irgym.base.errors import BackendError, IrgymError, ScheduleError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.envs.graph import runner
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Rewrite
from irgym.envs.graph.rewriting.transitions import rewritten
from irgym.envs.graph.state import EVERYWHERE, GraphState
from irgym.envs.graph.task import GraphTask

TINY = [*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test]
CONVOLUTIONS = TINY[0]


@cache
def walk(uri: str, seed: int) -> tuple[GraphTask, list[GraphState], list[Action]]:
    """Return a task, and the states and actions of a random episode without `stop`."""
    task = GRAPH.task(uri)
    rng = np.random.default_rng(seed)
    states, taken = [task.initial()], []
    for _ in range(25):
        pairs = task.mask(states[-1]).candidates
        if not pairs:
            break
        kind, name = pairs[rng.integers(len(pairs))]
        taken.append(task.space.parse(f"{task.space.kinds[kind].name}@{name}"))
        states.append(task.step(states[-1], taken[-1]))
    return task, states, taken


@pytest.mark.parametrize("uri", TINY)
def test_random_walks(uri: str):
    task, states, taken = walk(uri, 0)
    text = Schedule(tuple(taken)).text(task.space)
    again = replay(task, Schedule.parse(text, task.space))
    assert again == states[-1] and task.key(again) == task.key(states[-1])
    assert task.mask(again).candidates == task.mask(states[-1]).candidates
    for state in states:
        found = {key for sites in task.finder.all(state.graph).values() for key, _ in sites}
        assert found == {pair for pair in state.candidates if pair[1] != EVERYWHERE}, (
            "sites that are kept up to date are all sites"
        )


@pytest.mark.parametrize("uri", TINY)
def test_what_a_rewrite_hands_on_equals_what_is_computed_anew(uri: str):
    for state in walk(uri, 1)[1]:
        fresh = replace(state.graph)
        assert {"order", "sizes", "digests"}.isdisjoint(vars(fresh))
        assert state.graph.sizes == fresh.sizes and state.graph.digests == fresh.digests
        assert state.digest == fresh.digest
        assert sorted(node.name for node in state.graph.order) == sorted(node.name for node in fresh.order)
        made = {*state.graph.inputs, *state.graph.weights}
        for node in state.graph.order:
            assert made.issuperset(node.operands) and state.graph.nodes[node.name] is node
            made.update(node.results)


def test_states_are_freed_as_soon_as_nothing_holds_them():
    """Else they stay until Python looks for garbage, which irgym makes it do seldom."""
    task = GRAPH.task(CONVOLUTIONS)
    first = task.initial()
    [kind, name], *_ = task.mask(first).candidates
    state = rewritten(task.finder, first, kind - 1, first.candidates[kind - 1, name])
    task.observe(state), task.mask(state), task.analysis(state), task.job(state)
    alive = weakref.ref(state), weakref.ref(state.graph)
    gc.disable()
    del state
    try:
        assert [thing() for thing in alive] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("uri", TINY)
def test_each_candidate_of_the_mask_applies(uri: str):
    task, states, _ = walk(uri, 1)
    state = states[min(5, len(states) - 1)]
    for kind, name in task.mask(state).candidates:
        after = task.step(state, task.space.parse(f"{task.space.kinds[kind].name}@{name}"))
        assert after.graph.inputs == state.graph.inputs and after.graph.outputs == state.graph.outputs
    with pytest.raises(ScheduleError, match="does not apply here"):
        task.step(state, task.space.parse(f"{task.space.kinds[1].name}@nowhere"))


@pytest.mark.parametrize("uri", TINY)
def test_rewritten_models_compute_the_same(uri: str):
    for seed in range(2):
        task, [*_, state], _ = walk(uri, seed)
        found = runner.validate(task.path, state.graph, inputs=1, seed=seed, threads=1)
        assert found.ok and not found.blind, found


def test_an_exported_model_runs_on_plain_onnx_runtime(tmp_path: Path):
    task, [*_, state], _ = walk(CONVOLUTIONS, 0)
    [path] = task.export(state, tmp_path / "fast.onnx")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    original = ort.InferenceSession(str(task.export(task.initial(), tmp_path / "slow.onnx")[0]))
    feeds = feeds_of(task.path, 0)
    for ours, theirs in zip(session.run(None, feeds), original.run(None, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    notes = session.get_modelmeta().custom_metadata_map
    assert notes["irgym.program"] == CONVOLUTIONS and "ORT_DISABLE_ALL" in notes["irgym.session"]
    with pytest.raises(IrgymError, match=r"end the name in one of \.onnx"):
        task.export(state, tmp_path / "fast.txt")


def test_jobs_and_objectives():
    task, [first, *_, last], _ = walk(CONVOLUTIONS, 0)
    assert task.job(first).original and not task.job(last).original
    assert task.job(first).schedule != task.job(last).schedule
    counted = task.under("nodes")
    known = counted.job(last).known
    assert known is not None and known.cost == len(last.graph.nodes)
    with pytest.raises(IrgymError, match="graph has no objective 'speed'"):
        task.under("speed")
    stopped = task.step(last, task.space.parse("stop"))
    assert task.terminal(stopped) and not task.mask(stopped).candidates and stopped != last


def test_back_ends():
    assert GRAPH.task(CONVOLUTIONS, "ort:2").threads == 2
    with pytest.raises(BackendError, match="graph has no back end 'gpu'"):
        GRAPH.task(CONVOLUTIONS, "gpu")
    with pytest.raises(BackendError, match="512 threads are more than"):
        GRAPH.task(CONVOLUTIONS, "ort:512")


def test_a_wrong_model_is_refused():
    task = GRAPH.task(CONVOLUTIONS)
    graph = task.initial().graph
    relu = next(node for node in graph.nodes.values() if node.operator == "Relu")
    wrong = graph.rewritten(Rewrite((relu.name,), (replace(relu, operator="Sigmoid"),)))
    assert not runner.validate(task.path, wrong, 2, 0, 1).ok
    measured = runner.measure(task.path, wrong, 1)
    assert measured.outcome.value == "wrong result"
    refused = graph.rewritten(Rewrite((relu.name,), (replace(relu, operator="Nothing"),)))
    assert "refuses" in runner.measure(task.path, refused, 1).detail


@pytest.mark.parametrize("uri", TINY)
def test_sketches_are_schedules_that_compute_the_same(uri: str):
    task = GRAPH.task(uri)
    for seed in range(2):
        actions = Schedule(tuple(task.sketch(np.random.default_rng(seed))))
        assert len(actions.actions) <= task.horizon
        again = Schedule.parse(actions.text(task.space), task.space)
        state = replay(task, again)
        assert state.stopped and task.sketch(np.random.default_rng(seed)) == list(actions.actions)
        found = runner.validate(task.path, state.graph, inputs=1, seed=seed, threads=1)
        assert found.ok, found


def test_some_sketch_makes_the_operators_that_onnx_runtime_makes_of_convolutions():
    task = GRAPH.task(CONVOLUTIONS)
    found = set[tuple[str, ...]]()
    for seed in range(4):
        state = replay(task, Schedule(tuple(task.sketch(np.random.default_rng(seed)))))
        found.add(tuple(sorted(node.operator for node in state.graph.nodes.values())))
    nchwc = "com.microsoft.nchwc"
    operators = [f"{nchwc}.Conv"] * 26 + [f"{nchwc}.MaxPool"] * 3 + ["Concat"] * 8
    ends = [f"{nchwc}.GlobalAveragePool", f"{nchwc}.ReorderOutput", "Reshape"]
    assert tuple(sorted(operators + ends)) in found
