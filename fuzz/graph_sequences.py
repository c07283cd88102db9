"""Random sequences of rewrites: no rule fails, nothing ends in a traceback, ONNX Runtime runs what comes out.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import tyro
from graph_fuzzing.apart import Apart, Died
from graph_fuzzing.narrowed import narrowed
from graph_fuzzing.odd import Array
from graph_fuzzing.programs import HEAVY, PROGRAMS
from graph_fuzzing.random_graphs import Maker
from graph_fuzzing.rule_checks import Refused, in_runtime, instance_in, runs

from irgym.base.errors import ProgramError
from irgym.envs.graph.actions import RULES
from irgym.envs.graph.checking.checks import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.transitions import rewritten
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import block_of
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
    """Sequences; numbers that give no program are not counted."""
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
        kind: What its program was: `random`, `instance`, `family`; `refused` where there was none.
        rules: The rules that were taken.
        ran: Whether it was compared in ONNX Runtime.
        failures: How often a rule failed.
        traceback: Whether anything else raised an exception.
        wrong: What went wrong; empty for nothing.
    """

    kind: str
    rules: list[str] = field(default_factory=list[str])
    ran: bool = False
    failures: int = 0
    traceback: bool = False
    wrong: str = ""


@dataclass(frozen=True)
class Program:
    """What a sequence begins with.

    Attributes:
        kind: As in `Told`.
        graph: Its graph.
        feeds: Its inputs.
        weights: Its weights.
    """

    kind: str
    graph: Graph
    feeds: Mapping[str, Array]
    weights: Weights


class Sequences:
    """Random sequences.

    Args:
        options: What to check.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._finder = Finder(RULES, block_of(target_of(None)))
        self._models: dict[str, Program | None] = {}
        families = [name for name in PROGRAMS if name not in HEAVY] if options.families else []
        self._uris = [f"graph://{name}?{query}" for name in families for query in PROGRAMS[name]]

    def run(self, note: Callable[[str], None], number: int) -> Told:
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
            told.traceback = True
            told.wrong = f"{type(error).__name__} in {place.name}: {error}"
        return told

    def _rewritten(self, program: Program, rng: np.random.Generator, number: int, told: Told) -> None:
        finder, graph = self._finder, program.graph
        before = finder.failures.total
        state = GraphState(graph, graph.digest, finder.all(graph))
        for _ in range(int(rng.integers(1, self.options.steps + 1))):
            candidates = state.candidates
            if not candidates or len(state.graph.nodes) > GROWN:
                break
            places = sorted({place for place, _ in candidates})
            place = places[int(rng.integers(len(places)))]
            names = [name for own, name in candidates if own == place]
            told.rules.append(finder.rules[place].name)
            sites = candidates[place, names[int(rng.integers(len(names)))]]
            state = rewritten(finder, state, place, sites)
        told.failures = finder.failures.total - before
        if number % self.options.run_every == 0:
            told.wrong = _compared(program, state.graph)
            told.ran = True

    def _program(self, rng: np.random.Generator) -> Program | None:
        share = rng.random()
        if self._uris and share < FAMILIES:
            return self._family(self._uris[int(rng.integers(len(self._uris)))])
        if share < FAMILIES + INSTANCES:
            found = instance_in(RULES[int(rng.integers(len(RULES)))], rng)
            if found is None or not runs(found):
                return None
            return Program("instance", found.graph, found.feeds, found.weights)
        maker = Maker(np.random.default_rng(int(rng.integers(1 << 30))))
        graph = maker.graph(int(rng.integers(4, 20)))
        return Program("random", *narrowed(graph, maker.feeds()))

    def _family(self, uri: str) -> Program | None:
        if uri not in self._models:
            try:
                task = GRAPH.task(uri)
            except ProgramError:
                self._models[uri] = None
            else:
                feeds, weights = feeds_of(task.path, 0), model_at(task.path).weights
                self._models[uri] = Program("family", task.graph, feeds, weights)
        return self._models[uri]


def _compared(program: Program, after: Graph) -> str:
    """Return how what came out differs in ONNX Runtime from the program; nothing where it does not."""
    feeds = [dict(program.feeds)]
    try:
        [before] = in_runtime(program.graph, feeds, program.weights)
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
    done = ran = failures = steps = tracebacks = 0
    wrong: list[str] = []
    number = options.first - 1
    while done < options.count and (options.seconds is None or time.monotonic() - started < options.seconds):
        number += 1
        try:
            told = apart(number)
        except Died as error:
            print(f"number {number}: the process died or took too long {error.stage or 'for a program'}")
            told = Told("died", wrong="the process died") if error.stage else Told("refused")
        if told.kind == "refused":
            kinds["refused"] += 1
            continue
        done += 1
        kinds[told.kind] += 1
        rules.update(told.rules)
        steps += len(told.rules)
        ran += told.ran
        failures += told.failures
        tracebacks += told.traceback
        if told.wrong or told.failures:
            wrong.append(f"number {number} ({told.kind}): {told.wrong or 'a rule failed'}; {told.rules}")
            print(wrong[-1], flush=True)
    shown = ", ".join(f"{count} {name}" for name, count in kinds.most_common())
    print(f"sequences {options.first} to {number}: {done} done, {shown}; {steps} steps, {len(rules)} rules")
    print(f"{failures} rule errors, {tracebacks} tracebacks, {len(wrong)} wrong in all;", end=" ")
    print(f"{ran} compared in ONNX Runtime; {time.monotonic() - started:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
