"""Small models that are wrong in a single respect, which the checks of whole models must refuse.

Each kind is a small model and a wrong one, which is judged as `tune` and `replay` judge a result, with two
seeds. It counts as accepted if both would print that it was validated. Seeds go through all kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from fuzz.fuzzer import Tally, part
from fuzz.graph.planting.kinds import Kind
from fuzz.graph.planting.library import KINDS
from irgym.base.errors import IrgymError
from irgym.core.cost import Validation
from irgym.envs.graph.environment import GRAPH, RUNNING
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask
from irgym.measure.isolation.child import Child, Returned

INPUTS = 2
"""Random inputs of each check, the default of `tune`."""

EACH = 8
"""Kinds of a seed."""

CAUGHT, ACCEPTED, BLIND, BROKEN = "caught", "accepted", "not checkable", "does not run"


@dataclass(frozen=True)
class Verdict:
    """The verdict of the checks on a wrong model.

    Attributes:
        outcome: One of the four.
        detail: Their explanation.
    """

    outcome: str
    detail: str = ""


def task_of(model: onnx.ModelProto, path: Path) -> GraphTask:
    """Return the task of a model, which is written to a file."""
    onnx.save(model, str(path))
    return GRAPH.task(f"graph:{path}")


def judge(kind: Kind, folder: Path, child: Child, seeds: Sequence[int]) -> Verdict:
    """Return the verdict of the checks on a kind of wrong model."""
    right, wrong = kind.models()
    try:
        task = task_of(right, folder / "right.onnx")
        other = task_of(wrong, folder / "wrong.onnx").initial()
    except IrgymError as error:
        return Verdict(BROKEN, str(error))
    return judge_state(task, other, child, seeds)


def judge_state(task: GraphTask, other: GraphState, child: Child, seeds: Sequence[int]) -> Verdict:
    """Return the verdict of the checks of a task on a state, which is accepted if all seeds accept it."""
    blind = ""
    for seed in seeds:
        reply = child.call(task.validation(other, INPUTS, seed))
        if not isinstance(reply, Returned):
            return Verdict(CAUGHT if "cannot run" in str(reply) else BROKEN, str(reply))
        validation = reply.value
        assert isinstance(validation, Validation)
        if not validation.ok:
            return Verdict(CAUGHT, validation.detail)
        blind = blind or validation.blind
    return Verdict(BLIND, blind) if blind else Verdict(ACCEPTED)


def run(seed: int) -> Tally:
    """Judge some kinds."""
    tally = Tally()
    kinds, turn = part(KINDS, seed, EACH)
    with TemporaryDirectory() as folder, Child(RUNNING) as child:
        for place, kind in enumerate(kinds):
            own = Path(folder) / str(place)
            own.mkdir()
            verdict = judge(kind, own, child, (2 * turn, 2 * turn + 1))
            wrong = verdict.outcome in (ACCEPTED, BROKEN)
            tally.add(verdict.outcome, f"{verdict.outcome}: {kind.name}: {verdict.detail}" if wrong else "")
    return tally
