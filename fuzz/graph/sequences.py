"""Many random sequences of rewrites: no rule fails, and ONNX Runtime runs the results.

Programs are random graphs in float32, instances of rules, and small models of the data sets' families.
Each sequence repeatedly draws an applicable rule and then a site for it. Every fourth is run in ONNX
Runtime without optimisation, and compared with its program. `rewrites.py` runs far fewer sequences with
far more checks.
"""

import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from fuzz.fuzzer import Tally
from fuzz.graph.making.apart import Apart, Died
from fuzz.graph.making.maker import Maker
from fuzz.graph.making.narrowed import narrowed
from fuzz.graph.making.odd import Array
from fuzz.graph.making.programs import HEAVY, PROGRAMS
from fuzz.graph.making.random_graphs import grown
from fuzz.graph.making.rule_checks import Refused, in_runtime, instance_in, runs
from irgym.base.errors import ProgramError
from irgym.envs.graph.checking.problems import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rewriting.transitions import rewritten
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.state import GraphState
from irgym.envs.graph.task import block_of
from irgym.measure.target import target_of

TOGETHER = 20
"""Sequences of a seed."""

STEPS = 12
"""Greatest number of rewrites in a sequence."""

RUN_EVERY = 4
"""Distance of the sequences that are run in ONNX Runtime."""

FAMILIES = 0.03
"""Share of sequences that begin with a model of a family."""

INSTANCES = 0.3
"""Share of sequences that begin with an instance of a rule."""

CLOSE = 2e-2
"""Greatest accepted difference in ONNX Runtime, relative to the greatest value: rounding accumulates."""

GROWN = 400
"""Number of operators at which a sequence ends: some rules multiply operators."""


@dataclass
class Told:
    """The result of a sequence.

    Attributes:
        kind: Kind of its program: `random`, `instance`, `family`; `refused` if there was none.
        rules: The applied rules.
        ran: Whether it was compared in ONNX Runtime.
        failures: Number of failures of rules.
        traceback: Whether anything else raised an exception.
        wrong: Description of a wrong result; empty if there is none.
    """

    kind: str
    rules: list[str] = field(default_factory=list[str])
    ran: bool = False
    failures: int = 0
    traceback: bool = False
    wrong: str = ""


@dataclass(frozen=True)
class Program:
    """The program of a sequence.

    Attributes:
        kind: Kind, as in `Told`.
        graph: The graph.
        feeds: Its inputs.
        weights: Its weights.
    """

    kind: str
    graph: Graph
    feeds: Mapping[str, Array]
    weights: Weights


class Sequences:
    """Random sequences."""

    def __init__(self) -> None:
        self._finder = Finder(RULES, block_of(target_of(None)))
        self._models: dict[str, Program | None] = {}
        families = [name for name in PROGRAMS if name not in HEAVY]
        self._uris = [f"graph://{name}?{query}" for name in families for query in PROGRAMS[name]]

    def run(self, note: Callable[[str], None], number: int) -> Told:
        """Run a sequence, and return its result."""
        rng = np.random.default_rng(number)
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
        for _ in range(int(rng.integers(1, STEPS + 1))):
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
        if number % RUN_EVERY == 0:
            told.wrong = _compared(program, state.graph)
            told.ran = True

    def _program(self, rng: np.random.Generator) -> Program | None:
        share = rng.random()
        if share < FAMILIES:
            return self._family(self._uris[int(rng.integers(len(self._uris)))])
        if share < FAMILIES + INSTANCES:
            found = instance_in(RULES[int(rng.integers(len(RULES)))], rng)
            if found is None or not runs(found):
                return None
            return Program("instance", found.graph, found.feeds, found.weights)
        maker = Maker(np.random.default_rng(int(rng.integers(1 << 30))))
        graph = grown(maker, int(rng.integers(4, 20)))
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
    """Return how the results in ONNX Runtime differ from those of the program; empty if they agree."""
    feeds = [dict(program.feeds)]
    try:
        [before] = in_runtime(program.graph, feeds, program.weights)
    except Refused:
        return ""  # no model: ONNX Runtime does not run it as it is
    try:
        [now] = in_runtime(after, feeds, program.weights)
    except Refused as error:
        return f"refused: {error}"
    for name, expected, other in zip(after.outputs, before, now, strict=True):
        if (expected.dtype, expected.shape) != (other.dtype, other.shape):
            return f"{name} was {expected.dtype}{expected.shape}, is {other.dtype}{other.shape}"
        if expected.dtype.kind != "f":
            continue
        there = np.isfinite(expected) & np.isfinite(other)
        greatest = max(float(np.abs(expected[there]).max(initial=0)), 1e-6)
        error = float(np.abs(expected[there] - other[there]).max(initial=0)) / greatest
        if error > CLOSE:
            return f"{name} is off by {error:.1e} of its greatest value"
    return ""


def run(seed: int) -> Tally:
    """Run sequences."""
    tally = Tally()
    with closing(Apart(Sequences().run)) as apart:
        for number in range(seed * TOGETHER, (seed + 1) * TOGETHER):
            try:
                told = apart(number)
            except Died as error:
                # Without a stage the program itself kills ONNX Runtime.
                told = Told("died", wrong="the process died") if error.stage else Told("refused")
            if told.kind == "refused":
                tally.notes["without a program"] += 1
                continue
            wrong = told.wrong or ("a rule failed" if told.failures else "")
            tally.add(told.kind, wrong and f"sequence {number} ({told.kind}): {wrong}; {told.rules}")
            tally.notes.update({"rewrites": len(told.rules), "compared in ONNX Runtime": told.ran})
            tally.reach("rules", told.rules)
    return tally
