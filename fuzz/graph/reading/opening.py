"""Models opened, rewritten at random and exported in this process."""

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
    """A model is refused with a message of one sentence."""


@dataclass(frozen=True)
class Made:
    """An exported model.

    Attributes:
        content: The file.
        schedule: The rewrites.
        task: The program.
        steps: Number of rewrites.
    """

    content: bytes
    schedule: str
    task: GraphTask
    steps: int


def opened(model: onnx.ModelProto, path: Path, ranges: Mapping[str, tuple[int, int]]) -> GraphTask:
    """Return the task of a model, opened as by `irgym tune`.

    Raises:
        Refused: The model is refused.
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
    """Return a model after random rewrites.

    Args:
        model: The model.
        path: File for the model; the result is written beside it.
        ranges: Range of integer inputs: the least value, and the greatest plus 1.
        random: Draws rewrites.
        steps: Greatest number of rewrites.

    Raises:
        Refused: The model is refused.
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
    """Return the results of ONNX Runtime without optimisation.

    Raises:
        Refused: ONNX Runtime refuses the model, or fails to run it.
    """
    options: Any = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        names = {value.name for value in session.get_inputs()}
        return [
            session.run(None, {key: value for key, value in feed.items() if key in names}) for feed in feeds
        ]
    except Exception as error:  # its errors have no common class
        raise Refused(str(error).splitlines()[0]) from error
