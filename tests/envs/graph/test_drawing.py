"""Drawings of graphs."""

from pathlib import Path
from statistics import median

import numpy as np
import pytest
from small_graphs import graph_of

from irgym.core.schedule import Schedule, replay
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.observing.drawing import KINDS, drawing_of
from irgym.envs.graph.reference.operators import OPERATORS
from irgym.envs.graph.task import GraphTask
from irgym.measure.isolation.protocol import resolve
from irgym.reporting.pictures import changed

FLOAT = TensorType("float32", (1, 4))


def chain(*operators: str) -> Graph:
    nodes = [node(name, [f"v{place}"], [f"v{place + 1}"]) for place, name in enumerate(operators)]
    types = {f"v{place}": FLOAT for place in range(len(nodes) + 1)}
    return Graph.of(nodes, types, {}, ["v0"], [f"v{len(nodes)}"], [("", 20)])


@pytest.fixture
def task(tmp_path: Path) -> GraphTask:
    """A block with two inputs, two outputs, a weight, and a value that an operator uses twice."""
    nodes = [
        node("Conv", ["x", "w"], ["conv"], pads=(1, 1, 1, 1)),
        node("Relu", ["conv"], ["relu"]),
        node("Mul", ["relu", "relu"], ["square"]),
        node("Add", ["square", "y"], ["sum"]),
    ]
    filters = np.linspace(-1, 1, 16 * 16 * 9).reshape(16, 16, 3, 3)
    graph = graph_of(nodes, {"x": (1, 16, 8, 8), "y": (1, 16, 8, 8)}, {"w": filters}, ["sum", "relu"])
    path = tmp_path / "block.onnx"
    path.write_bytes(model_of(graph, Weights({}), whole=True).SerializeToString())
    return GRAPH.task(f"graph:{path}")


def test_everything_is_in_the_picture(task: GraphTask):
    graph = task.initial().graph
    drawing = task.drawing(task.initial())
    names = {box.name for box in drawing.boxes}
    assert len(names) == len(graph.nodes) + len(graph.inputs) + len(graph.outputs) == 8
    links = {(arrow.source, arrow.target) for arrow in drawing.arrows}
    for name, user in graph.nodes.items():
        for value in user.operands:
            if value not in graph.weights:
                assert (graph.producers.get(value, f"input:{value}"), name) in links
    assert ("relu", "output:1") in links and len(drawing.arrows) == len(links) == 7
    conv = next(box for box in drawing.boxes if box.label == "Conv")
    assert "w: float32 [16, 16, 3, 3]" in conv.detail and "pads = 1, 1, 1, 1" in conv.detail
    assert drawing == task.drawing(task.initial())


def test_a_rewrite_changes_what_it_is_about(task: GraphTask):
    after = replay(task, Schedule.parse("conv-relu@relu", task.space))
    pictures = [task.drawing(state) for state in (task.initial(), after)]
    assert changed(*pictures) == {"conv", "relu"} and changed(*reversed(pictures)) == {"relu"}


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


@pytest.mark.timed
def test_stages_are_timed_in_turn(task: GraphTask):
    call = task.stage_call(task.initial(), replay(task, Schedule.parse("conv-relu@relu", task.space)))
    rounds = resolve(call)(*call.arguments)
    assert len(rounds) >= 5 and all(before > 0 and after > 0 for before, after in rounds)
    nothing = resolve(call)(*task.stage_call(task.initial(), task.initial()).arguments)
    assert 0.5 < median(before / after for before, after in nothing) < 2.0
