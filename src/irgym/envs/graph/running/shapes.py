"""Shapes as ONNX Runtime computes them, which correct those that onnx infers.

onnx infers shapes by other formulas in places, such as for the number of windows of a pool.
"""

# The types of onnx are incomplete.
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
"""Prefix of the names of nodes in a profiled run; nodes of subgraphs have none."""


def observed_shapes(
    graph: Graph, weights: Weights, draw: Callable[[], Mapping[str, Array]]
) -> dict[str, Shape]:
    """Return the shapes of operators' results in a run, as far as ONNX Runtime reports them.

    The result is empty if no inputs can be drawn, or the graph does not run on them. The checks, which draw
    inputs too, report such errors later.

    Args:
        graph: The graph.
        weights: Arrays of its weights.
        draw: Returns inputs by name.

    Raises:
        CompileError: ONNX Runtime refuses the graph, or a run takes too long.
    """
    model = model_of(graph, weights, whole=False)
    for inner in graphs_of(model.graph):
        for node in inner.node:
            node.ClearField("name")  # profiles do not escape special characters in names
    for place, node in enumerate(model.graph.node):
        node.name = f"{NODE}{place}"
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
    """Yield operators' results with their shapes, from the events of a profile."""
    for event in events:
        # ONNX Runtime may add operators, whose names extend those of others.
        found = re.fullmatch(rf"{NODE}(\d+)_kernel_time", str(event.get("name", "")))
        if event.get("cat") != "Node" or not found:
            continue
        node = model.graph.node[int(found[1])]
        made = [value for value in node.output if value]
        told = [tuple(shape) for kinds in event["args"]["output_type_shape"] for shape in kinds.values()]
        if len(made) == len(told):  # profiles omit sequences; then the rest cannot be assigned
            yield from zip(made, told, strict=True)


def correct(model: onnx.ModelProto, declared: onnx.ModelProto, shapes: Mapping[str, Shape]) -> None:
    """Replace inferred shapes by those of a run, and restore the declared sizes of results.

    Args:
        model: The model. It is changed: the shapes of values that were inferred in full, and of results that
            were inferred in part.
        declared: The model in its file, with the shapes that its author declared for results.
        shapes: Shapes in a run, by value.
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
    """Give a result the declared sizes that agree with a run."""
    if not declared.HasField("shape") or len(declared.shape.dim) != len(seen):
        return
    tensor.shape.SetInParent()
    if len(tensor.shape.dim) != len(seen):
        del tensor.shape.dim[:]
        for _ in seen:
            tensor.shape.dim.add()
    for dim, original, size in zip(tensor.shape.dim, declared.shape.dim, seen, strict=True):
        if original.HasField("dim_value") and original.dim_value == size:
            dim.dim_value = size
