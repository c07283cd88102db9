"""Models opened, rewritten at random and exported in this process, for the scripts beside this one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from irgym.base.errors import IrgymError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule
from irgym.envs.graph.programs.files import bound
from irgym.envs.graph.running.keeping import kept
from irgym.envs.graph.running.toolchain import toolchain
from irgym.envs.graph.task import GraphTask
from irgym.measure.target import host_target


class Refused(Exception):
    """A model is refused, in one sentence."""


@dataclass(frozen=True)
class Made:
    """An exported model.

    Attributes:
        content: The file.
        schedule: The rewrites.
        task: The program.
        steps: How many rewrites there were.
    """

    content: bytes
    schedule: str
    task: GraphTask
    steps: int


def opened(model: onnx.ModelProto, path: Path, ranges: Mapping[str, tuple[int, int]]) -> GraphTask:
    """Return the task of a model, as `irgym tune` opens a file.

    Raises:
        Refused: It is refused.
    """
    path.write_bytes(model.SerializeToString())
    try:
        content = bound(str(path), (), {}, tuple(ranges.items()))
        file = path.with_suffix(".bound.onnx")
        file.write_bytes(content)
        read = kept(str(file), f"graph:{path}")
        return GraphTask(f"graph:{path}", read.path, read.graph, host_target(), 1, toolchain())
    except IrgymError as error:
        raise Refused(str(error).replace(str(path), "FILE")) from error


def exported(
    model: onnx.ModelProto,
    path: Path,
    ranges: Mapping[str, tuple[int, int]],
    random: np.random.Generator,
    steps: int,
) -> Made:
    """Return what a model becomes by random rewrites.

    Args:
        model: The model.
        path: Where to write it, and beside it what becomes of it.
        ranges: For inputs of whole numbers, the least value and the one after the greatest.
        random: Draws rewrites.
        steps: Most rewrites.

    Raises:
        Refused: It is refused.
    """
    task = opened(model, path, ranges)
    state, taken = task.initial(), list[Action]()
    for _ in range(int(random.integers(0, steps + 1))):
        mask = task.mask(state)
        action = task.space.sample(mask, random)
        if task.space.stops[action.kind]:
            break
        state = task.step(state, action)
        taken.append(action)
    schedule = Schedule(tuple(taken))
    written = path.with_suffix(".made.onnx")
    task.export(state, written)
    return Made(written.read_bytes(), schedule.text(task.space), task, len(taken))


def ran(content: bytes, feeds: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return what ONNX Runtime makes of inputs with its optimiser off.

    Raises:
        Refused: It refuses the model, or does not run it.
    """
    options: Any = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        names = {value.name for value in session.get_inputs()}
        return [
            session.run(None, {key: value for key, value in one.items() if key in names}) for one in feeds
        ]
    except Exception as error:  # its errors have no common class
        raise Refused(str(error).splitlines()[0]) from error
