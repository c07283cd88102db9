"""Random sequences of rewrites: no rule fails, nothing ends in a traceback, and ONNX Runtime runs what comes out.

Programs are random graphs in single precision, instances of rules, and the data sets' families in small
sizes. Each sequence draws a rule among those that apply, then a place for it. One in `--run-every` is run in
ONNX Runtime, its optimiser off, and compared with its program. `graph_fuzz.py` checks much more of much less.

    python fuzz/graph_sequences.py --count 20000
    python fuzz/graph_sequences.py --first 5000 --count 5000

A sequence is drawn by the seed and its number alone. Exits with 1 where a rule failed, or anything else.
"""

import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import tyro
from graph_fuzzing.apart import Apart, Died
from graph_fuzzing.perturbed import Array
from graph_fuzzing.programs import HEAVY, PROGRAMS
from graph_fuzzing.random_graphs import Maker
from graph_fuzzing.rule_checks import Refused, in_runtime, instance_in

from irgym.core.actions import Action
from irgym.core.errors import ProgramError
from irgym.envs.graph.actions import RULES
from irgym.envs.graph.environment import GRAPH, toolchain
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.checking import feeds_of
from irgym.envs.graph.task import GraphTask
from irgym.measure.target import target_of

FAMILIES = 0.1
"""Share of sequences that begin with a model of a family."""

INSTANCES = 0.3
"""Share of those that begin with an instance of a rule."""

CLOSE = 2e-2
"""Greatest difference in ONNX Runtime, as a share of the greatest value: rewrites add up rounding."""

GROWN = 400
"""Operators from which on a sequence ends: some rules make many of few."""


@dataclass(frozen=True)
class Options:
    """What to check."""

    count: int = 20000
    """Sequences."""
    first: int = 0
    """Number of the first one."""
    seconds: float | None = None
    """Seconds after which no more begin."""
    steps: int = 12
    """Most rewrites of a sequence."""
    run_every: int = 4
    """One in so many is run in ONNX Runtime."""
    seed: int = 0
    """Seed of all sequences."""
    families: bool = True
    """Whether models of families are among the programs; exporting them takes a while."""


@dataclass
class Told:
    """What came of one sequence.

    Attributes:
        kind: What its program was.
        rules: The rules that were taken.
        ran: Whether it was compared in ONNX Runtime.
        failures: How often a rule failed.
        wrong: What went wrong else; empty for nothing.
    """

    kind: str
    rules: list[str] = field(default_factory=list[str])
    ran: bool = False
    failures: int = 0
    wrong: str = ""


@dataclass(frozen=True)
class Program:
    """What a sequence begins with.

    Attributes:
        kind: `random`, `instance` or a family.
        task: Its task.
        feeds: Its inputs.
        weights: Its weights.
    """

    kind: str
    task: GraphTask
    feeds: Mapping[str, Array]
    weights: Weights


