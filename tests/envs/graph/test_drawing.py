"""Graphs as pictures."""

import numpy as np
import pytest

from irgym.core.schedule import Schedule, replay
from irgym.envs.graph import runner
from irgym.envs.graph.drawing import KINDS, drawing_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph, node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.operators import OPERATORS

TINY = [*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test]
FLOAT = TensorType("float32", (1, 4))


def chain(*operators: str) -> Graph:
    nodes = [node(name, [f"v{place}"], [f"v{place + 1}"]) for place, name in enumerate(operators)]
    types = {f"v{place}": FLOAT for place in range(len(nodes) + 1)}
    return Graph.of(nodes, types, {}, ["v0"], [f"v{len(nodes)}"], [("", 20)])


@pytest.mark.parametrize("uri", TINY)
def test_everything_is_in_the_picture(uri: str):
    task = GRAPH.task(uri)
    graph = task.initial().graph
    drawing = task.drawing(task.initial())
    names = {box.name for box in drawing.boxes}
    assert len(names) == len(graph.nodes) + len(graph.inputs) + len(graph.outputs)
    links = {(arrow.source, arrow.target) for arrow in drawing.arrows}
    for name, one in graph.nodes.items():
        for value in one.operands:
            if value not in graph.weights:
                assert (graph.producers.get(value, f"input:{value}"), name) in links
    assert drawing == task.drawing(task.initial())


def test_operators_have_kinds_and_short_names():
    blocked, fused = "com.microsoft.nchwc.Conv", "com.microsoft.BiasGelu"
    boxes = drawing_of(chain("Relu", "MatMul", blocked, fused, "my.domain.Thing")).boxes
    assert [(box.label, box.kind) for box in boxes] == [
        ("input", "input or output"),
        ("Relu", "elementwise"),
        ("MatMul", "product"),
        ("blocked Conv", "convolution"),
        ("BiasGelu", "elementwise"),
        ("my.domain.Thing", "other"),
        ("output", "input or output"),
    ]
    assert "float32 [1, 4]" in boxes[1].detail
    known = {name for name in OPERATORS if drawing_of(chain(name)).boxes[1].kind != "other"}
    assert OPERATORS.keys() - known == {"Constant", "ConstantOfShape", "Range", "Shape", "Size"}
    assert {box.kind for name in OPERATORS for box in drawing_of(chain(name)).boxes} <= set(KINDS)


def test_stages_are_timed_in_turn():
    task = GRAPH.task(TINY[0])
    kind, name = task.mask(task.initial()).candidates[0]
    schedule = Schedule.parse(f"{task.space.kinds[kind].name}@{name}", task.space)
    call = task.stage_call(task.initial(), replay(task, schedule))
    rounds = runner.stages(*call.arguments)
    assert call.function.endswith("runner:stages") and len(rounds) >= 5
    assert np.array(rounds).shape == (len(rounds), 2) and np.min(rounds) > 0
