"""Planted wrong models: the kinds that the checks of whole models accept.

    python fuzz/graph_planted.py

Each kind is a small model and a model that is wrong in a single respect. The wrong model is judged as `tune`
and `replay` judge a result, with two seeds. It counts as accepted if both would print that it was validated.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import tyro
from graph_planting.kinds import Kind
from graph_planting.library import KINDS
from rich.console import Console
from rich.table import Table

from irgym.base.errors import IrgymError
from irgym.core.cost import Validation
from irgym.envs.graph.environment import GRAPH, RUNNING
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import GraphTask
from irgym.measure.isolation.child import Child, Returned

INPUTS = 2
"""Random inputs of each check, the default of `tune`."""

MOST = 5
"""Accepted kinds, of 78, that pass: legal inputs can hardly tell them apart."""

CAUGHT, ACCEPTED, BLIND, BROKEN = "caught", "accepted", "not checkable", "does not run"


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    count: int = 0
    """Number of kinds, drawn at random; 0 for all."""
    seed: int = 0
    """Seed of the inputs and of the kinds."""
    seconds: float = 540.0
    """Seconds after which to stop."""
    only: str = ""
    """Words in the names of kinds."""


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


def verdicts(options: Options, folder: Path) -> Iterator[tuple[Kind, Verdict]]:
    """Yield kinds with the verdicts of the checks."""
    import numpy as np

    chosen = [kind for kind in KINDS if options.only in kind.name]
    if options.count:
        order = np.random.default_rng(options.seed).permutation(len(chosen))
        chosen = [chosen[place] for place in order[: options.count]]
    until = time.monotonic() + options.seconds
    with Child(RUNNING) as child:
        for place, kind in enumerate(chosen):
            if time.monotonic() > until:
                return
            own = folder / str(place)
            own.mkdir()
            yield kind, judge(kind, own, child, (options.seed, options.seed + 1))


def main(options: Options) -> int:
    """Print the verdict on each kind; return 1 if too many are accepted."""
    counts, table = Counter[str](), Table("kind", "verdict", "detail")
    with TemporaryDirectory() as folder:
        for kind, verdict in verdicts(options, Path(folder)):
            counts[verdict.outcome] += 1
            table.add_row(kind.name, verdict.outcome, verdict.detail[:90])
    Console(width=200).print(table)
    print(f"{counts.total()} kinds: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    return int(counts[ACCEPTED] > MOST or counts[BROKEN] > 0)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