class Sequences:
    """Random sequences.

    Args:
        options: What to check.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._models: dict[str, GraphTask | None] = {}
        families = [name for name in PROGRAMS if name not in HEAVY] if options.families else []
        self._uris = [f"graph://{name}?{query}" for name in families for query in PROGRAMS[name]]

    def run(self, note, number: int) -> Told:
        """Return what came of a sequence."""
        rng = np.random.default_rng((self.options.seed, number))
        told = Told("refused")
        try:
            program = self._program(rng)
            if program is not None:
                told.kind = program.kind
                note("sequence")
                self._rewritten(program, rng, number, told)
        except Exception as error:  # noqa: BLE001 - every traceback is one of what is counted
            place = traceback.extract_tb(error.__traceback__)[-1]
            told.wrong = f"{type(error).__name__} in {place.name}: {error}"
        return told

    def _rewritten(self, program: Program, rng: np.random.Generator, number: int, told: Told) -> None:
        task = program.task
        before = task.failures.total
        state = task.initial()
        for _ in range(int(rng.integers(1, self.options.steps + 1))):
            candidates = task.mask(state).candidates
            if not candidates or len(state.graph.nodes) > GROWN:
                break
            kinds = sorted({kind for kind, _ in candidates})
            kind = kinds[int(rng.integers(len(kinds)))]
            names = [name for own, name in candidates if own == kind]
            action = Action(kind, candidate=names[int(rng.integers(len(names)))])
            told.rules.append(task.space.kinds[kind].name)
            state = task.step(state, action)
        told.failures = task.failures.total - before
        if number % self.options.run_every == 0:
            told.wrong = _compared(program, state.graph)
            told.ran = True

    def _program(self, rng: np.random.Generator) -> Program | None:
        share = rng.random()
        if self._uris and share < FAMILIES:
            return self._family(self._uris[int(rng.integers(len(self._uris)))])
        if share < FAMILIES + INSTANCES:
            found = instance_in(RULES[int(rng.integers(len(RULES)))], rng)
            return None if found is None else _of("instance", found.graph, found.feeds, found.weights)
        maker = Maker(np.random.default_rng(int(rng.integers(1 << 30))))
        graph = maker.graph(int(rng.integers(4, 20)))
        return _of("random", *single(graph, maker.feeds()))

    def _family(self, uri: str) -> Program | None:
        if uri not in self._models:
            try:
                self._models[uri] = GRAPH.task(uri)
            except ProgramError:
                self._models[uri] = None
        task = self._models[uri]
        if task is None:
            return None
        model = model_at(task.path)
        return Program(
            uri.partition("?")[0].removeprefix("graph://"), task, feeds_of(task.path, 0), model.weights
        )


def _of(kind: str, graph: Graph, feeds: Mapping[str, Array], weights: Weights) -> Program:
    return Program(kind, GraphTask(kind, "", graph, target_of(None), 1, toolchain()), feeds, weights)


def single(graph: Graph, feeds: Mapping[str, Array]) -> tuple[Graph, dict[str, Array], Weights]:
    """Return a graph of double precision in single precision, with its inputs and weights."""
    from graph_fuzzing.narrowed import narrowed

    return narrowed(graph, feeds)


def _compared(program: Program, after: Graph) -> str:
    """Return how what came out differs in ONNX Runtime from the program; nothing where it does not."""
    feeds = [dict(program.feeds)]
    try:
        [before] = in_runtime(program.task.graph, feeds, program.weights)
    except Refused:
        return ""  # no model: ONNX Runtime does not run it as it is
    try:
        [now] = in_runtime(after, feeds, program.weights)
    except Refused as error:
        return f"refused: {error}"
    for name, one, other in zip(after.outputs, before, now, strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{name} was {one.dtype}{one.shape}, is {other.dtype}{other.shape}"
        if one.dtype.kind != "f":
            continue
        there = np.isfinite(one) & np.isfinite(other)
        greatest = max(float(np.abs(one[there]).max(initial=0)), 1e-6)
        error = float(np.abs(one[there] - other[there]).max(initial=0)) / greatest
        if error > CLOSE:
            return f"{name} is off by {error:.1e} of its greatest value"
    return ""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    sequences = Sequences(options)
    apart = Apart(sequences.run)
    started = time.monotonic()
    kinds, rules = Counter[str](), Counter[str]()
    done = ran = failures = steps = 0
    wrong: list[str] = []
    for number in range(options.first, options.first + options.count):
        if options.seconds is not None and time.monotonic() - started > options.seconds:
            break
        try:
            told = apart(number)
        except Died as error:
            told = Told("died" if error.stage else "refused", wrong="the process died" if error.stage else "")
        if told.kind == "refused":
            kinds["refused"] += 1
            continue
        done += 1
        kinds[told.kind if told.kind in ("random", "instance") else "family"] += 1
        rules.update(told.rules)
        steps += len(told.rules)
        ran += told.ran
        failures += told.failures
        if told.wrong or told.failures:
            wrong.append(f"number {number} ({told.kind}): {told.wrong or 'a rule failed'}; {told.rules}")
            print(wrong[-1], flush=True)
    shown = ", ".join(f"{count} {name}" for name, count in kinds.most_common())
    print(f"sequences {options.first} to {number}: {done} done, {shown}; {steps} steps, {len(rules)} rules")
    tracebacks = sum("traceback" in one or "Error" in one for one in wrong)
    print(
        f"{failures} rule errors, {tracebacks} tracebacks, {len(wrong)} wrong; {ran} compared in ONNX Runtime"
    )
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
