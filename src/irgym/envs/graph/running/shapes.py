"""Shapes as ONNX Runtime computes them, where inference tells others.

Inference has its own formulas, such as that of the number of windows of a pool. What runs is believed.
"""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.dense import graphs_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of
from irgym.envs.graph.running.sessions import CompileError, Profiled, TooSlowError

Array = NDArray[Any]
Shape = tuple[int, ...]

NODE = "irgym:"
"""Beginning of the names of operators while they are run: those within others have other names."""


def observed_shapes(
    graph: Graph, weights: Weights, draw: Callable[[], Mapping[str, Array]]
) -> dict[str, Shape]:
    """Return the shapes of the tensors that operators make in one run, as far as ONNX Runtime tells them.

    None are told where nothing can be drawn, or the graph does not run on what is: the checks, which draw
    inputs too, say what is wrong.

    Args:
        graph: The graph.
        weights: Arrays of its weights.
        draw: Returns inputs by name.

    Raises:
        CompileError: ONNX Runtime refuses the graph, or a run takes too long.
    """
    model = model_of(graph, weights, whole=False)
    for inner in graphs_of(model.graph):
        for one in inner.node:
            one.ClearField("name")  # profiles do not escape what names may hold
    for place, one in enumerate(model.graph.node):
        one.name = f"{NODE}{place}"
    with TemporaryDirectory() as folder:
        profiled = Profiled(model, arrays_apart(graph, weights), Path(folder))
        try:
            results = profiled.run(draw())
        except TooSlowError:
            raise
        except (CompileError, ProgramError):
            return {}
        finally:
            events = json.loads(profiled.profile().read_text())
    shapes = dict(_made(model, events))
    shapes.update(zip(graph.outputs, (array.shape for array in results), strict=True))
    return shapes


def _made(model: onnx.ModelProto, events: list[dict[str, Any]]) -> Iterator[tuple[str, Shape]]:
    """Yield the values that operators made, by a profile, with their shapes."""
    for event in events:
        # ONNX Runtime may add operators, named after others.
        found = re.fullmatch(rf"{NODE}(\d+)_kernel_time", str(event.get("name", "")))
        if event.get("cat") != "Node" or not found:
            continue
        one = model.graph.node[int(found[1])]
        made = [value for value in one.output if value]
        told = [tuple(shape) for kinds in event["args"]["output_type_shape"] for shape in kinds.values()]
        if len(made) == len(told):  # sequences are left out, and so it is not told which these are
            yield from zip(made, told, strict=True)


def correct(model: onnx.ModelProto, declared: onnx.ModelProto, shapes: Mapping[str, Shape]) -> None:
    """Put shapes of a run in the place of inferred ones that differ, and restore those that were declared.

    Args:
        model: It is changed: values of which all sizes were inferred, and results of which not all were.
        declared: The model as it came, with what its author says of the results.
        shapes: Shapes of a run by value.
    """
    known = {value.name: value for value in declared.graph.output}
    results = {value.name for value in model.graph.output}
    for value in (*model.graph.value_info, *model.graph.output):
        tensor = value.type.tensor_type
        if value.name not in shapes or not value.type.HasField("tensor_type"):
            continue
        seen = shapes[value.name]
        if tensor.HasField("shape") and all(size.HasField("dim_value") for size in tensor.shape.dim):
            if tuple(size.dim_value for size in tensor.shape.dim) != seen:
                del tensor.shape.dim[:]
                for size in seen:
                    tensor.shape.dim.add(dim_value=size)
        elif value.name in results:
            _restore(tensor, known[value.name].type.tensor_type, seen)


def _restore(tensor: Any, declared: Any, seen: Shape) -> None:
    """Give a result the sizes that were declared and that a run agrees with."""
    if not declared.HasField("shape") or len(declared.shape.dim) != len(seen):
        return
    tensor.shape.SetInParent()
    if len(tensor.shape.dim) != len(seen):
        del tensor.shape.dim[:]
        for _ in seen:
            tensor.shape.dim.add()
    for own, said, size in zip(tensor.shape.dim, declared.shape.dim, seen, strict=True):
        if said.HasField("dim_value") and said.dim_value == size:
            own.dim_value = size
